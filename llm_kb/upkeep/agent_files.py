"""The rule and the skill that tell coding agents of a project about its knowledge base.

Models look where a rule that they always see tells them to; a skill shows them how.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from llm_kb.errors import KbError
from llm_kb.files.atomic import find_inside, read_below, remove_below, replace_below
from llm_kb.files.layouts import AGENT_MARK, AGENT_SKILL, SKILL_FILE
from llm_kb.rendering.marks import Marks
from llm_kb.rendering.section import LONGEST_DESCRIPTION, describe_topics
from llm_kb.subjects.topics import TopicConfig

COMMANDS = ("llm-kb", "llm kb")
"""The names under which an agent may run our commands."""

RULES = ("AGENTS.md", "CLAUDE.md")
"""The files of rules, of which one gets the block: one that has it, one that exists, the first."""

SKILLS = tuple(f"{tool}/skills/{AGENT_SKILL}/{SKILL_FILE}" for tool in (".agents", ".claude"))

MARKS = Marks(
    "<!-- llm-kb agents: begin, written by `llm kb agents` -->", "<!-- llm-kb agents: end -->"
)

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
    before: str | None
    after: str | None
    written: str = ""
    """What is shown of the new text: the block, or the whole skill."""
    replaced: str = ""
    """The text that stood between the marks, if someone else changed it."""

    @property
    def is_needed(self) -> bool:
        """Whether the file is to be changed."""
        return self.before != self.after

    def apply(self, root: Path) -> None:
        """Write or remove the file. Raises WriteError."""
        if self.after is None:
            remove_below(root, self.path)
        else:
            replace_below(root, self.path, self.after.encode())


def plan_writing(root: Path, topics: Sequence[TopicConfig], command: str) -> list[Change]:
    """Return the files that should tell agents about these topics, below a project's directory.

    What names our command in another of its ways, as on another machine, is left as it is.
    Raises KbError for a file that is not ours, or that lies outside.
    """
    names = (command, *(each for each in COMMANDS if each != command))
    rules = _choose_rules(root)
    changes = [_plan_block(rules, read_below(root, rules), names)]
    for path in _find_skills(root):
        before = read_below(root, path)
        if before is not None and AGENT_MARK not in before:
            raise KbError(f"{path!r} was written by someone else; move it, then try again")
        texts = [_render_skill(topics, name) for name in names]
        after = before if (before or "").replace("\r\n", "\n") in texts else texts[0]
        changes.append(Change(path, before, after, texts[0]))
    return changes


def plan_removal(root: Path) -> list[Change]:
    """Return the files with a block or a skill of ours, and their rest. Raises KbError."""
    changes = []
    for path in RULES:
        before = read_below(root, path)
        if before is not None and (found := MARKS.find(before, path)):
            above, below = before[: found[0]].rstrip(), before[found[1] :].lstrip("\r\n")
            left = "\n\n".join(filter(None, (above, below)))
            after = left if not left or left.endswith("\n") else f"{left}\n"
            changes.append(Change(path, before, after or None))
    for path in _find_skills(root):
        before = read_below(root, path)
        if before is not None and AGENT_MARK in before:
            changes.append(Change(path, before, None))
    return changes


def _choose_rules(root: Path) -> str:
    texts = {path: read_below(root, path) for path in RULES}
    marked = [path for path, text in texts.items() if MARKS.has_any(text)]
    existing = [path for path, text in texts.items() if text is not None]
    return [*marked, *existing, *RULES][0]


def _plan_block(path: str, before: str | None, names: Sequence[str]) -> Change:
    blocks = [f"{MARKS.begin}\n{_RULE.format(name)}{MARKS.end}\n" for name in names]
    text = before or ""
    found = MARKS.find(text, path)
    there = f"{text[found[0] : found[1]].rstrip()}\n".replace("\r\n", "\n") if found else ""
    if there in blocks:
        return Change(path, before, before, blocks[0])
    return Change(path, before, MARKS.replace(text, blocks[0], path), blocks[0], there)


def _render_skill(topics: Sequence[TopicConfig], name: str) -> str:
    about = describe_topics(topics, LONGEST_DESCRIPTION)
    description = json.dumps(about, ensure_ascii=False)  # is YAML, too
    return _SKILL.format(name, name=AGENT_SKILL, description=description, mark=AGENT_MARK)


def _find_skills(root: Path) -> Iterator[str]:
    """Yield the paths of the skill, only one of those that a link makes the same file."""
    seen: Collection[Path] = []
    for path in SKILLS:
        real = find_inside(root, path)
        if real not in seen:
            seen = [*seen, real]
            yield path
