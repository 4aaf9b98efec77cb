"""The reference topics of a user: their directories, and how they are listed, verified, deleted.

Planning, fetching and refreshing are in `fetch`, which a search never imports.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_kb.config.settings import Config
from llm_kb.errors import KbError
from llm_kb.files.atomic import (
    BusyError,
    WriteError,
    locked,
    make_directory,
    replace_below,
    writing,
)
from llm_kb.files.containment import read_regular, resolve_links
from llm_kb.files.conversion import Conversions
from llm_kb.files.repository import find_repository
from llm_kb.references.errors import TopicFileError, UnknownReferenceError
from llm_kb.references.settings import References, read_settings
from llm_kb.references.sources.installed import find_installed
from llm_kb.references.sources.records import parse_package
from llm_kb.references.topic import topic_directory
from llm_kb.references.topic.topic_file import (
    TopicFile,
    change_topic_file,
    parse_topic_file,
    with_heading,
)

if TYPE_CHECKING:
    from llm_kb.references.sources.rules import Resolver
    from llm_kb.search.index.index import Embedder


MAX_TOPIC_FILE = 1_000_000
"""The largest `topic.md` that is read."""

_LOOKS = 5
"""Number of attempts to read `topic.md`, 5 ms apart, before it counts as missing."""

_IGNORED = (KbError, OSError)
"""Errors ignored while cleaning: the lock's holder cleans up itself, and a directory that
cannot be written can still be read."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def _is_topic(directory: Path) -> bool:
    """Tell whether a directory is a topic's, even if it is unreadable or `topic.md` is missing."""
    try:
        (directory / topic_directory.TOPIC_FILE).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return os.path.lexists(directory / topic_directory.FILE_NAME)
    except OSError:
        pass
    return True


def list_names(directory: Path) -> list[str]:
    """Return the names in a directory; none if it is missing or unreadable."""
    try:
        return os.listdir(directory)  # noqa: PTH208 - names are all we need
    except OSError:
        return []


def remove(path: Path) -> None:
    """Delete a directory as far as possible; of a link, only the link itself."""
    with suppress(OSError):
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


def _move(source: Path, target: Path) -> None:
    """Rename a directory; raise WriteError if that fails."""
    with writing(source):
        source.rename(target)


def _read_topic_file(path: Path) -> str:
    """Return the text of a `topic.md` with its line ends, since a changed file is written again."""
    try:
        data = read_regular(path, follow_link=True, most=MAX_TOPIC_FILE + 1)
        if len(data) > MAX_TOPIC_FILE:
            raise TopicFileError(str(path), f"it has over {MAX_TOPIC_FILE:,} bytes")
        return data.decode()
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise TopicFileError(str(path), error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise TopicFileError(str(path), "it is not in UTF-8") from error


def _name_place(place: Path) -> str:
    """Return a name for a directory."""
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:16]


def _read_words(path: Path) -> frozenset[str]:
    """Return the words of a file of ours; none without it."""
    try:
        return frozenset(read_regular(path).decode().split())
    except (OSError, UnicodeDecodeError):
        return frozenset()


def _add_words(path: Path, words: Collection[str]) -> None:
    """Add words to a file of ours."""
    make_directory(path.parent, mode=0o700)
    known = _read_words(path)
    if not known.issuperset(words):
        data = "\n".join(sorted(known.union(words))).encode()
        replace_below(path.parent, path.name, data, new_mode=0o600)


DESCRIPTIONS = ""
"""The name of the descriptions of all topics in the index, which no topic has."""

DIRECTORY = Path("kb", "references")
"""The directory of topics, below the host's user directory."""


