"""The rule and the skill that tell coding agents of a project about its knowledge base.

Models look where a rule that they always see tells them to; a skill shows them how.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import NamedTuple

from llm_kb.errors import KbError
from llm_kb.files.atomic import (
    find_inside,
    read_below,
    remove_below,
    replace_below,
    replace_file,
)
from llm_kb.files.layouts import AGENT_MARK, AGENT_SKILL, SKILL_FILE
from llm_kb.rendering.differences import render_difference
from llm_kb.rendering.marks import Marks, cut_block
from llm_kb.rendering.section import LONGEST_DESCRIPTION, describe_topics
from llm_kb.subjects.links import find_imports
from llm_kb.subjects.topics import TopicConfig

RULES = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md")
"""The files of rules in which a block of ours may be."""

READ = {"claude": ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"), "gemini": ("GEMINI.md",)}
"""The files of rules that a client reads, the first that exists; the last is made. Others read
AGENTS.md."""

SKILLS = tuple(f"{tool}/skills/{AGENT_SKILL}/{SKILL_FILE}" for tool in (".agents", ".claude"))

MARKS = Marks("<!-- llm-kb: begin, written by `llm kb connect` -->", "<!-- llm-kb: end -->")

_RULE = """\
Before you change code or answer a question about this project, search its knowledge base: `{0} search "…"`.
Read what it names with `{0} show --as-model TOPIC/SUBJECT`. Tools named `learn` and `search_knowledge` do the same.
"""  # noqa: E501 - two lines

_SKILL = """\
---
name: {name}
description: {description}
---
{mark}

# The knowledge of this project

1. `{0} search "the answer as the text may have it"` finds passages, each headed by TOPIC/SUBJECT#PART.
2. `{0} show --as-model TOPIC/SUBJECT` reads a subject, `TOPIC/SUBJECT#PART` a part of it, and `{0} list TOPIC` lists those of a topic.
3. `{0} prompt --shell` prints all topics. Where there are tools named `learn` and `search_knowledge`, call these instead.
"""  # noqa: E501 - one line a step


class Change(NamedTuple):
    """A file as it is and as it should be; None where there is none."""

    path: str
    """Below the project; of a file of the user's own the whole path."""
    before: str | None
    after: str | None

    def render(self) -> str:
        """Return the lines that come and go, for people."""
        return "\n".join(render_difference(self.before or "", self.after or "", self.path))

    def apply(self, root: Path) -> None:
        """Write or remove the file. Raises WriteError."""
        data, path = (self.after or "").encode("utf-8", "backslashreplace"), Path(self.path)
        if self.after is None:
            remove_below(*((path.parent, path.name) if path.is_absolute() else (root, path)))
        elif path.is_absolute():
            replace_file(path, data)
        else:
            replace_below(root, path, data)


def plan_rule(
    client: str, root: Path, topics: Sequence[TopicConfig], command: str
) -> Iterator[Change]:
    """Yield the files that should tell a client about these topics; `agents` is any of them.

    What names our command in another of its ways, as on another machine, is left as it is.
    Raises KbError for a file that is not ours, or that lies outside.
    """
    names = (command, "llm kb" if command == "llm-kb" else "llm-kb")
    blocks = [f"{MARKS.begin}\n{_RULE.format(name)}{MARKS.end}\n" for name in names]
    for path in _find_rules(client, root):
        before = read_below(root, path)
        found = MARKS.find(before or "", path)
        there = f"{(before or '')[slice(*found)]}\n".replace("\r\n", "\n") if found else ""
        after = before if there in blocks else MARKS.replace(before, blocks[0], path)
        yield Change(path, before, after)
    about = json.dumps(
        describe_topics(topics, LONGEST_DESCRIPTION), ensure_ascii=False
    )  # YAML, too
    known = {"name": AGENT_SKILL, "description": about, "mark": AGENT_MARK}
    texts = [_SKILL.format(name, **known) for name in names]
    for path in _find_real(root, SKILLS):
        before = read_below(root, path)
        if before is not None and AGENT_MARK not in before:
            raise KbError(f"{path!r} was written by someone else; move it, then try again")
        after = before if (before or "").replace("\r\n", "\n") in texts else texts[0]
        yield Change(path, before, after)


def plan_removal(root: Path) -> Iterator[Change]:
    """Yield the files with a block or a skill of ours, and their rest. Raises KbError."""
    for path in _find_real(root, RULES):
        before = read_below(root, path) or ""
        if found := MARKS.find(before, path):
            yield Change(path, before, cut_block(before, *found))
    for path in _find_real(root, SKILLS):
        before = read_below(root, path) or ""
        if AGENT_MARK in before:
            yield Change(path, before, None)


def _find_rules(client: str, root: Path) -> Iterator[str]:
    """Yield the files of rules that a client reads, without those that import another of them."""
    texts = {path: read_below(root, path) for path in RULES}
    there = [path for path in RULES if texts[path] is not None]
    read = READ.get(client, ("AGENTS.md",))
    paths = [next((path for path in read if path in there), read[-1])]
    paths = paths if client != "agents" else [*paths, *there]
    for path in _find_real(root, paths):
        imports = find_imports(texts[path] or "") if path != "AGENTS.md" else ()
        named = (normpath(join(dirname(path), each.target)) for each in imports)
        imported = next((each for each in named if each in RULES), None)
        if imported not in paths:
            yield imported or path


def _find_real(root: Path, paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths, of those that links make the same file the first."""
    seen: Collection[Path] = []
    for path in paths:
        real = find_inside(root, path)
        if real not in seen:
            seen = [*seen, real]
            yield path
