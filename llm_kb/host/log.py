"""Reads what earlier turns recorded, and the calls of our tools, from the log of `llm`.

The log records the fragments of each turn, and the source of each text; but for equal texts
it records only the first source. So the memory of a turn is the source of a fragment of its
own, whose text is blank, different for each memory, and not sent by the host.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from llm_kb.errors import KbError
from llm_kb.host.request import SEARCH, SECTION
from llm_kb.knowledge_base.user_dir import find_user_dir
from llm_kb.upkeep.usage import Call, Turn

_MARK = f"{SECTION}{{"
"""The start of the source of a memory, which is JSON."""

_SOURCES = """
    select distinct fragments.source from turns
    join turn_fragments on turn_fragments.turn_id = turns.id
    join fragments on fragments.id = turn_fragments.fragment_id
    where turns.thread_id = ? and substr(fragments.source, 1, ?) = ? order by turns.id
"""
_TURNS = """
    select turns.id, turns.thread_id, fragments.source from turns
    join turn_fragments on turn_fragments.turn_id = turns.id
    join fragments on fragments.id = turn_fragments.fragment_id
    where substr(fragments.source, 1, ?) = ? and turns.datetime_utc >= ? order by turns.id
"""
_ANSWERS = """
    select parts.type, parts.payload from turns
    join messages on messages.hash = turns.parent_message_hash and messages.role = 'tool'
    join parts on parts.message_hash in (messages.hash, messages.parent_hash)
    where turns.id = ? and parts.tool_name in ('learn', 'search_knowledge')
    and parts.type in ('tool_call', 'tool_result') order by parts.type, parts.position
"""
"""The calls whose answers a turn was sent, then these answers, in the same order."""
_PASSAGES = """
    select fragments.content from turn_fragments
    join fragments on fragments.id = turn_fragments.fragment_id
    where turn_fragments.turn_id = ? and substr(fragments.source, 1, ?) = ?
"""


class Memory(NamedTuple):
    """The record of one turn."""

    workspace: str
    """The directory of the workspace; empty if there was none."""
    only: tuple[str, ...]
    """The topics it was restricted to; empty for no restriction."""
    excluded: tuple[str, ...]
    """The assignments that repeat what `--kb-cfg` excluded."""
    sent: tuple[tuple[str, str, str], ...]
    """Topic id, root of the topic and name of each subject that it sent."""


def render_memory(memory: Memory) -> tuple[str, str]:
    """Return the blank text and the source of the fragment that records a memory."""
    source = SECTION + json.dumps(memory._asdict())
    digest = blake2b(source.encode(), digest_size=16).digest()
    bits = "".join(f"{byte:08b}" for byte in digest)
    return bits.replace("0", " ").replace("1", "\t"), source


def read_memory(conversation_id: str, database: str | None) -> Memory | None:
    """Return what the turns of a conversation recorded; None without a record.

    It was made in the workspace of the first turn, stays with the topics of the first
    restriction, and excludes what the last turn did. A conversation loaded from the log holds
    the texts that were sent, not their sources.
    """
    try:
        with closing(_open(Path(database or find_user_dir() / "logs.db"))) as log:
            rows = log.execute(_SOURCES, (conversation_id, len(_MARK), _MARK)).fetchall()
    except sqlite3.Error:
        return None  # also for a log in another format
    memories = [memory for (source,) in rows if (memory := parse_memory(str(source)))]
    if not memories:
        return None
    only = next((memory.only for memory in memories if memory.only), ())
    return memories[-1]._replace(workspace=memories[0].workspace, only=only)


def parse_memory(source: str) -> Memory | None:
    """Return the memory that a source records; None for other sources."""
    try:
        record = json.loads(source.removeprefix(SECTION))
        sent = tuple((str(topic), str(root), str(name)) for topic, root, name in record["sent"])
        only, excluded = tuple(map(str, record["only"])), tuple(map(str, record["excluded"]))
        return Memory(str(record["workspace"]), only, excluded, sent)
    except (ValueError, RecursionError, TypeError, KeyError):
        return None


def read_turns(database: str | None, since: str = "") -> Iterator[Turn]:
    """Yield the turns that used this plugin since a time, oldest first.

    The log of an earlier `llm` has none. Raises KbError if the log does not exist or cannot
    be read, for instance because it is locked.
    """
    path = Path(database or find_user_dir() / "logs.db")
    shown = f"the log of llm, {str(path)!r},"
    if not path.is_file():
        raise KbError(f"{shown} is not there; `llm logs status` says whether llm keeps one")
    try:
        with closing(_open(path)) as log:
            if log.execute("select 1 from sqlite_master where name = 'turns'").fetchone():
                for row in log.execute(_TURNS, (len(_MARK), _MARK, since)):
                    turn, conversation, source = map(str, row)
                    if memory := parse_memory(source):
                        calls = tuple(_parse_calls(log.execute(_ANSWERS, (turn,))))
                        texts = log.execute(_PASSAGES, (turn, len(SEARCH), SEARCH))
                        passages = tuple(str(text) for (text,) in texts)
                        yield Turn(conversation, memory.workspace, memory.sent, calls, passages)
    except sqlite3.Error as error:
        raise KbError(f"{shown} cannot be read: {error}") from error


def _parse_calls(rows: Iterable[tuple[str, str]]) -> Iterator[Call]:
    """Yield each call with its answer, without calls in an unknown format."""
    parts = {kind: [row[1] for row in group] for kind, group in groupby(rows, lambda row: row[0])}
    for call, result in zip(parts.get("tool_call", ()), parts.get("tool_result", ()), strict=False):
        try:
            asked, answered = json.loads(call), json.loads(result)
            arguments, output = asked["arguments"], answered["output"]
        except (ValueError, RecursionError, TypeError, KeyError):
            continue
        if isinstance(arguments, dict) and isinstance(output, str):
            yield Call(asked["name"], arguments, output, failed="exception" in answered)


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)
