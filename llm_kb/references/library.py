"""The reference topics of a user: list, describe, verify and delete them.

Planning, fetching and refreshing are in `fetch`, which a search never imports.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file
from llm_kb.files.containment import read_regular
from llm_kb.files.documents import find_size
from llm_kb.references.sources.installed import find_installed
from llm_kb.references.sources.records import Source, parse_package
from llm_kb.references.topic.provenance import Differences, compare
from llm_kb.references.topic.store import Store
from llm_kb.references.topic.topic_directory import hash_fetched, read_provenance
from llm_kb.references.topic.topic_file import TopicFile
from llm_kb.references.topic.topic_text import with_heading
from llm_kb.search.index.documents import File, find_left_out
from llm_kb.subjects.names import is_readable
from llm_kb.subjects.topics import Config, References

if TYPE_CHECKING:
    from llm_kb.references.sources.addresses import Resolver
    from llm_kb.search.index.vectors import Embedder

DIRECTORY = Path("kb", "references")
"""The directory of topics, below the host's user directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """All reference topics below one directory, under one user's settings."""

    root: Path
    settings: References = field(default_factory=References)
    find_embedder: Callable[[], Embedder | None] = lambda: None
    """Finds the user's embedding model, when texts are first embedded."""
    workspace: Path | None = None
    """The directory whose installed packages count; None for none."""
    resolver: Resolver | None = None
    """Resolves the names of hosts; None for the system's resolver."""
    clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    own: Path | None = None
    """The user's own directory, for what a person approved: `root` may be one that others write.
    None for `root`."""

    @property
    def store(self) -> Store:
        """The directories of the topics."""
        return Store(self.root)

    def topics(self) -> tuple[list[TopicFile], list[str]]:
        """Return the readable topics, sorted by id, and the problems of the others."""
        topics: list[TopicFile] = []
        problems = list(filter(None, [self.store.find_problem()]))
        for topic_id in self.store.ids():
            try:
                topics.append(self.read(topic_id))
            except KbError as error:
                problems.append(str(error))
        return topics, problems

    def read(self, topic_id: str) -> TopicFile:
        """Return a topic's `topic.md`; raise UnknownReferenceError or TopicFileError."""
        return self.store.open(topic_id).file

    def approved_hosts(self, topic_id: str) -> frozenset[str]:
        """Return the hosts that a person has approved for a topic, with unusual ports."""
        try:
            return frozenset(read_regular(self._approval(topic_id)).decode().split())
        except (OSError, UnicodeDecodeError):
            return frozenset()

    def approve_hosts(self, topic_id: str, hosts: Collection[str]) -> None:
        """Record that a person has approved hosts for a topic, in addition to earlier ones."""
        path = self._approval(topic_id)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = self.approved_hosts(topic_id)
        if not known.issuperset(hosts):
            replace_file(path, "\n".join(sorted(known.union(hosts))).encode(), new_mode=0o600)

    def _approval(self, topic_id: str) -> Path:
        """Return the path of a topic's approved hosts.

        Never in its own directory, which may be a copy that somebody else made.
        """
        directory = self.store.directory(topic_id)
        place = hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:16]
        return self.private / ".approved" / f"{topic_id}-{place}"

    @property
    def private(self) -> Path:
        """The directory for approved hosts and waiting plans."""
        return self.own or self.root

    def find_outdated(self, topic: TopicFile) -> str | None:
        """Return the reason why a topic is outdated on this machine; None if it seems current.

        The workspace has another version of a package, or a local directory has changed.
        """
        for index, source in enumerate(topic.sources):
            if source.is_local and self._has_changed(topic, index, source):
                return f"{source.url} has changed since it was fetched"
            if source.package:
                package = parse_package(source.package)
                installed = find_installed(package.ecosystem, package.name, self.workspace)
                if installed and installed.version != package.version:
                    return f"it is of {source.package}, but {installed.version} is installed here"
        return None

    def _has_changed(self, topic: TopicFile, index: int, source: Source) -> bool:
        # Imported here: few topics have such sources, and a search reads none.
        from llm_kb.references.sources.local import has_changed  # noqa: PLC0415

        since = topic.fetched_at.timestamp() if topic.fetched_at else 0
        try:
            files = read_provenance(self.store.directory(topic.id)).files
            tags = {path: file.etag for path, file in files.items() if file.source == index}
            return has_changed(source.url, tags, since)
        except (KbError, OSError):  # missing or unreadable, which a refresh reports
            return False

    def update(self, topic_id: str, changes: dict[str, Any], body: str | None = None) -> TopicFile:
        """Change a topic's description and return it; the fetched files stay as they are."""
        with self.store.lock(topic_id, create=False):
            topic = self.store.open(topic_id)
            body = None if body is None else with_heading(topic.file.title, body)
            changed = topic.change(changes, body)
            changed.write()
            return changed.file

    def verify(self, topic_id: str) -> Differences:
        """Compare a topic's files with the record of what was fetched.

        A topic that cannot be read differs: the result has the problem. Raises only
        UnknownReferenceError.
        """
        self.store.require(topic_id)
        directory = self.store.directory(topic_id)
        problems = []
        try:
            self.read(topic_id)
        except KbError as error:
            problems.append(str(error))
        try:
            recorded = read_provenance(directory).files
        except KbError as error:
            return Differences(problems=(*problems, str(error)))
        hashes = hash_fetched(directory)
        files = (File(path, find_size(directory / path), 0) for path in filter(is_readable, hashes))
        return replace(
            compare(recorded, hashes),
            problems=tuple(problems),
            not_searched=tuple(map(str, find_left_out(files))),
        )

    def delete(self, topic_id: str) -> None:
        """Delete a topic and its index."""
        # Imported here, since sqlite3 is slow to import.
        from llm_kb.search.index.index import forget_topic  # noqa: PLC0415

        with self.store.lock(topic_id, create=False):
            self.store.require(topic_id)
            self.store.delete(topic_id)
            self._approval(topic_id).unlink(missing_ok=True)
            forget_topic(self.store.index, topic_id)


def references_root(settings: References, user_dir: Path) -> Path:
    """Return the directory of all reference topics: `[kb.references] dir`, else the default."""
    return settings.dir or user_dir / DIRECTORY


def open_library(config: Config, user_dir: Path) -> Library:
    """Return the reference topics of a user, under the settings of a configuration."""
    return Library(
        root=references_root(config.references, user_dir),
        settings=config.references,
        own=user_dir / DIRECTORY,
    )
