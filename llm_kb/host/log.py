"""The log of `llm`: what a conversation was given, for its turns to come, and which calls it made.

The log keeps which fragments a turn was given, and a source for each text; but for equal
texts it keeps one source, that of the first. So what is remembered is not the source of
the section: it is that of a fragment of its own, a blank text that is different for each
memory, and of which the host sends nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

from llm_kb.api import Memory
from llm_kb.errors import KbError
from llm_kb.host.request import SEARCH, SECTION
from llm_kb.upkeep.usage import Call, Turn

_MARK = f"{SECTION}{{"
"""How the source of a memory begins: as JSON."""

_TURNS = """
    select turns.id, turns.thread_id, turns.datetime_utc, fragments.source from turns
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
"""The calls of which a turn was sent the answers, then these answers, in the same order."""
_PASSAGES = """
    select fragments.content from turn_fragments
    join fragments on fragments.id = turn_fragments.fragment_id
    where turn_fragments.turn_id = ? and substr(fragments.source, 1, ?) = ?
"""


class LogError(KbError):
    """A log that is not there, or that cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"the log of llm, {str(path)!r}, {reason}")


def render_memory(memory: Memory) -> tuple[str, str]:
    """Return the text of the fragment that records a memory, which is blank, and its source."""
    topics: dict[str, dict[str, list[str]]] = {}
    for topic, root, name in memory.sent:
        topics.setdefault(topic, {}).setdefault(root, []).append(name)
    record = {"workspace": memory.workspace, "only": memory.only, "sent": topics}
    source = SECTION + json.dumps(record)
    digest = blake2b(source.encode(), digest_size=16).digest()
    bits = "".join(f"{byte:08b}" for byte in digest)
    return bits.replace("0", " ").replace("1", "\t"), source


def read_memory(conversation_id: str, database: str | None) -> Memory | None:
    """Return what the log remembers of a conversation; None where it remembers nothing."""
    memories = [parse_memory(source) for source in _read_sources(conversation_id, database)]
    found = [memory for memory in memories if memory is not None]
    return join_memories(found) if found else None


def join_memories(memories: Sequence[Memory]) -> Memory:
    """Return what several turns were given together, each thing once."""
    return Memory(
        workspace=memories[0].workspace,
        only=next((memory.only for memory in memories if memory.only), ()),
        sent=tuple(dict.fromkeys(each for memory in memories for each in memory.sent)),
    )


def parse_memory(source: str) -> Memory | None:
    """Return the memory that a source records; None for any other."""
    try:
        record = json.loads(source.removeprefix(SECTION))
        return Memory(
            workspace=str(record["workspace"]),
            only=tuple(map(str, record["only"])),
            sent=tuple(
                (str(topic), str(root), str(name))
                for topic, roots in record["sent"].items()
                for root, names in roots.items()
                for name in names
            ),
        )
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None


def read_turns(database: str | None, since: str = "") -> Iterator[Turn]:
    """Yield the turns that this plugin took part in, from a time on, oldest first.

    A log in which none can be, because an earlier `llm` wrote it, has none. Raises LogError
    if it is not there or cannot be read, such as one that is locked.
    """
    path = Path(database or _default_path())
    if not path.is_file():
        raise LogError(path, "is not there; `llm logs status` says whether llm keeps one")
    try:
        with closing(_open(path)) as log:
            if log.execute("select 1 from sqlite_master where name = 'turns'").fetchone():
                for row in log.execute(_TURNS, (len(_MARK), _MARK, since)):
                    turn, conversation, when, source = map(str, row)
                    if memory := parse_memory(source):
                        calls = tuple(_parse_calls(log.execute(_ANSWERS, (turn,))))
                        texts = log.execute(_PASSAGES, (turn, len(SEARCH), SEARCH))
                        passages = tuple(str(text) for (text,) in texts)
                        yield Turn(
                            conversation, when, memory.workspace, memory.sent, calls, passages
                        )
    except sqlite3.OperationalError as error:
        advice = "try again later" if "locked" in str(error) else "it may be of a newer llm"
        raise LogError(path, f"cannot be read: {error}; {advice}") from error
    except sqlite3.Error as error:
        raise LogError(path, f"cannot be read: {error}") from error


def _parse_calls(rows: Iterable[tuple[str, str]]) -> Iterator[Call]:
    """Yield each call with its answer; what is not a call as this plugin makes it is left out."""
    parts = {kind: [row[1] for row in group] for kind, group in groupby(rows, lambda row: row[0])}
    for call, result in zip(parts.get("tool_call", ()), parts.get("tool_result", ()), strict=False):
        try:
            asked, answered = json.loads(call), json.loads(result)
            arguments, output = asked["arguments"], answered["output"]
        except (ValueError, RecursionError, TypeError, KeyError):
            continue
        if isinstance(arguments, dict) and isinstance(output, str):
            yield Call(asked["name"], arguments, output, failed="exception" in answered)


def _read_sources(conversation_id: str, database: str | None) -> list[str]:
    """Return the sources of our fragments in the turns of a conversation, oldest first.

    A conversation loaded from the log holds the text that was sent, not where it came
    from. Logs of another shape have nothing to tell.
    """
    query = """
        select distinct fragments.source from turns
        join turn_fragments on turn_fragments.turn_id = turns.id
        join fragments on fragments.id = turn_fragments.fragment_id
        where turns.thread_id = ? and substr(fragments.source, 1, ?) = ? order by turns.id
    """
    values = (conversation_id, len(_MARK), _MARK)
    try:
        with closing(_open(Path(database or _default_path()))) as log:
            return [str(row[0]) for row in log.execute(query, values)]
    except sqlite3.Error:
        return []


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)


def _default_path() -> Path:
    # Imported here: half-made while plugins load, whole now.
    from llm.cli import logs_db_path  # noqa: PLC0415

    return Path(logs_db_path())
