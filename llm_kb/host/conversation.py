"""What a conversation was given, remembered in the log of `llm` for the turns to come.

The log keeps which fragments a turn was given, and a source for each text; but for equal
texts it keeps one source, that of the first. So what is remembered is not the source of
the section: it is that of a fragment of its own, a blank text that is different for each
memory, and of which the host sends nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from hashlib import blake2b
from typing import Any

from llm_kb.api import Memory
from llm_kb.host.request import SECTION

_MARK = f"{SECTION}{{"
"""How the source of a memory begins: as JSON."""


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
    return [row[0] for row in read_log(database, query, (conversation_id, len(_MARK), _MARK))]


def read_log(database: str | None, query: str, values: Iterable[object] = ()) -> list[Any]:
    """Return the rows of a query of the log; none if there is no log that can answer it."""
    # Imported here: half-made while plugins load, whole now.
    from llm.cli import logs_db_path  # noqa: PLC0415

    try:
        with closing(sqlite3.connect(database or logs_db_path())) as log:
            return log.execute(query, tuple(values)).fetchall()
    except sqlite3.Error:
        return []
