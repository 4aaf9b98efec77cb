"""Carry out a plan into a staging directory: write the files, record where each is from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.references.errors import FetchError, PlanChangedError
from llm_kb.references.fetch_web import Page, fetch_page
from llm_kb.references.file_names import page_name, page_path, unused_name
from llm_kb.references.git_tree import GitFile
from llm_kb.references.plan import Plan, PlannedPage, PlannedSource
from llm_kb.references.provenance import FileRecord, Provenance, hash_content
from llm_kb.references.remotes import Remotes, read_local, walk_local
from llm_kb.references.sources import CrawlSource, GitSource, LocalSource
from llm_kb.references.store import RESERVED

Progress = Callable[[str, int, int], None]
"""Called with the source being fetched, its files fetched so far and in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldTopic:
    """What a refresh may take over: the directory and the record of the topic it replaces."""

    directory: Path
    provenance: Provenance


@dataclass(slots=True, kw_only=True)
class Staged:
    """A topic in the making: its directory, and what was put there so far."""

    directory: Path
    now: str
    old: OldTopic | None = None
    files: dict[str, FileRecord] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    failures: int = 0

    def write(self, path: str, data: bytes, record: FileRecord) -> None:
        """Write one file and record it; one whose name is taken is left out, and told."""
        target = self.directory / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(data)
        except (FileExistsError, NotADirectoryError):
            # Names that differ in case alone, on a disk that cannot tell them apart.
            self.warnings.append(f"{record.url}: {path!r} left out, another file has its name")
            return
        self.files[path] = replace(
            record, hash=hash_content(data), size=len(data), fetched_at=self.now
        )

    def recorded(self, index: int, path: str) -> FileRecord | None:
        """Return the record the old topic has of a source's file."""
        record = self.old.provenance.files.get(path) if self.old else None
        return record if record and record.source == index else None

    def keep_source(self, index: int) -> None:
        """Take over whatever a source gave the old topic, as it is there."""
        for path, record in (self.old.provenance.of_source(index) if self.old else {}).items():
            self.keep(path, record, verify=False)

    def keep(self, path: str, record: FileRecord, *, verify: bool = True) -> bool:
        """Take a file over from the old topic if it still is as recorded there.

        A hard link keeps its modification time, so that it is not indexed again.
        """
        if self.old is None:
            return False
        origin, target = self.old.directory / path, self.directory / path
        try:
            if origin.is_symlink() or target.exists():
                return False
            if verify and hash_content(origin.read_bytes()) != record.hash:
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(origin, target)
            except OSError:
                shutil.copy2(origin, target)
        except OSError:
            return False
        self.files[path] = record
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Fetches the sources of one plan into one staging directory."""

    remotes: Remotes
    staged: Staged
    progress: Progress = lambda *_: None
    pages: Mapping[str, Page | None] = field(default_factory=dict)
    """Pages asked for already, by URL; None for those that have not changed."""

    def fetch(self, plan: Plan) -> None:
        """Fetch every source of a plan; one that fails is a warning.

        What a failing source gave the old topic is taken over. Raises
        PlanChangedError when what is there is not what was approved.
        """
        folders = choose_folders(plan)
        for index, planned in enumerate(plan.sources):
            try:
                self._fetch_source(index, planned, folders.get(index, ""))
            except PlanChangedError:
                raise
            except KbError as error:
                self.staged.failures += 1
                self.staged.warnings.append(str(error))
                self.staged.keep_source(index)

    def _fetch_source(self, index: int, planned: PlannedSource, folder: str) -> None:
        source = planned.source
        if planned.problem:
            raise FetchError(source.url, planned.problem)
        if isinstance(source, GitSource):
            self._fetch_git(index, planned, source, folder)
        elif isinstance(source, LocalSource):
            self._fetch_local(index, source, folder)
        else:
            self._fetch_pages(index, planned)

    def _fetch_git(
        self, index: int, planned: PlannedSource, source: GitSource, folder: str
    ) -> None:
        repository = self.remotes.open(source)
        files = repository.tree(source).files
        if len(files) != planned.files:
            raise PlanChangedError(
                source.url, f"{planned.files:,} files planned, {len(files):,} found"
            )
        prefix = _prefix(source, folder, [file.path for file in files])
        wanted = [file for file in files if not self._keep_blob(index, source, file, prefix)]
        fetched = repository.fetch_blobs(wanted)
        size = sum(file.size or 0 for file in fetched)
        if planned.size is not None and size > planned.size:
            raise PlanChangedError(source.url, f"{planned.size:,} bytes planned, {size:,} found")
        for done, (file, data) in enumerate(repository.read(fetched), 1):
            record = FileRecord(
                source=index,
                url=source.url,
                revision=source.ref,
                commit=repository.commit,
                blob=file.blob,
            )
            self.staged.write(prefix + file.path, data, record)
            self.progress(source.url, done, len(fetched))

    def _keep_blob(self, index: int, source: GitSource, file: GitFile, prefix: str) -> bool:
        old = self.staged.recorded(index, prefix + file.path)
        if old is None or old.blob != file.blob:
            return False
        record = replace(old, commit=source.commit, revision=source.ref, fetched_at=self.staged.now)
        return self.staged.keep(prefix + file.path, record)

    def _fetch_local(self, index: int, source: LocalSource, folder: str) -> None:
        files = [path for path, _ in walk_local(source)]
        prefix = _prefix(source, folder, files)
        for done, path in enumerate(files, 1):
            data = read_local(source, path)
            old = self.staged.recorded(index, prefix + path)
            record = FileRecord(source=index, url=source.url, fetched_at=self.staged.now)
            same = old is not None and old.hash == hash_content(data)
            if not (same and old and self.staged.keep(prefix + path, old)):
                self.staged.write(prefix + path, data, record)
            self.progress(source.url, done, len(files))

    def _fetch_pages(self, index: int, planned: PlannedSource) -> None:
        source = planned.source
        failed: list[str] = []
        for done, page in enumerate(planned.pages, 1):
            try:
                self._fetch_page(index, planned, page)
            except PlanChangedError:
                raise
            except FetchError as error:
                failed.append(str(error))
            self.progress(source.url, done, len(planned.pages))
        if len(failed) == len(planned.pages):
            raise FetchError(source.url, "; ".join(dict.fromkeys(failed)))
        self.staged.warnings += failed

    def _fetch_page(self, index: int, planned: PlannedSource, page: PlannedPage) -> None:
        """Write a page, or take it over from the old topic where it has not changed."""
        old = find_page(self.staged.old, index, page.url)
        fetched = self._ask(planned, page, old)
        if fetched is None and old and self.staged.keep(*old):
            return
        if fetched is None:
            # Its file was changed or deleted here: without conditions it is sent again.
            fetched = fetch_page(page, self.remotes.http, hosts=planned.hosts)
        if fetched is None:
            raise FetchError(page.url, "the server will not send it again")
        data = fetched.text.encode()
        record = FileRecord(
            source=index,
            url=page.url,
            hash=hash_content(data),
            size=len(data),
            fetched_at=self.staged.now,
            etag=fetched.etag,
            last_modified=fetched.last_modified,
        )
        if old and old[1].hash == record.hash and self.staged.keep(old[0], record):
            return
        is_crawled = isinstance(planned.source, CrawlSource)
        name = page_path(page.url) if is_crawled else page_name(page.url)
        self.staged.write(unused_name(name, [*self.staged.files, *RESERVED]), data, record)

    def _ask(
        self, planned: PlannedSource, page: PlannedPage, old: tuple[str, FileRecord] | None
    ) -> Page | None:
        if page.url in self.pages:
            return self.pages[page.url]
        known = {"etag": old[1].etag, "last_modified": old[1].last_modified} if old else None
        return fetch_page(page, self.remotes.http, hosts=planned.hosts, known=known)


def choose_folders(plan: Plan) -> Mapping[int, str]:
    """Give each repository and directory its own folder where there are several of them."""
    trees = [
        (index, planned.source)
        for index, planned in enumerate(plan.sources)
        if isinstance(planned.source, GitSource | LocalSource)
    ]
    if len(trees) < 2:
        return {}
    folders: dict[int, str] = {}
    for index, source in trees:
        name = source.name.lstrip(".") or "files"
        folders[index] = unused_name(name, folders.values())
    return folders


def find_page(old: OldTopic | None, index: int, url: str) -> tuple[str, FileRecord] | None:
    """Return path and record of a page in the topic to be replaced."""
    if old is None:
        return None
    records = old.provenance.of_source(index).items()
    return next(((path, record) for path, record in records if record.url == url), None)


def _prefix(source: GitSource | LocalSource, folder: str, paths: Sequence[str]) -> str:
    """Return the folder of a source's files, with its `/`; empty for the topic itself.

    Where one of them would take the place of a file of ours, it needs a folder.
    """
    reserved = {name.casefold() for name in RESERVED}
    if not folder and any(path.split("/")[0].casefold() in reserved for path in paths):
        folder = source.name.lstrip(".") or "files"
    return f"{folder}/" if folder else ""
