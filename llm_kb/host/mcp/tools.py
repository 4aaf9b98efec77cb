"""The tools of the MCP server, the functions that answer their calls, and the limits of answers.

Tools that write add notes to the repository, or fetch a reference topic once a person has
approved its plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from llm_kb import addons
from llm_kb.config.load import read_layer, user_source
from llm_kb.config.settings import Layer
from llm_kb.errors import KbError, quote
from llm_kb.hookspecs import Answer
from llm_kb.host import reference_calls
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import find_user_dir
from llm_kb.knowledge_base.learning import Loaded, PictureRules
from llm_kb.knowledge_base.tool_text import (
    LEARN,
    SEARCH_KNOWLEDGE,
    ToolText,
    read_arguments,
)
from llm_kb.references.library import Library
from llm_kb.rendering.section import describe_topics, render_instructions

if TYPE_CHECKING:
    from llm_kb.references.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client takes whole."""

    answer: int = 20_000
    """Bytes of an answer: clients cut or hide longer ones, some from the middle."""
    menu: int = 400
    """Tokens of the menu."""
    instructions: int = 2_048
    """Characters of the instructions: Claude Code cuts them there."""
    first_line: int = 240
    """Characters of their first line, which is all that Codex shows of tools that it defers."""

    def cut(self, text: str) -> str:
        """Return an answer that is no longer, with a notice if its end is missing."""
        data = text.encode("utf-8", "replace")
        if not self.answer or len(data) <= self.answer:
            return text
        start = data[: max(0, self.answer - 150)].decode("utf-8", "ignore")
        start = start[: start.rfind("\n") + 1] or start
        missing = len(data) - len(start.encode("utf-8", "replace"))
        return f"{start}\n(note: cut here; {missing:,} bytes are not shown; ask for less at once)"

    def fit(self, value: Any) -> str:
        """Return a value as JSON that is no longer: of its lists some rows, then what is left out.

        Raises KbError if not even that fits.
        """
        if not self.answer or _size(value) <= self.answer:
            return dump(value)
        table = value if isinstance(value, dict) else {"rows": value}
        lists = {key: rows for key, rows in table.items() if isinstance(rows, list)}
        kept, notes = {**table, **dict.fromkeys(lists, ())}, list[str]()
        room = self.answer - _size(kept) - len(lists) * MOST_NAMED
        keys = sorted(lists, key=lambda key: _size(lists[key]))
        for key in keys:
            rows = lists[key]
            # The longest list gets what the others leave.
            share = room if key == keys[-1] else room // 4
            ends = accumulate(_size(row) + len(", ") for row in rows)
            kept[key] = rows[: sum(end <= share for end in ends)]
            room -= _size(kept[key])
            if rest := rows[len(kept[key]) :]:
                notes.append(name_rest(key, rest))
        kept["warnings"] = [*kept.get("warnings", ()), *notes]
        if _size(kept) > self.answer:
            raise KbError(
                f"the answer has {_size(value):,} bytes, and {self.answer:,} are allowed;"
                " ask for less at once"
            )
        return dump(kept if table is value else [*kept["rows"], {"warnings": notes}])


CODEX = Limits(answer=11_000)
"""For models that Codex does not know, it cuts answers at 12,000 bytes, from the middle."""

MOST_NAMED = 300
"""Bytes of a note that names what was left out of a list."""

SECONDS, FETCH_SECONDS = 120, 900
"""Seconds that a call may go on without progress: conversions of documents take up to 120, and
a fetch has bounds of its own."""

REFERENCES = (reference_calls.SEARCH, reference_calls.TOPIC_SEARCH, reference_calls.TOPIC_LIST)
"""The tools that read reference topics."""

Report: TypeAlias = "Callable[..., None]"
"""Called whenever work was done, which moves the deadline."""

Arguments: TypeAlias = "Mapping[str, Any]"


def find_limits(client: object) -> Limits:
    """Return what a client takes that gives this information about itself."""
    name = client.get("name") if isinstance(client, dict) else None
    return CODEX if isinstance(name, str) and "codex" in name.casefold() else Limits()


def fit_client(kb: KnowledgeBase, limits: Limits) -> KnowledgeBase:
    """Set the limits to what a client takes, unless the user configured others.

    Pre-loaded subjects can be learned too, since clients need not show the instructions.
    """
    kb.repeat_preloaded()
    most = _find_most(kb, limits)
    kb.config = replace(kb.config, max_result_chars=most, counts_bytes=True)
    if "kb.menu_budget" not in kb.config.settings:
        kb.config = replace(kb.config, menu_budget=limits.menu)
    return kb


def _find_most(kb: KnowledgeBase, limits: Limits) -> int:
    """Return the bytes of an answer: the client's or the user's, which a workspace may lower.

    A config fragment may do no more: it can be a file of the workspace.
    """
    config, key = kb.config, "kb.max_result_chars"
    if key not in config.settings:
        return limits.answer
    asked, layer = config.max_result_chars, config.settings[key].origins[-1].layer
    if layer not in {Layer.WORKSPACE, Layer.FRAGMENT}:
        return asked
    own = read_layer(user_source(find_user_dir())).get(key)
    allowed = int(cast(int, own.value)) if own else limits.answer
    return min(asked or allowed, allowed or asked)


