"""The subjects of a topic as the documents of a search."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from llm_kb import __version__
from llm_kb.files.containment import resolve_links
from llm_kb.files.layouts import is_shown
from llm_kb.files.walk import Stamps, are_unchanged
from llm_kb.search.index.documents import File, bound_files
from llm_kb.subjects.topics import Content, Listing, Subject, TopicConfig
from llm_kb.texts.decoding import MOST_BYTES
from llm_kb.texts.formats import is_readable, is_unread_document, list_unread

INDEXES = Path("kb", "index")
"""The directory of the indexes of workspaces, below the host's user directory."""


def find_index(user_dir: Path, workspace: Path | None) -> Path:
    """Return the path of the index that the topics of a workspace share."""
    place = str(resolve_links(workspace)) if workspace else ""
    key = hashlib.blake2b(place.encode(errors="surrogateescape"), digest_size=10).hexdigest()
    return user_dir / INDEXES / f"{key}.sqlite3"


def find_place(root: Path, workspace: Path | None) -> str:
    """Return the path of a directory below the workspace, or its name if it is elsewhere.

    It ends with a slash, and is empty for the workspace itself.
    """
    root = resolve_links(root)
    if workspace and root.is_relative_to(top := resolve_links(workspace)):
        below = root.relative_to(top).as_posix()
        return "" if below == "." else f"{below}/"
    return f"{root.name}/"


class Watched(Protocol):
    """A topic that can be listed and read, and whose changes can be seen.

    Each call sees the content as it is then. Disabled subjects are never returned.
    """

    config: TopicConfig
    """Its settings, with the changes that the configuration makes to them. `root` is a directory
    that is there, if a search is to find anything."""

    def list(self, reference: str | None = None) -> Listing:
        """Return every subject, hidden ones included.

        With a reference, only those that it names: by slug, with or without extension and dots.
        Less is read then, and it may name what no list has, as a path does for captured entries.
        """

    def list_watched(self) -> tuple[Listing, Stamps | None]:
        """Return every subject, and the stamps by which a change of them is seen, if any."""

    def stamp(self, path: str) -> tuple[int, int, int]:
        """Return a size and times that change with a subject. Raises OSError."""

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject, at most its first `limit` bytes.

        Raises UnreadableError if it is missing, denied, not a regular file, or now outside
        the topic.
        """


class TopicDocuments:
    """The subjects of a topic; hidden ones only with `hidden`. Implements `Documents`.

    Files that come with skills are among them. `role_of` returns the role that a file's owner
    gave it, empty if there is none. If `rules` change, the topic is listed again.
    """

    def __init__(  # noqa: PLR0913 - each is one thing to know of the topic
        self,
        topic: Watched,
        *,
        index: Path | None = None,
        place: str = "",
        hidden: bool = False,
        trust: int | None = None,
        role_of: Callable[[str], str] = lambda _: "",
        rules: str = "",
    ) -> None:
        config = topic.config
        self.name = config.id
        self.index = index
        self.trust = trust
        self.root = str(config.root)
        self.place = place
        self._topic = topic
        self._hidden = hidden
        self._role_of = role_of
        # The settings that determine which files are documents.
        chosen = (config.layout, config.include, config.disabled, config.ignore)
        # Another locale reads other names.
        kept = (list_unread(), hidden, sys.getfilesystemencoding())
        self._rules = repr((__version__, rules, *chosen, config.allow_links_to, *kept))
        self._subjects: dict[str, Subject] = {}
        self._listed: Listing | None = None
        self.absent: Sequence[str] = ()

    def note(self) -> str:
        """Return a note on the state of the next list; empty if a change could go unnoticed."""
        self._listed, stamps = self._topic.list_watched()
        self.absent = self._listed.notes
        return json.dumps([self._rules, stamps]) if stamps else ""

    def holds(self, note: str, files: Iterable[tuple[str, int, int, int]]) -> bool:
        """Tell whether a note's state, and path, size and times of the files, are unchanged."""
        stamp = self._topic.stamp
        try:
            rules, stamps = json.loads(note)
            if rules != self._rules or not are_unchanged(self._topic.config.root, stamps):
                return False
            return all(stamp(path) == tuple(was) for path, *was in files)
        except (OSError, ValueError, TypeError, AttributeError):  # also of a damaged note
            return False

    def list(self) -> Iterator[File]:
        """Yield the subjects with size and times. Raises OSError if the topic is missing."""
        config = self._topic.config
        next(config.root.iterdir(), None)
        listing = self._listed or self._topic.list_watched()[0]
        self._listed = None
        for subject in listing.subjects:
            is_shown_here = self._hidden or is_shown(subject, config.layout)
            if not (is_shown_here and _is_searched(subject)):
                continue
            self._subjects[subject.path] = subject
            try:
                stamp = self._topic.stamp(subject.path)
            except OSError:
                continue  # gone since it was listed
            yield File(subject.path, *stamp, self._role_of(subject.path))

    def find_subject(self, path: str) -> Subject | None:
        """Return the subject at a path; None if it is gone or disabled."""
        known = self._subjects.get(path)
        # If nothing was listed in this search, look for the one subject.
        return known or next((s for s in self._topic.list(path).subjects if s.path == path), None)

    def read(self, path: str) -> bytes:
        """Return the content of a listed subject."""
        return self._topic.read(self._subjects[path], MOST_BYTES + 1).data


def stamp_content(data: bytes) -> tuple[int, int, int]:
    """Return a size and times that change with a content that is not in a file."""
    digest = hashlib.blake2b(data, digest_size=7).digest()
    return len(data), int.from_bytes(digest, "big"), 0


def _is_searched(subject: Subject) -> bool:
    """Tell whether a search reads a subject, or reports how it could be read."""
    return is_readable(subject.path) or is_unread_document(subject.path)


def find_unsearched(root: Path, subjects: Iterable[Subject]) -> list[str]:
    """Return which subjects of a directory no search reads, since they are too many."""
    paths = [subject.path for subject in subjects if is_readable(subject.path)]
    return bound_files([File(path, find_size(root / path), 0) for path in paths])[1]


def find_size(file: Path) -> int:
    """Return the size of a file; 0 if it cannot be read."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
