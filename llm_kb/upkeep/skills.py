"""Checks skills by the specification of Agent Skills."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from llm_kb.files.directory import NO_SKILL
from llm_kb.files.layouts import SKILL_FILE
from llm_kb.rendering.plain_text import count
from llm_kb.rendering.summaries import read_front_matter
from llm_kb.subjects.topics import Skipped
from llm_kb.upkeep.rules import Finding, Rule

_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024


def check_skill(file: str, directory: str, text: str) -> Iterator[Finding]:
    """Find violations of the specification in the SKILL.md of a directory."""
    fields, _ = read_front_matter(text)
    if not fields:
        yield Finding(Rule.SKILL, file, "it has no front matter with a name and a description")
        return
    name, description = fields.get("name"), fields.get("description")
    if not name:
        yield Finding(Rule.SKILL, file, "its front matter has no name")
    elif not _SKILL_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        what = f"its name {name!r} is not of at most {_LONGEST_NAME} lower-case letters, digits"
        yield Finding(Rule.SKILL, file, f"{what} and single hyphens")
    elif name != directory:
        yield Finding(
            Rule.SKILL, file, f"its name {name!r} is not the name of its directory, {directory!r}"
        )
    if not description:
        yield Finding(Rule.SKILL, file, "its front matter has no description")
    elif len(description) > _LONGEST_DESCRIPTION:
        what = f"its description has {len(description):,} characters"
        yield Finding(Rule.SKILL, file, f"{what}; the most is {_LONGEST_DESCRIPTION:,}")


def check_strays(prefix: str, skipped: Iterable[Skipped]) -> Iterator[Finding]:
    """Find directories that should be skills, from the files skipped for being in none.

    Files directly in the topic, such as a README.md, are not meant to be skills.
    `prefix` goes before the paths of the topic.
    """
    strays: dict[str, list[str]] = {}
    for path in (PurePosixPath(s.path) for s in skipped if s.reason == NO_SKILL):
        if len(path.parts) > 1:
            strays.setdefault(path.parts[0], []).append(path.as_posix())
    for directory, paths in strays.items():
        misspelt = [path for path in paths if path.lower().endswith("/skill.md")]
        for wrong in misspelt:
            yield Finding(
                Rule.SKILL, f"{prefix}/{wrong}", f"its name must be {SKILL_FILE}, in upper case"
            )
        if not misspelt:
            what = f"no {SKILL_FILE} in it, so its {count(len(paths), 'file')} cannot be learned"
            yield Finding(Rule.SKILL, f"{prefix}/{directory}", what)
