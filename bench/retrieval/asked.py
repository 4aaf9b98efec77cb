"""Real questions: asked by users of projects, each searched as `llm kb init` leaves it.

`questions/asked/` has a file for each project, with all places in the documentation that answer.
Choices were made with the questions of `tune`, each written anew from a thread; those of
`report` were written when the ranking was almost done. Those of `unseen`
were made after that by somebody who had not seen it, each from a thread and before any search, and
choices were made with them as well. Those of `last` and `newer` were made in the same way, with the
gold completed from plain full-text search, and so were those of `kept`, which were measured once,
after the last choice. Those of `manual` are no real ones: a language model that had read the manual
of an organisation's engineers imitates people who have not.

`questions/calls.toml` has, for some of these questions, what a language model asked the tool: it
had the question, the name of the project and the description of the tool's argument, and had not
looked into the documentation.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple

from known_items import QUESTIONS
from sources import CACHE, TABLES, Source, clone, fetch

from llm_kb.files.fields import decode_toml
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.parts import decode_exactly, find_spans
from llm_kb.subjects.patterns import split_knowledge
from llm_kb.texts.document import find_line_numbers
from llm_kb.texts.outlines.outline import read_document

PROJECTS: dict[str, dict[str, Source | str]] = {
    split: {
        name: Source(**source) if isinstance(source, dict) else source
        for name, source in sources.items()
    }
    for split, sources in TABLES["asked"].items()
}
"""The projects by split: a repository, or a release in the package index."""


CALLS = decode_toml((QUESTIONS / "calls.toml").read_text(encoding="utf-8"))
"""By question, what a model asked the tool."""


class Asked(NamedTuple):
    """A question and the places that answer it: topic, path and lines."""

    text: str
    places: tuple[tuple[str, str, tuple[int, int]], ...]

    def is_answered_by(self, path: str, first_line: int, last_line: int) -> bool:
        """Tell whether some lines are of a place that answers; the path is below its topic's id."""
        return any(
            path == f"{topic}/{where}" and first_line <= last and last_line >= first
            for topic, where, (first, last) in self.places
        )


class Project(NamedTuple):
    """A project as `llm kb init` leaves it."""

    directory: Path
    kb: KnowledgeBase
    questions: list[Asked]

    @property
    def calls(self) -> list[Asked]:
        """The questions in the words of a model, as far as one was asked for them."""
        return [Asked(CALLS[text], places) for text, places in self.questions if text in CALLS]


def read_projects(split: str) -> Iterator[Project]:
    """Yield the projects of a split with their questions."""
    os.environ["LLM_USER_PATH"] = str(CACHE / "asked-user")
    for name, source in PROJECTS[split].items():
        directory = CACHE / "projects" / name
        if not directory.exists():
            _check_out(directory, source)
        (directory / "llm-kb.toml").unlink(missing_ok=True)
        command = [Path(sys.executable).with_name("llm-kb"), "init"]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
        with chdir(directory):
            kb = KnowledgeBase.discover()
        path = QUESTIONS / f"asked/{name}.toml"
        asked = decode_toml(path.read_text(encoding="utf-8"))["question"]
        yield Project(directory, kb, [_read(kb, each) for each in asked if each["answer"]])


def _read(kb: KnowledgeBase, table: dict[str, Any]) -> Asked:
    answers = [table["answer"]] if isinstance(table["answer"], str) else table["answer"]
    return Asked(table["ask"], tuple(place for each in answers for place in _find(kb, each)))


def _find(kb: KnowledgeBase, answer: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield the topic, the path and the lines of each place that an answer names."""
    topic, pattern = split_knowledge(answer)
    selection = kb.require(topic, pattern)
    opened = kb.find_topic(topic)
    for subject in selection.subjects:
        text = decode_exactly(opened.topic.read(subject).data)
        anchors = [anchor for anchor in selection.asked_of(subject) if anchor]
        for span in find_spans(read_document(subject.path, text), anchors)[0]:
            yield opened.config.id, subject.path, find_line_numbers(text, span.start, span.end)


def _check_out(directory: Path, source: Source | str) -> None:
    """Make a work tree of a project at the commit of its questions, or of a release."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(source, Source):
        command = ["git", "-C", clone(source), "worktree", "add", "-f", "-q", "--detach", directory]
        subprocess.run([*command, source.commit], check=True)
        return
    copytree(fetch(source), directory)
