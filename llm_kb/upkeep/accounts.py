"""Accounts for the files of a project that are in no topic: what they are, how many, and why."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from llm_kb.files.containment import Containment
from llm_kb.files.layouts import is_agent_skill
from llm_kb.rendering.plain_text import MAX_NAMED, count
from llm_kb.search.question import STOP_WORDS
from llm_kb.search.roles import Role, find_role
from llm_kb.subjects.ignore import is_always_ignored
from llm_kb.texts import formats
from llm_kb.texts.decoding import SNIFFED_BYTES, decode_text, is_binary
from llm_kb.texts.folding import WORD, fold
from llm_kb.upkeep.project_files import RULES

MOST_LINES = 3
"""The most kinds of text files that have a line each."""

_MOST_READ = 50
"""The most files of one extension that are read to tell text from other data."""

_LEAST_PROSE, _MOST_SAMPLED = 3, 10
"""The fewest files of one extension that are worth a topic, and the most that are read to tell
prose from the texts of programs."""

_PROSE_SHARE = 0.3
"""The share of little words ("the", "of") from which a text is prose: it is 0.4 in most prose."""


class Leftover(NamedTuple):
    """Files that are in no topic for the same reason, and the command that takes them, if any."""

    what: str
    paths: Collection[str]
    take: str = ""


_PRIVATE = "passwords and data of programs (never taken)"
_OURS = "files that `llm kb agents` wrote"
_INSIDE = "links to files of the project (taken where they are)"
_OUTSIDE = "links that lead to outside or to nothing"
_REPOSITORIES = "repositories of their own (submodules, clones, work trees)"
_NEITHER = "entries that are neither files nor directories"
_DOCUMENTS = "documents that need the extra to be read"
_CODE, _DATA, _MEDIA = "source code", "data and settings", "pictures and other binary files"
_TEXTS = "text files"

_KINDS = {formats.Kind.CODE: _CODE, formats.Kind.DATA: _DATA, formats.Kind.MEDIA: _MEDIA}
_TAKE = {_DOCUMENTS: formats.INSTALL}


def account_for(root: Path, paths: Iterable[str]) -> list[Leftover]:
    """Return the files of a project that are not pages, each in one group of a kind."""
    classify = _Classifier(root)
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        if kind := classify(path):
            groups[kind].append(path)
    texts = _group_by_kind(groups.pop(_TEXTS, []))
    named = [Leftover(what, groups[what], _TAKE.get(what, "")) for what in sorted(groups)]
    prose = [kind for kind in texts if _is_prose(classify.containment, texts[kind])][:MOST_LINES]
    shown = [_describe_texts(kind, texts.pop(kind)) for kind in prose]
    rest = [path for paths in texts.values() for path in paths]
    kinds = ", ".join(kind or "without an extension" for kind in [*texts][:MAX_NAMED])
    more = f" and {count(len(texts) - MAX_NAMED, 'more kind')}" if len(texts) > MAX_NAMED else ""
    return [
        *shown,
        *([Leftover(f"text files ({kinds}{more})", rest)] if rest else []),
        *named,
    ]


def _group_by_kind(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return text files by extension, the most frequent first."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        kinds[Path(path).suffix if formats.find_extension(path) else ""].append(path)
    return {kind: kinds[kind] for kind in sorted(kinds, key=lambda each: (-len(kinds[each]), each))}


def _is_prose(containment: Containment, paths: Sequence[str]) -> bool:
    """Tell by the first text files of a kind whether they are for people, not for programs."""
    words: list[str] = []
    likely = list(filter(_may_be_prose, paths))
    for path in likely[:_MOST_SAMPLED]:
        with suppress(OSError):
            data = containment.read_file(path, SNIFFED_BYTES)[0]
            words += WORD.findall(fold(decode_text(data, whole=False) or ""))
    # One letter may be a variable.
    words = [word for word in words if len(word) > 1]
    said = max(sum(map(stop.__contains__, words)) for stop in STOP_WORDS.values())
    return len(likely) >= _LEAST_PROSE and 0 < _PROSE_SHARE * len(words) <= said


def _may_be_prose(path: str) -> bool:
    """Tell whether a text file may be documentation: no test, licence or page of a program."""
    known = formats.find_format(path)
    is_formality = re.search(rf"(?i){RULES['formalities'].loud}", formats.find_stem(path))
    return not (find_role(path) is Role.TESTS or is_formality or (known and known.is_built))


def _describe_texts(kind: str, paths: Collection[str]) -> Leftover:
    """Return the line of the text files of one extension."""
    common = os.path.commonpath([f"./{path}" for path in paths])
    place = os.path.normpath(os.path.dirname(common) if len(paths) == 1 else common)  # noqa: PTH120
    where = "" if place == "." else f" in {place}"
    noun = "documents" if formats.needs_extra(next(iter(paths))) else "text files"
    what = f"{noun} of {kind}" if kind else f"{noun} without an extension"
    # With the extension: a topic of the directory may be there.
    id_ = re.sub(r"[^a-z0-9]+", "-", f"{Path(place).name}-{kind or 'texts'}".lower()).strip("-")
    which = f"--include {shlex.quote(f'*{kind}')}" if kind else "--ignore '*.*'"
    directory = f"./{place}" if place.startswith("-") else place
    add = f"llm kb add {id_} {shlex.quote(directory)} {which}"
    return Leftover(f"{what}{where}", paths, add)


class _Classifier:
    """Says what a file of a project is that is not a page; empty for one that is gone."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self.containment = Containment(root, ())
        self._verdicts: defaultdict[str, list[bool]] = defaultdict(list)

    def __call__(self, path: str) -> str:
        if any(map(is_always_ignored, path.rstrip("/").split("/"))):
            return _PRIVATE
        if is_agent_skill(self.containment, path):
            return _OURS
        try:
            type_ = stat.S_IFMT(os.lstat(f"{self._root}/{path}").st_mode)
        except OSError:
            return ""
        if type_ == stat.S_IFLNK:
            return self._classify_link(path)
        if type_ == stat.S_IFDIR:
            return _REPOSITORIES
        return self._classify_file(path) if type_ == stat.S_IFREG else _NEITHER

    def _classify_link(self, path: str) -> str:
        real = os.path.realpath(f"{self._root}/{path}")
        is_inside = real.startswith(f"{self._root}{os.sep}") and os.path.exists(real)  # noqa: PTH110
        return _INSIDE if is_inside else _OUTSIDE

    def _classify_file(self, path: str) -> str:
        if formats.is_unread_document(path):
            return _DOCUMENTS
        known = formats.find_format(path)
        if known and known.kind in _KINDS:
            return _KINDS[known.kind]
        is_hidden = path.rpartition("/")[2].startswith(".")
        if formats.has_generated_name(path) or (is_hidden and not formats.find_extension(path)):
            return _DATA
        return _TEXTS if (known and known.converter) or self._is_text(path) else _MEDIA

    def _is_text(self, path: str) -> bool:
        """Tell whether a file is text; of many with an extension the first ones decide."""
        verdicts = self._verdicts[formats.find_extension(path)]
        if len(verdicts) < _MOST_READ:
            data = b"\0"
            with suppress(OSError):
                data = self.containment.read_file(path, SNIFFED_BYTES)[0]
            verdicts.append(not is_binary(data))
            return verdicts[-1]
        return 2 * sum(verdicts) > len(verdicts)
