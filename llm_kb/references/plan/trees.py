"""Sources that hold files with paths: repositories, directories of this machine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from llm_kb.references.errors import FetchError, PlanChangedError
from llm_kb.references.plan.kind import Kind
from llm_kb.references.plan.package import follow_package
from llm_kb.references.plan.plan import PlannedSource
from llm_kb.references.sources.git import GitFile, Tree
from llm_kb.references.sources.local import list_local, read_local, stat_tag
from llm_kb.references.sources.records import GitSource, LocalSource
from llm_kb.references.topic.provenance import FileRecord, hash_content, total_size
from llm_kb.references.topic.staging import Staged, asks_the_same
from llm_kb.references.topic.topic_directory import RESERVED

T = TypeVar("T", GitSource, LocalSource)


class _TreeKind(Kind[T]):
    """A source of files with paths."""

    def fetch(self, planned: PlannedSource, staged: Staged, folder: str) -> None:
        """Write the files that are new, and keep the old topic's that are the same."""
        files = self._list(planned)
        prefix = self._prefix(folder, [file.path for file in files])
        for done, (file, data, record) in enumerate(self._read(planned, files, staged, prefix), 1):
            if data is not None:
                staged.write(prefix + file.path, data, record)
            self.report(done, len(files))

    @abstractmethod
    def _list(self, planned: PlannedSource) -> Sequence[GitFile]:
        """Return the files to fetch."""

    @abstractmethod
    def _read(
        self, planned: PlannedSource, files: Sequence[GitFile], staged: Staged, prefix: str
    ) -> Iterator[tuple[GitFile, bytes | None, FileRecord]]:
        """Yield files with their content and records; kept ones have None for content."""

    def _planned(self, source: T, tree: Tree) -> PlannedSource:
        return PlannedSource(
            source=source,
            files=len(tree.files),
            size=sum(file.size or 0 for file in tree.files),
            notes=(*filter(None, [source.package]), *tree.notes),
            tree=tree,
        )

    def _unchanged(self, source: T) -> PlannedSource:
        """Return the plan of a source whose files are unchanged."""
        size = total_size(self.records.values())
        return PlannedSource(source=source, files=len(self.records), size=size, is_unchanged=True)

    def _prefix(self, folder: str, paths: Sequence[str]) -> str:
        """Return the folder of the files, with its `/`; empty for the topic itself.

        A source needs a folder if one of its files would replace one of ours.
        """
        reserved = {name.casefold() for name in RESERVED}
        if not folder and any(path.split("/")[0].casefold() in reserved for path in paths):
            folder = self.source.folder
        return f"{folder}/" if folder else ""

    def _recorded(self, path: str) -> FileRecord | None:
        """Return the old topic's record of a file of this source."""
        record = self.old.files.get(path)
        return record if record and record.source == self.index else None


class GitKind(_TreeKind[GitSource]):
    """A repository: its files at one commit, identified by their blobs."""

    def plan(self) -> PlannedSource:
        """Find the commit; list the files unless it is the one that was fetched."""
        source, records = self.source, self.records
        if not self.old.is_new:
            source = follow_package(source, self.remotes)
        pinned = replace(source, commit=self.remotes.find_commit(source))
        is_same = asks_the_same(source, self.old.asked[self.index]) and all(
            record.commit == pinned.commit for record in records.values()
        )
        if records and is_same and pinned.commit == source.commit and self.old.has(records):
            return self._unchanged(pinned)
        sizes = {record.blob: record.size for record in records.values() if record.blob}
        return self._planned(pinned, self.remotes.measure(pinned, sizes))

    def _list(self, planned: PlannedSource) -> Sequence[GitFile]:
        if planned.tree:
            return planned.tree.files
        files = self.remotes.open(self.source).tree(self.source).files
        if not planned.is_unchanged and len(files) != planned.files:
            reason = f"{planned.files:,} files planned, {len(files):,} found"
            raise PlanChangedError(self.source.url, reason)
        return files

    def _read(
        self, planned: PlannedSource, files: Sequence[GitFile], staged: Staged, prefix: str
    ) -> Iterator[tuple[GitFile, bytes | None, FileRecord]]:
        wanted = []
        for file in files:
            record = self._keep_blob(file, staged, prefix + file.path)
            if record:
                yield file, None, record
            else:
                wanted.append(file)
        if not wanted:
            return
        repository = self.remotes.open(self.source)
        fetched = repository.fetch_blobs(wanted)
        size = sum(file.size or 0 for file in fetched)
        if not planned.is_unchanged and planned.size is not None and size > planned.size:
            reason = f"{planned.size:,} bytes planned, {size:,} found"
            raise PlanChangedError(self.source.url, reason)
        for file, data in repository.read(fetched):
            yield file, data, self._record(file)

    def _record(self, file: GitFile) -> FileRecord:
        return FileRecord(
            source=self.index,
            url=self.source.url,
            revision=self.source.ref,
            commit=self.source.commit,
            blob=file.blob,
        )

    def _keep_blob(self, file: GitFile, staged: Staged, path: str) -> FileRecord | None:
        """Keep the old topic's file if it has this blob; return its record then."""
        old = self._recorded(path)
        if old is None or old.blob != file.blob:
            return None
        new = replace(self._record(file), hash=old.hash, size=old.size, fetched_at=staged.now)
        return new if staged.keep(path, new) else None


class LocalKind(_TreeKind[LocalSource]):
    """A directory or file that a person named."""

    def plan(self) -> PlannedSource:
        """List the files, and compare them with the fetched ones."""
        source, records = self.source, self.records
        tree = list_local(source, self.remotes.policy.max_bytes)
        for path, reason in tree.unread.items():
            if any(f"/{path}" in f"/{known}" for known in records):  # the fetched files still exist
                raise FetchError(source.url, f"{path.rstrip('/')}: {reason}")
        is_unchanged = bool(records) and _are_same(source, tree, records) and self.old.has(records)
        return replace(self._planned(source, tree), is_unchanged=is_unchanged)

    def _list(self, planned: PlannedSource) -> Sequence[GitFile]:
        tree = planned.tree or list_local(self.source, self.remotes.policy.max_bytes)
        return tree.files

    def _read(
        self, planned: PlannedSource, files: Sequence[GitFile], staged: Staged, prefix: str
    ) -> Iterator[tuple[GitFile, bytes | None, FileRecord]]:
        by_path = {file.path: file for file in files}
        for path, data in read_local(self.source, by_path):
            tag = stat_tag(self.source, path)
            old = self._recorded(prefix + path)
            same = old is not None and old.hash == hash_content(data)
            kept = replace(old, etag=tag) if old and same else None
            is_kept = kept is not None and staged.keep(prefix + path, kept)
            record = FileRecord(source=self.index, url=self.source.url, etag=tag)
            yield by_path[path], None if is_kept else data, record


def _are_same(place: LocalSource, tree: Tree, records: Mapping[str, FileRecord]) -> bool:
    """Tell whether the files of a directory are as recorded."""
    paths = [file.path for file in tree.files]
    there = {path: hash_content(data) for path, data in read_local(place, paths)}
    # Whether the files have a folder of their own is not a change.
    first = min(there, default="")
    homes = [path for path in records if path == first or path.endswith(f"/{first}")]
    prefix = min(homes, key=len, default="").removesuffix(first)
    if {prefix + path: hash_ for path, hash_ in there.items()} != {
        path: record.hash for path, record in records.items()
    }:
        return False
    # Times are recorded again, so that the directory does not count as changed for ever.
    return all(
        not record.etag or record.etag == stat_tag(place, path.removeprefix(prefix))
        for path, record in records.items()
    )