def write_instructions(kb: KnowledgeBase, limits: Limits) -> str | None:
    """Return the menu and the pre-loaded subjects that clients show; None without any.

    The line above them says what they are about, for clients that show only that.
    """
    topics = {topic.id: topic for topic in (each.config for each in kb.left)}
    topics |= {topic.id: topic for topic, subjects in kb.preloaded if subjects}
    line = describe_topics(list(topics.values()), limits.first_line)
    room = limits.instructions - len(line) - len("\n\n")
    section = render_instructions(kb.preloaded, kb.menu(), room)
    return f"{line}\n\n{section}" if section else None


def find_deadline(params: object) -> int:
    """Return the seconds that a request with these parameters may go on without progress."""
    name = params.get("name") if isinstance(params, dict) else None
    return FETCH_SECONDS if name == reference_calls.CREATE.name else SECONDS


def render_tools(kb: KnowledgeBase) -> list[dict[str, Any]]:
    """Return the tools that are served in this directory, as clients list them."""
    return [
        _render(tool, kb.describe_learn() if tool is LEARN else tool.description)
        for tool in find_tools(kb)
    ]


def render_broken(description: str) -> list[dict[str, Any]]:
    """Return the tools of a knowledge base that cannot be read."""
    return [_render(tool, description) for tool in (LEARN, SEARCH_KNOWLEDGE)]


def _render(tool: ToolText, description: str) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": description,
        "inputSchema": tool.schema,
        "annotations": {
            "readOnlyHint": tool.is_read_only,
            "destructiveHint": False,
            "openWorldHint": tool is reference_calls.CREATE,
        },
    }


def find_tools(kb: KnowledgeBase) -> list[ToolText]:
    """Return the tools that are served in this directory."""
    return [
        LEARN,
        SEARCH_KNOWLEDGE,
        *(REFERENCES if open_references(kb).ids() else []),
        reference_calls.CREATE,
        *(text for text, _ in _open_added(kb)),
    ]


def _open_added(kb: KnowledgeBase) -> Iterator[tuple[ToolText, Answer]]:
    """Yield the tools of add-ons that a setting offers."""
    for each in addons.find_tools().values():
        if each.name in kb.tools:
            yield from each.open(kb)


def answer_call(kb: KnowledgeBase, name: str, arguments: Arguments, report: Report) -> Loaded:
    """Check a call and answer it. Raises KbError."""
    added = {text.name: answer for text, answer in _open_added(kb)}
    if name not in ANSWERS and name not in added:
        known = ", ".join(tool.name for tool in find_tools(kb))
        raise KbError(f"unknown tool {quote(name)}; tools: {known}")
    limits = Limits(answer=kb.config.max_result_chars)
    if name in added:
        answer = added[name](arguments, report)
    else:
        answer = ANSWERS[name](kb, arguments, report)
    if isinstance(answer, Loaded):
        return Loaded(limits.cut(answer.text), answer.pictures)
    return Loaded(limits.cut(answer) if isinstance(answer, str) else limits.fit(answer))


def open_references(kb: KnowledgeBase) -> Library:
    """Return the reference topics of a knowledge base."""
    return reference_calls.find_library(kb.config, kb.directory)


def _learn(kb: KnowledgeBase, arguments: Arguments, _: Report) -> Loaded:
    kb.pictures = PictureRules(takes=bool)  # the client decides what its model gets
    return kb.answer_call(**arguments)


def _search(kb: KnowledgeBase, arguments: Arguments, report: Report) -> str:
    if not kb.menu_ids:
        raise KbError(f"{kb.directory}: {kb.explain_nothing()}")
    return kb.answer_search(arguments, report)


def _read_references(tool: ToolText, kb: KnowledgeBase, arguments: Arguments, _: Report) -> Any:
    return reference_calls.read(open_references(kb), tool, read_arguments(tool, arguments))


def _create(kb: KnowledgeBase, arguments: Arguments, report: Report) -> Any:
    """Answer a call of `reference_topic_create`; a new plan waits for the user's approval."""
    library = open_references(kb)

    def keep(plan: Plan) -> bool:
        raise reference_calls.open_plans(library).ask_later(plan)

    given = read_arguments(reference_calls.CREATE, arguments)
    return reference_calls.create(library, given, {"ghost": "mcp"}, keep, report)


def dump(value: object) -> str:
    """Return a value as the JSON that models read."""
    return json.dumps(value, ensure_ascii=False)


def _size(value: object) -> int:
    return len(dump(value).encode("utf-8", "replace"))


def name_rest(key: str, rows: Sequence[Any]) -> str:
    """Return a line on the rows of a list that were left out, with the calls that bring them."""
    line = f"{len(rows):,} more {key} did not fit"
    calls: list[str] = []
    for row in rows if key != "warnings" else ():
        id_ = row.get("topic_id", "")
        call = f"learn({id_!r}, [{row['file'] + '#L' + row['lines']!r}])" if "file" in row else id_
        if _size(f"{line}: {', '.join([*calls, call])}; and others") <= MOST_NAMED:
            calls.append(call)
    if not calls:
        return f"{line}; ask for less at once"
    return f"{line}: {', '.join(calls)}{'; and others' * (len(calls) < len(rows))}"


TOOLS: Sequence[tuple[ToolText, Callable[[KnowledgeBase, Arguments, Report], Any]]] = (
    (LEARN, _learn),
    (SEARCH_KNOWLEDGE, _search),
    *((tool, partial(_read_references, tool)) for tool in REFERENCES),
    (reference_calls.CREATE, _create),
)
"""Each tool, and the function that answers its calls: with text, perhaps with pictures, or with
what becomes JSON."""

ANSWERS = {tool.name: answer for tool, answer in TOOLS}
