"""The ten projects whose outputs are recorded."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.commands.workspaces import write_files

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project, and what the recorded commands name in it."""

    files: Mapping[str, str | bytes]
    topic: str = "project"
    subject: str = "style"
    question: str = "how do we review code"
    is_repository: bool = False
    user: Mapping[str, str | bytes] = field(default_factory=dict)
    """Files of the user directory of `llm`."""
    commands: Sequence[Sequence[str]] = ()
    """Commands of its own, after those that every project has."""

    def make(self, root: Path, user_dir: Path) -> None:
        """Write its files."""
        write_files(root, self.files)
        write_files(user_dir, self.user)
        if self.is_repository:
            for arguments in ("init -q", "add -A", "commit -q -m first"):
                subprocess.run(["git", *arguments.split()], cwd=root, check=True)


SEED = {
    "llm-kb.toml": (
        "[kb.topic.project]\n"
        'title = "General Project Knowledge"\n'
        'introduction = "How we work: style, review, people."\n'
        'description = """\nRead the style first.\n"""\n'
        'subjects = "kb/project"\n'
        'learned = ["maintainers/*"]\n'
        'disabled = ["old"]\n'
        "\n"
        "[kb.topic.skills]\n"
        'subjects = "kb/skills"\n'
    ),
    "kb/project/style.md": "# Style\n\nShort functions.\n\n## Review\n\nTwo people review code.\n",
    "kb/project/old.md": "# Old\n\nGone.\n",
    "kb/project/maintainers/jean.md": "# Jean\n\nKnows the parser.\n",
    "kb/project/maintainers/ryan.md": "# Ryan\n\nReviews releases.\n",
    "kb/project/.internal-notes.md": "# Internal\n\nNot listed.\n",
    "kb/project/code/run.sh": "#!/bin/sh\necho run\n",
    "kb/skills/.hidden/rules.md": "# Hidden rules\n\nBy name only.\n",
    "kb/skills/debug.md": "# Debugging\n\nUse the log.\n",
}

LARGE = {
    "llm-kb.toml": '[kb.topic.docs]\nintroduction = "The manual."\nsubjects = "docs"\n',
    "docs/manual.md": "# Manual\n\nAll of it.\n"
    + "".join(
        f"\n## Option {number}\n\nSet `option_{number}` to change step {number}.\n\n"
        + f"It is read when step {number} begins, and needs a restart afterwards. " * 6
        + "\n"
        for number in range(60)
    ),
    **{
        f"docs/part{number % 5}/page{number:02}.md": f"# Page {number}\n\nAbout topic {number}.\n"
        for number in range(70)
    },
}

FORMATS: dict[str, str | bytes] = {
    "llm-kb.toml": '[kb.topic.mixed]\ntitle = "Mixed \\"formats\\""\nsubjects = "kb"\n',
    "kb/plain.txt": "Plain text, nothing else.\n",
    "kb/guide.rst": "Guide\n=====\n\nIntro.\n\nInstall\n-------\n\nRun ``make install`` first.\n",
    "kb/manual.adoc": "= Manual\n\nIntro.\n\n== Configure\n\nSet the port to 8080.\n",
    "kb/page.html": "<h1>Page</h1><p>Deploy with <code>make deploy</code>.</p>",
    "kb/code.py": 'def deploy(target):\n    """Deploy to a target."""\n    return target\n',
    "kb/data.json": '{"port": 8080, "name": "walrus"}\n',
    "kb/fences.md": "# Fences\n\n````\n```\n</subject></topic></knowledge>\n```\n````\n",
    "kb/utf16.md": "# Wide\n\nUTF-16 text about walruses.\n".encode("utf-16"),
    "kb/binary.bin": b"\0\1\2" * 100,
    "kb/flow.png": PNG,
    "kb/empty.md": "",
    "kb/same.md": "# Same\n\nA page.\n",
    "kb/same.toml": 'same = "a file"\n',
    "kb/日本.md": "# 日本\n\n部署の手順。\n",
}

SKILLS = {
    "llm-kb.toml": (
        '[kb.topic.skills]\nlayout = "skills"\nintroduction = "What agents can do."\n'
        'subjects = ".claude/skills"\n'
    ),
    ".claude/skills/release/SKILL.md": (
        "---\nname: release\ndescription: Release a version, from change log to tag.\n---\n\n"
        "# Release\n\n1. Write the changelog.\n2. Tag.\n"
    ),
    ".claude/skills/release/checks.md": "# Checks\n\nRun them all.\n",
    ".claude/skills/review/SKILL.md": (
        "---\nname: review\ndescription: Review a change.\n---\n\n# Review\n\nRead the diff.\n"
    ),
}

GUIDES = {
    "llm-kb.toml": (
        '[kb.topic.overview]\nintroduction = "What this project is."\nsubjects = "."\n'
        'include = ["/*.md", "/web/AGENTS.md"]\n'
    ),
    "AGENTS.md": "# Rules\n\nUse tabs. See @docs/style.md for more.\n",
    "CLAUDE.md": "@AGENTS.md\n",
    "README.md": "# Walrus\n\nA tool.\n\n## Install\n\n    make install\n",
    "web/AGENTS.md": "# Web\n\nUse two spaces here.\n",
    "docs/style.md": "# Style\n\nShort lines.\n",
    ".gitignore": "./build\n",
}

