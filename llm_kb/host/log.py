"""Reads what earlier turns recorded, and the calls of our tools, from the log of `llm`.

The log records the fragments of each turn, and the source of each text; but for equal texts
it records only the first source. So the memory of a turn is the source of a fragment of its
own, whose text is blank, different for each memory, and not sent by the host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from llm_kb.errors import MAX_PATH_SHOWN, KbError, quote
from llm_kb.host.llm_internals import list_calls, list_fragments, open_log
from llm_kb.host.request import SEARCH, SECTION, Memory
from llm_kb.knowledge_base.kinds import find_user_dir
from llm_kb.upkeep.usage import Turn

GUIDE = ""
"""In a memory, the topic of a guide that was sent because it applies."""

_MARK = f"{SECTION}{{"
"""The start of the source of a memory, which is JSON."""


def read_memory(conversation_id: str, database: str | None) -> Memory | None:
    """Return what the turns of a conversation recorded; None without a record.

    It was made in the workspace of the first turn, stays with the topics of the first
    restriction, and excludes what the last turn did. A conversation loaded from the log holds
    the texts that were sent, not their sources. Raises KbError if the log cannot be read, for
    instance because another version of `llm` wrote it.
    """
    with open_log(Path(database or find_user_dir() / "logs.db")) as log:
        rows = list(list_fragments(log, _MARK, "and turns.thread_id = ?", conversation_id))
    memories = [memory for row in rows if (memory := parse_memory(row[2]))]
    if not memories:
        return None
    only = next((memory.only for memory in memories if memory.only), ())
    sent = tuple(chain.from_iterable(memory.sent for memory in memories))
    return memories[-1]._replace(workspace=memories[0].workspace, only=only, sent=sent)


def parse_memory(source: str) -> Memory | None:
    """Return the memory that a source records; None for other sources."""
    try:
        record = json.loads(source.removeprefix(SECTION))
        sent = tuple((str(topic), str(root), str(name)) for topic, root, name in record["sent"])
        only, excluded = tuple(map(str, record["only"])), tuple(map(str, record["excluded"]))
        return Memory(str(record["workspace"]), only, excluded, sent)
    except (ValueError, RecursionError, TypeError, KeyError):
        return None


def read_turns() -> Iterator[Turn]:
    """Yield the turns that used this plugin, oldest first.

    Raises KbError if the log does not exist or cannot be read, for instance because it is
    locked, or an earlier `llm` wrote it.
    """
    path = find_user_dir() / "logs.db"
    if not path.is_file():
        raise KbError(
            f"the log of llm, {quote(str(path), MAX_PATH_SHOWN)}, is not there; `llm logs status`"
            " says whether llm keeps one"
        )
    with open_log(path) as log:
        for row in list_fragments(log, _MARK):
            if memory := parse_memory(row[2]):
                sent = [(topic, name) for topic, _, name in memory.sent if topic]
                given = list_fragments(log, SEARCH, "and turns.id = ?", row[0])
                passages = [content for _, _, _, content in given]
                calls = [
                    (tool, json.loads(arguments), answer, bool(failed))
                    for tool, arguments, answer, failed in list_calls(log, row[0])
                ]
                yield Turn(row[1], memory.workspace, sent, passages, calls)
