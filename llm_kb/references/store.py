"""The directories of reference topics: complete at any moment, whoever is killed when.

    ROOT/topic-x/           a topic: topic.md, .provenance.json, the fetched files
    ROOT/.staging/topic-x.… a topic in the making, swapped in whole
    ROOT/.old/topic-x       the topic it replaces, during the two renames of the swap
    ROOT/.trash/…           what is being deleted
    ROOT/.locks/topic-x     locked by whoever writes the topic; a lock ends with its process

What a killed process left behind is put right by the next one that looks.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from llm_kb.atomic import WriteError, replace_file
from llm_kb.references.errors import TopicFileError, UnknownReferenceError
from llm_kb.references.provenance import (
    FILE_NAME,
    Provenance,
    hash_content,
    parse_provenance,
    render_provenance,
)
from llm_kb.references.topic_file import TopicFile
from llm_kb.references.topic_text import parse_topic_file

try:
    import fcntl
except ImportError:  # Windows, where nobody keeps two writers apart
    fcntl = None  # type: ignore[assignment]

TOPIC_FILE = "topic.md"
RESERVED = frozenset({TOPIC_FILE, FILE_NAME})
"""Names at a topic's root that are not for fetched files."""

_LOOKS = 5
"""How often a topic is looked for, 5 ms apart, before it is said not to be there."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class Store:
    """The directory of all reference topics."""

    root: Path

    def directory(self, topic_id: str) -> Path:
        """Return where a topic is; raise UnknownReferenceError for what can be no id."""
        if not _ID.fullmatch(topic_id):
            raise UnknownReferenceError(topic_id, self.ids())
        return self.root / topic_id

    def ids(self) -> list[str]:
        """Return the ids of the topics that are there, sorted.

        Those that are being swapped at this moment are there as well.
        """
        swapped = self.root / ".old"
        found = {
            name
            for place in (self.root, swapped)
            for name in _list_names(place)
            if _ID.fullmatch(name) and (place / name / TOPIC_FILE).is_file()
        }
        return sorted(found)

    def exists(self, topic_id: str) -> bool:
        """Tell whether a topic is there."""
        return (self.directory(topic_id) / TOPIC_FILE).is_file()

    def read_text(self, topic_id: str) -> str:
        """Return the text of a topic's `topic.md`; raise UnknownReferenceError without one."""
        path = self.directory(topic_id) / TOPIC_FILE
        looks = _LOOKS
        while True:
            try:
                return path.read_text("utf-8")
            except FileNotFoundError as error:
                # A swap may begin and end between any two looks, so one says little.
                looks -= 1
                if (self.root / ".old" / topic_id).exists():
                    # Between its two renames: over at once, unless it was killed there.
                    with suppress(_BusyError), _locked(self.root / ".locks" / topic_id, wait=False):
                        self._recover(topic_id)
                    looks = _LOOKS
                if not looks:
                    raise UnknownReferenceError(topic_id, self.ids()) from error
                time.sleep(0.005)
            except (OSError, UnicodeDecodeError) as error:
                raise TopicFileError(str(path), str(error)) from error

    def read(self, topic_id: str) -> TopicFile:
        """Read a topic's `topic.md`; raise UnknownReferenceError or TopicFileError."""
        where = str(self.directory(topic_id) / TOPIC_FILE)
        topic = parse_topic_file(self.read_text(topic_id), where)
        if topic.id != topic_id:
            raise TopicFileError(where, f"its id {topic.id!r} is not the name of its directory")
        return topic

    def read_provenance(self, topic_id: str) -> Provenance:
        """Read the record of a topic's files; empty when there is none."""
        path = self.directory(topic_id) / FILE_NAME
        try:
            return parse_provenance(path.read_bytes(), str(path))
        except FileNotFoundError:
            return Provenance()

    def write_text(self, topic_id: str, text: str) -> None:
        """Replace a topic's `topic.md`, whole or not at all."""
        replace_file(self.directory(topic_id) / TOPIC_FILE, text.encode())

    def write_provenance(self, topic_id: str, provenance: Provenance) -> None:
        """Replace the record of a topic's files, whole or not at all."""
        replace_file(self.directory(topic_id) / FILE_NAME, render_provenance(provenance))

    def hash_files(self, topic_id: str) -> dict[str, str]:
        """Return the hashes of a topic's files on disk, by path; ours are not among them."""
        root = self.directory(topic_id)
        hashes = {}
        for directory, _, names in os.walk(root):
            for name in names:
                path = Path(directory, name)
                relative = path.relative_to(root).as_posix()
                if relative in RESERVED:
                    continue
                # A link was never fetched, so it differs from whatever was.
                hashes[relative] = "link" if path.is_symlink() else hash_content(path.read_bytes())
        return hashes

    @contextmanager
    def lock(self, topic_id: str, *, create: bool = True) -> Iterator[None]:
        """Keep other writers of a topic out, and put right what a killed one left.

        Waits for its turn. Without `create` nothing is made where nothing is.
        """
        self.directory(topic_id)
        if not create and not self.root.is_dir():
            yield
            return
        with _locked(self.root / ".locks" / topic_id):
            self._recover(topic_id)
            yield

    @contextmanager
    def staging(self, topic_id: str) -> Iterator[Path]:
        """Make an empty directory for a topic in the making; gone after the block.

        The caller holds the topic's lock.
        """
        parent = self.root / ".staging"
        directory = parent / f"{topic_id}.{secrets.token_hex(4)}"
        try:
            directory.mkdir(parents=True)
        except OSError as error:
            raise WriteError(directory, error.strerror or str(error)) from error
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def publish(self, topic_id: str, staged: Path) -> None:
        """Put a staged topic in the place of the old one. The caller holds the lock."""
        current, old = self.directory(topic_id), self.root / ".old" / topic_id
        if current.exists():
            old.parent.mkdir(exist_ok=True)
            current.rename(old)
        try:
            staged.rename(current)
        finally:
            self._recover(topic_id)

    def delete(self, topic_id: str) -> None:
        """Delete a topic at once. The caller holds the lock."""
        self._trash(self.directory(topic_id))

    def clean(self) -> None:
        """Put right what killed processes left; costs a look for three directories."""
        leftovers = set()
        for place in (".staging", ".old"):
            names = _list_names(self.root / place)
            leftovers |= {n.rpartition(".")[0] if place == ".staging" else n for n in names}
        for topic_id in sorted(leftovers):
            # Who holds the lock is at work, and cleans up himself.
            with suppress(_BusyError), _locked(self.root / ".locks" / topic_id, wait=False):
                self._recover(topic_id)
        for name in _list_names(self.root / ".trash"):
            shutil.rmtree(self.root / ".trash" / name, ignore_errors=True)

    def _recover(self, topic_id: str) -> None:
        """Finish or undo a swap that was cut short, and drop what was in the making."""
        current, old = self.directory(topic_id), self.root / ".old" / topic_id
        if old.exists():
            if current.exists():
                self._trash(old)
            else:
                old.rename(current)
        for staged in (self.root / ".staging").glob(f"{topic_id}.????????"):
            shutil.rmtree(staged, ignore_errors=True)

    def _trash(self, directory: Path) -> None:
        """Delete a directory: out of sight in one step, then piece by piece."""
        target = self.root / ".trash" / f"{directory.name}.{secrets.token_hex(4)}"
        target.parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            directory.rename(target)
            shutil.rmtree(target, ignore_errors=True)


def _list_names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - names are all we need
    except OSError:
        return []


class _BusyError(Exception):
    """Somebody else holds a lock."""


@contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file; it stays behind, since deleting it would let two hold it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    try:
        while fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not wait:
                    raise _BusyError from None
                time.sleep(0.05)
            except OSError:
                break  # a file system without locks
        yield
    finally:
        os.close(descriptor)