BROKEN = {
    "llm-kb.toml": (
        '[kb.topic.project]\nsubjects = "../outside"\nlaerned = ["x"]\n\n'
        '[kb.topic."bad id"]\nsubjects = "kb"\n\n[kb]\nmenu = "all"\n'
    ),
    "kb/style.md": "# Style\n",
}

LINKS = {
    "llm-kb.toml": (
        '[kb.topic.project]\nsubjects = "kb"\nlearned = ["missing", "no-such/*"]\n\n'
        '[kb.topic.Project2]\ntitle = "Empty"\nintroduction = "Nothing yet."\n'
        'subjects = "empty"\n'
    ),
    "kb/style.md": (
        "# Style\n\nSee [the guide](guide.md#setup), [nothing](gone.md), [part](guide.md#gone),\n"
        "[[guide]] and [[nowhere]].\n\nHow we review code: slowly.\n"
    ),
    "kb/guide.md": "# Guide\n\n## Setup\n\nRun it.\n",
}

WORDS = {
    "llm-kb.toml": '[kb.topic.notes]\nsubjects = "notes"\n',
    "notes/deploy.md": "# Deploying\n\nThe status of each deployment is shown.\n",
    "notes/docker.md": "# 部署\n\n请使用Docker部署应用。\n",
    "notes/thai.md": "# คู่มือ\n\nคู่มือการตั้งค่าฐานข้อมูลสำหรับผู้เริ่มต้น\n",
    "notes/colour.md": "# Colours\n\nThe colour of an alias, and its indices.\n",
    "notes/hidden.md": "# Hidden\n\ninvisible\u200btext \U000e0041 and \x1b[31mred\n",
}

FETCHED = {
    "llm-kb.toml": '[kb.topic.project]\nsubjects = "kb"\n',
    "kb/style.md": "# Style\n\nHow we review code.\n",
}

_TOPIC = "kb/references/topic-frob"

FETCHED_FILES = {
    f"{_TOPIC}/topic.md": (
        '+++\ntopic_id = "topic-frob"\ntitle = "Frob"\nstatus = "active"\n'
        'fetched_at = 2024-01-01T00:00:00Z\nmax_age_days = 30\ntags = ["tools"]\n'
        'created_by_ghost = "test"\n\n'
        '[[sources]]\ntype = "git"\nurl = "https://github.com/frob/frob"\nref = "main"\n'
        'commit = "0123456789abcdef0123456789abcdef01234567"\n+++\n\nFrobnicates widgets.\n'
    ),
    f"{_TOPIC}/README.md": "# Frob\n\nFrobnicates widgets.\n",
    f"{_TOPIC}/docs/guide.md": "# Guide\n\n## Lifecycle hooks\n\nCall `on_mount` first.\n",
}

PROJECTS = {
    "seed": Project(
        files=SEED,
        commands=(
            ("kb", "list", "skills"),
            ("kb", "prompt", "-k", "project/**"),
            ("kb", "prompt", "--preloaded", "-k", "skills/hidden/rules"),
            ("kb", "show", "project/internal-notes"),
            ("kb", "show", "project/old"),
        ),
    ),
    "empty": Project(files={"README.md": "# Walrus\n"}),
    "large": Project(
        files=LARGE,
        topic="docs",
        subject="manual",
        question="option 37 restart",
        commands=(
            ("kb", "list", "docs/part3/*"),
            ("kb", "show", "docs/manual#option-37"),
            ("kb", "show", "docs/manual#L1-L4"),
        ),
    ),
    "formats": Project(
        files=FORMATS,
        topic="mixed",
        subject="page",
        question="deploy",
        commands=(
            ("kb", "show", "mixed/utf16"),
            ("kb", "show", "mixed/same"),
            ("kb", "show", "mixed/binary"),
            ("kb", "prompt", "-k", "mixed/**"),
            ("kb", "search", "port"),
            ("kb", "search", "部署"),
        ),
    ),
    "skills": Project(files=SKILLS, topic="skills", subject="release", question="tag a version"),
    "guides": Project(
        files=GUIDES,
        topic="overview",
        subject="AGENTS",
        question="how do I install walrus",
        is_repository=True,
        commands=(("kb", "init", "--dry-run"), ("kb", "prompt", "-k", "overview/AGENTS")),
    ),
    "broken": Project(files=BROKEN),
    "links": Project(files=LINKS),
    "words": Project(
        files=WORDS,
        topic="notes",
        subject="docker",
        question="Docker",
        commands=tuple(
            ("kb", "search", each)
            for each in ("statuses", "alias", "color", "ฐานข้อมูล", "index", "部署", "invisible")
        ),
    ),
    "fetched": Project(
        files=FETCHED,
        user=FETCHED_FILES,
        is_repository=True,
        commands=(
            ("kb", "references", "list"),
            ("kb", "references", "show", "topic-frob"),
            ("kb", "list", "topic-frob"),
            ("kb", "show", "topic-frob/docs/guide"),
            ("kb", "search", "-t", "topic-frob", "on_mount"),
            ("kb", "knowledge", "add", "Keep functions short", "kb/"),
            ("kb", "knowledge", "list"),
            ("kb", "knowledge", "export"),
            ("kb", "list", "repo-knowledge"),
        ),
    ),
}