# Without slots: `cached_property` stores values in the instance.
@dataclass(frozen=True, kw_only=True)
class Library:
    """All reference topics below one directory, under one user's settings.

    Each is complete at any moment, even if a process is killed:

    root/topic-x/           a topic: topic.md, .provenance.json, the fetched files
    root/.staging/…         a topic in the making, swapped in whole, or one that is deleted
    root/.old/topic-x       the topic it replaces, during the two renames of the swap
    root/.index/…           the index of all topics
    root/.locks/topic-x     the lock of the process that writes the topic; it ends with the process

    What a killed process left behind is put right by the next one that looks.
    """

    root: Path
    settings: References = field(default_factory=References)
    find_embedder: Callable[[], Embedder | None] = lambda: None
    """Finds the user's embedding model, when texts are first embedded."""
    workspace: Path | None = None
    """The directory whose installed packages, and topics, count; None for none."""
    resolver: Resolver | None = None
    """Resolves the names of hosts; None for the system's resolver."""
    clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    own: Path | None = None
    """The user's own directory, for what a person approved: `root` may be one that others write.
    None for `root`."""

    @cached_property
    def conversions(self) -> Conversions:
        """The cached texts of the topics' documents; all topics share the time for new ones."""
        return Conversions(self.root / ".converted")

    def directory(self, topic_id: str) -> Path:
        """Return the directory of a topic; raise UnknownReferenceError for an invalid id."""
        if not _ID.fullmatch(topic_id):
            raise UnknownReferenceError(topic_id, self.ids())
        return self.root / topic_id

    @property
    def index(self) -> Path:
        """The path of the index of all topics."""
        return self.root / ".index" / "topics.sqlite3"

    def ids(self) -> list[str]:
        """Return the ids of all topics, sorted, including unreadable ones."""
        places = (self.root, self.root / ".old", self.root)  # as `_places` says
        names = {name for place in places for name in list_names(place)}
        return sorted(name for name in names if _ID.fullmatch(name) and self.exists(name))

    def exists(self, topic_id: str) -> bool:
        """Tell whether a topic exists, even if it cannot be read."""
        return any(map(_is_topic, self._places(topic_id)))

    def require(self, topic_id: str) -> None:
        """Raise UnknownReferenceError unless a topic exists."""
        if not self.exists(topic_id):
            raise UnknownReferenceError(topic_id, self.ids())

    def require_free(self, topic_id: str) -> None:
        """Raise TopicFileError if something else is in the place of a topic."""
        place = self.directory(topic_id)
        if os.path.lexists(place) and not _is_topic(place):
            raise TopicFileError(
                str(place),
                "it is not a reference topic and was kept; move it away, or choose another title",
            )

    def read_text(self, topic_id: str) -> str:
        """Return the text of a `topic.md`; raise UnknownReferenceError or TopicFileError."""
        path = self.directory(topic_id) / topic_directory.TOPIC_FILE
        for _ in range(_LOOKS):
            with suppress(FileNotFoundError, NotADirectoryError):
                return _read_topic_file(path)
            # A swap may be between its two renames, which are over at once unless killed.
            if os.path.lexists(self.root / ".old" / topic_id):
                with suppress(BusyError), locked(self.root / ".locks" / topic_id, seconds=1):
                    self._recover(topic_id)
            time.sleep(0.005)
        self.require(topic_id)
        what = "it is missing; restore it, or delete what is left of the topic: "
        raise TopicFileError(str(path), f"{what}llm kb references delete {topic_id}")

    def read(self, topic_id: str) -> TopicFile:
        """Return a topic's `topic.md`; raise UnknownReferenceError or TopicFileError."""
        return self._parse(topic_id, self.read_text(topic_id))

    def change(self, topic_id: str, changes: Mapping[str, Any], body: str | None = None) -> str:
        """Return the text of a `topic.md` with changed keys and description; nothing is written."""
        where = str(self.directory(topic_id) / topic_directory.TOPIC_FILE)
        text = change_topic_file(self.read_text(topic_id), where, changes, body)
        self._parse(topic_id, text)
        return text

    def _parse(self, topic_id: str, text: str) -> TopicFile:
        """Return the content of a topic's `topic.md`; raise TopicFileError."""
        where = str(self.directory(topic_id) / topic_directory.TOPIC_FILE)
        topic = parse_topic_file(text, where)
        if topic.id != topic_id:
            raise TopicFileError(where, f"its id {topic.id!r} is not the name of its directory")
        return topic

    @contextmanager
    def lock(self, topic_id: str, *, create: bool = True) -> Iterator[None]:
        """Hold the lock of a topic, and recover from a killed writer.

        Waits for the lock. Without `create`, a missing store is not created.
        """
        self.directory(topic_id)
        if not create and not self.root.is_dir():
            yield
            return
        with locked(self.root / ".locks" / topic_id, seconds=-1):
            self._recover(topic_id)
            yield

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make an empty directory; deleted after the block, or by `clean`."""
        name = f"new-{secrets.token_hex(8)}"
        directory = self.root / ".staging" / f"{name}.{secrets.token_hex(4)}"
        with self.lock(name):
            try:
                directory.mkdir(parents=True)
            except OSError as error:  # FileExistsError as well: `.staging` may be a link to nothing
                raise WriteError(directory, error.strerror or str(error)) from error
            try:
                yield directory
            finally:
                shutil.rmtree(directory, ignore_errors=True)

    def publish(self, topic_id: str, staged: Path) -> None:
        """Replace a topic by a staged one. The caller must hold the lock.

        A link in its place is removed, and its target stays. Raises TopicFileError.
        """
        self.require_free(topic_id)
        current, old = self.directory(topic_id), self.root / ".old" / topic_id
        if os.path.lexists(current):
            make_directory(old.parent)
            _move(current, old)
        try:
            _move(staged, current)
        finally:
            self._recover(topic_id)

    def clean(self) -> None:
        """Remove what killed processes left. Lists two directories."""
        staged = list_names(self.root / ".staging")
        left = {name.rpartition(".")[0] for name in staged} | set(list_names(self.root / ".old"))
        for topic_id in filter(_ID.fullmatch, sorted(left)):
            with suppress(*_IGNORED), locked(self.root / ".locks" / topic_id, seconds=0):
                self._recover(topic_id)

    def _places(self, topic_id: str) -> tuple[Path, Path, Path]:
        """Return the place of a topic, its place during a swap, and the first again.

        A swap may end between a look at the first and one at the second.
        """
        current = self.directory(topic_id)
        return current, self.root / ".old" / topic_id, current

    def _recover(self, topic_id: str) -> None:
        """Finish or undo an interrupted swap, and delete staged directories."""
        current, old = self.directory(topic_id), self.root / ".old" / topic_id
        if os.path.lexists(old):
            if os.path.lexists(current):
                self._trash(old)
            else:
                _move(old, current)
        for staged in (self.root / ".staging").glob(f"{topic_id}.????????"):
            shutil.rmtree(staged, ignore_errors=True)

    def _trash(self, directory: Path) -> None:
        """Delete a directory: move it away in one step, then delete its files."""
        target = self.root / ".staging" / f"{directory.name}.{secrets.token_hex(4)}"
        make_directory(target.parent)
        _move(directory, target)
        remove(target)

    def topics(self) -> tuple[list[TopicFile], list[str]]:
        """Return the readable topics, sorted by id, and the problems of the others."""
        topics, problems = list[TopicFile](), list[str]()
        try:
            os.scandir(self.root).close()
        except FileNotFoundError:
            pass
        except OSError as error:
            problems.append(f"{self.root}: {error.strerror}")
        for topic_id in self.ids():
            try:
                topics.append(self.read(topic_id))
            except KbError as error:
                problems.append(str(error))
        return topics, problems

    def approved_hosts(self, topic_id: str) -> frozenset[str]:
        """Return the hosts that a person has approved for a topic, with unusual ports."""
        return _read_words(self._approval(topic_id))

    def approve_hosts(self, topic_id: str, hosts: Collection[str]) -> None:
        """Record that a person has approved hosts for a topic, in addition to earlier ones."""
        _add_words(self._approval(topic_id), hosts)

    def _approval(self, topic_id: str) -> Path:
        """Return the path of a topic's approved hosts.

        Never in its own directory, which may be a copy that somebody else made.
        """
        directory = self.directory(topic_id)
        return self.private / ".approved" / f"{topic_id}-{_name_place(directory.absolute())}"

    def fetched_here(self) -> frozenset[str]:
        """Return the ids of the topics that were created in this project."""
        return _read_words(self._here) if self._here else frozenset()

    def mark_here(self, topic_id: str) -> None:
        """Record that a topic was created in this project."""
        if self._here:
            _add_words(self._here, [topic_id])

    @property
    def _here(self) -> Path | None:
        """The path of the list of topics of the repository, whose work trees share it."""
        repository = find_repository(self.workspace)
        place = repository.common_dir if repository else self.workspace
        return place and self.private / ".here" / _name_place(resolve_links(place))

    @property
    def private(self) -> Path:
        """The directory for approved hosts and waiting plans."""
        return self.own or self.root

    def find_outdated(self, topic: TopicFile) -> str | None:
        """Return the reason why a topic is outdated on this machine; None if it seems current.

        The workspace has another version of a package.
        """
        for source in topic.sources:
            if source.package:
                package = parse_package(source.package)
                installed = find_installed(package.ecosystem, package.name, self.workspace)
                if installed and installed.version != package.version:
                    return f"it is of {source.package}, but {installed.version} is installed here"
        return None

    def update(self, topic_id: str, changes: dict[str, Any], body: str | None = None) -> TopicFile:
        """Change a topic's description and return it; the fetched files stay as they are."""
        with self.lock(topic_id, create=False):
            body = None if body is None else with_heading(self.read(topic_id).title, body)
            text = self.change(topic_id, changes, body)
            replace_below(self.directory(topic_id), topic_directory.TOPIC_FILE, text.encode())
            return self._parse(topic_id, text)

    def verify(self, topic_id: str) -> dict[str, list[str]]:
        """Compare a topic's files with the record of what was fetched.

        Returns the files by kind of difference: `modified`, `missing`, `unknown` and `unreadable`
        ones, and `problems`, the reasons why the topic itself cannot be read. Raises only
        UnknownReferenceError.
        """
        self.require(topic_id)
        directory = self.directory(topic_id)
        problems = []
        try:
            self.read(topic_id)
        except KbError as error:
            problems.append(str(error))
        differences = topic_directory.compare({}, {})
        try:
            recorded = topic_directory.read_provenance(directory).files
            differences = topic_directory.compare(recorded, topic_directory.hash_fetched(directory))
        except KbError as error:
            problems.append(str(error))
        return differences | {"problems": problems}

    def delete(self, topic_id: str) -> None:
        """Delete a topic and its index."""
        # Imported here, since sqlite3 is slow to import.
        from llm_kb.search.index.index import forget_topics  # noqa: PLC0415

        with self.lock(topic_id, create=False):
            self.require(topic_id)
            self._trash(self.directory(topic_id))
            approval = self._approval(topic_id)
            with writing(approval), suppress(NotADirectoryError):
                approval.unlink(missing_ok=True)
            forget_topics(self.index, (topic_id, DESCRIPTIONS))


def open_library(config: Config, user_dir: Path, cwd: Path | None = None) -> Library:
    """Return the reference topics of a user, under the settings of a configuration."""
    settings = read_settings(config)
    return Library(
        root=settings.dir or user_dir / DIRECTORY,
        settings=settings,
        own=user_dir / DIRECTORY,
        workspace=config.workspace or cwd,
    )
