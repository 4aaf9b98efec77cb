"""Fetch planned sources into a staging directory, and record the origin of each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from llm_kb.errors import KbError
from llm_kb.files.atomic import WriteError
from llm_kb.references.errors import (
    FetchError,
    PlanChangedError,
    TopicTooLargeError,
    refuse_hostile,
)
from llm_kb.references.fetch.staging import Staged
from llm_kb.references.plan.make import Progress, Step
from llm_kb.references.plan.plan import PlannedSource
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.plan.source import explain
from llm_kb.references.sources.file_names import page_key, page_name, page_path, unused_name
from llm_kb.references.sources.git import GitFile
from llm_kb.references.sources.http import anywhere
from llm_kb.references.sources.local import list_local, read_local, stat_tag
from llm_kb.references.sources.records import (
    ArchiveSource,
    CrawlSource,
    GitSource,
    LocalSource,
    PlannedPage,
    Source,
    TreeSource,
    WebSource,
)
from llm_kb.references.sources.web import Conditions, Page, fetch_page
from llm_kb.references.topic.links import PageLinks
from llm_kb.references.topic.provenance import FileRecord, hash_content
from llm_kb.references.topic.topic_directory import RESERVED


def fetch_sources(
    sources: Sequence[PlannedSource], staged: Staged, remotes: Remotes, progress: Progress
) -> None:
    """Fetch every source; one that fails is a warning, and keeps its old files.

    Raises PlanChangedError if a source differs from the approved plan, and
    TopicTooLargeError if all of them together exceed `max_bytes`.
    """
    folders = choose_folders([planned.source for planned in sources], staged.old.files)
    for index, planned in enumerate(sources):
        fetcher = _Fetcher(index, planned, folders.get(index, ""), staged, remotes, progress)
        try:
            with refuse_hostile(planned.source.url):
                fetcher.run()
        except (PlanChangedError, TopicTooLargeError, WriteError):
            raise
        except KbError as error:
            staged.warnings.append(str(error))
            staged.fail_source(index)
    _link_pages(staged)


def _link_pages(staged: Staged) -> None:
    """Make links between pages relative, after all pages have their names."""
    links = PageLinks(staged.directory, staged.files)
    for path, record in links.pages.items():
        data = staged.read(path)
        linked = links.localize(path, data.decode("utf-8", "replace")).encode()
        # A file that was edited here is not changed.
        if linked != data and hash_content(data) == record.hash:
            staged.rewrite(path, linked)
        staged.reuse(path)


@dataclass(frozen=True, slots=True)
class _Fetcher:
    """Fetches one source into a folder of the staging directory."""

    index: int
    planned: PlannedSource
    folder: str
    staged: Staged
    remotes: Remotes
    progress: Progress

    def run(self) -> None:
        """Fetch the source. Raises KbError."""
        source = self.planned.source
        if self.planned.problem:
            raise FetchError(source.url, self.planned.problem)
        if isinstance(source, GitSource):
            self._fetch_git(source)
        elif isinstance(source, LocalSource | ArchiveSource):
            self._fetch_local(source)
        else:
            self._fetch_pages()

    def _fetch_git(self, source: GitSource) -> None:
        planned = self.planned
        repository = self.remotes.open(source)
        tree = repository.tree(source)
        files = tree.files
        is_measured = not planned.is_unchanged
        if is_measured and len(files) != planned.files:
            raise PlanChangedError(
                source.url, f"{planned.files:,} files planned, {len(files):,} found"
            )
        prefix = _prefix(source, self.folder, [file.path for file in files])
        wanted = [file for file in files if not self._keep_blob(source, file, prefix + file.path)]
        fetched = repository.fetch_blobs(wanted)
        size = sum(file.size or 0 for file in fetched)
        if is_measured and planned.size is not None and size > planned.size:
            raise PlanChangedError(source.url, f"{planned.size:,} bytes planned, {size:,} found")
        for done, (file, data) in enumerate(repository.read(fetched), 1):
            record = FileRecord(
                source=self.index,
                url=source.url,
                revision=source.ref,
                commit=repository.commit,
                blob=file.blob,
            )
            self.staged.write(prefix + file.path, data, record)
            self._report(done, len(fetched))

    def _keep_blob(self, source: GitSource, file: GitFile, path: str) -> bool:
        old = self._recorded(path)
        if old is None or old.blob != file.blob:
            return False
        record = replace(
            old,
            url=source.url,
            commit=source.commit,
            revision=source.ref,
            fetched_at=self.staged.now,
        )
        return self.staged.keep(path, record)

    def _fetch_local(self, source: LocalSource | ArchiveSource) -> None:
        place = self.remotes.locate(source)
        tree = list_local(place, self.remotes.policy.max_bytes)
        files = [file.path for file in tree.files]
        prefix = _prefix(source, self.folder, files)
        revision = source.hash if isinstance(source, ArchiveSource) else None
        for done, (path, data) in enumerate(read_local(place, files), 1):
            old = self._recorded(prefix + path)
            record = FileRecord(
                source=self.index,
                url=source.url,
                revision=revision,
                etag=None if revision else stat_tag(place, path),
            )
            same = old is not None and old.hash == hash_content(data)
            kept = replace(old, etag=record.etag) if old and same else None
            if not (kept and self.staged.keep(prefix + path, kept)):
                self.staged.write(prefix + path, data, record)
            self._report(done, len(files))

    def _fetch_pages(self) -> None:
        planned, source, old = self.planned, self.planned.source, self.staged.old
        # First, so that no new page takes their names.
        for path in planned.kept:
            self.staged.keep_as_it_is(path, old.files[path])
        failed: list[FetchError] = []
        for done, page in enumerate(planned.pages, 1):
            try:
                with refuse_hostile(page.url):
                    self._fetch_page(page)
            except (PlanChangedError, TopicTooLargeError):
                raise
            except FetchError as error:
                failed.append(error)
                if before := old.find_page(self.index, page.url):
                    self.staged.keep_as_it_is(*before)
            self._report(done, len(planned.pages))
        if len(failed) == len(planned.pages):
            reasons = dict.fromkeys(explain(error, source) for error in failed)
            raise FetchError(source.url, "; ".join(reasons))
        self.staged.warnings += map(str, failed)

    def _fetch_page(self, page: PlannedPage) -> None:
        """Write a page, or take it over from the old topic if it has not changed."""
        old = self.staged.old.find_page(self.index, page.url)
        planned = self.planned
        if page.url in planned.read:
            fetched = planned.read[page.url]
        else:
            known = old[1].conditions if old else None
            fetched = self._request(page, known)
        if fetched is None and old and self.staged.keep(*old):
            return
        if fetched is None:
            # Its file was changed or deleted here, so the whole page is requested again.
            fetched = self._request(page, None)
        if fetched is None:
            raise FetchError(page.url, "the server did not send it again")
        data = fetched.text.encode()
        record = FileRecord(
            source=self.index,
            # A crawl finds its pages by the addresses planned.
            url=fetched.url if isinstance(planned.source, WebSource) else page.url,
            etag=fetched.etag,
            last_modified=fetched.last_modified,
        )
        self.staged.write(self._name_page(record, old[0] if old else None), data, record)

    def _request(self, page: PlannedPage, known: Conditions | None) -> Page | None:
        """Fetch a page; one of a crawl only from the address that was planned."""
        is_crawled = isinstance(self.planned.source, CrawlSource)
        allows = partial(_is_same, page.url) if is_crawled else anywhere
        hosts = self.planned.hosts
        return fetch_page(page, self.remotes.policy, hosts=hosts, known=known, allows=allows)

    def _name_page(self, record: FileRecord, old: str | None) -> str:
        """Choose the path of a page: its old one, or one that no other page has or keeps."""
        is_crawled = isinstance(self.planned.source, CrawlSource)
        name = old or (page_path(record.url) if is_crawled else page_name(record.url))
        stay = {page.url for page in self.planned.pages}
        before = self.staged.old.of_source(record.source)
        kept = [path for path, known in before.items() if known.url in stay and path != old]
        return unused_name(name, [*self.staged.files, *RESERVED, *kept])

    def _report(self, done: int, total: int) -> None:
        self.progress(Step("fetching", self.planned.source.url), done, total)

    def _recorded(self, path: str) -> FileRecord | None:
        """Return the old topic's record of a source's file."""
        record = self.staged.old.files.get(path)
        return record if record and record.source == self.index else None


def _is_same(url: str, other: str) -> bool:
    return page_key(url) == page_key(other)


def choose_folders(sources: Sequence[Source], old: Mapping[str, FileRecord]) -> Mapping[int, str]:
    """Give each repository and directory a folder of its own if there are several.

    A folder with `old` files of another source stays that source's, which may fail
    and keep them.
    """
    trees = [
        (index, source) for index, source in enumerate(sources) if isinstance(source, TreeSource)
    ]
    if len(trees) < 2:
        return {}
    folders: dict[int, str] = {}
    for index, source in trees:
        name = source.name.lstrip(".") or "files"
        others = {path.split("/")[0] for path, record in old.items() if record.source != index}
        folders[index] = unused_name(name, [*folders.values(), *others])
    return folders


def _prefix(source: TreeSource, folder: str, paths: Sequence[str]) -> str:
    """Return the folder of a source's files, with its `/`; empty for the topic itself.

    A source needs a folder if one of its files would replace one of ours.
    """
    reserved = {name.casefold() for name in RESERVED}
    if not folder and any(path.split("/")[0].casefold() in reserved for path in paths):
        folder = source.name.lstrip(".") or "files"
    return f"{folder}/" if folder else ""
