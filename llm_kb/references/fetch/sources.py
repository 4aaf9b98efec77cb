"""Fetch the sources of a topic into a staging directory, each kind in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from llm_kb.errors import KbError
from llm_kb.files.atomic import WriteError
from llm_kb.references.errors import (
    FetchError,
    SourceError,
    TopicTooLargeError,
    refuse_hostile,
)
from llm_kb.references.plan import PlannedSource
from llm_kb.references.sources.crawl import Crawl, find_pages
from llm_kb.references.sources.git import GitFile, Remotes
from llm_kb.references.sources.installed import find_installed
from llm_kb.references.sources.packages import INDEXES, follow_package, resolve_package
from llm_kb.references.sources.records import (
    CrawlSource,
    GitSource,
    LocalSource,
    PackageSource,
    Source,
    WebSource,
)
from llm_kb.references.sources.rules import host_and_port, page_name, page_path, unused_name
from llm_kb.references.sources.web import Page, find_page, no_text
from llm_kb.references.topic.staging import PageLinks, Staged, asks_the_same
from llm_kb.references.topic.topic_directory import RESERVED, FileRecord, hash_content, total_size

Progress = Callable[[str, int, int], None]
"""Called with the step, the work done and the total; the total is 0 if it is unknown."""


def silent(_step: str, _done: int, _total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One source of a staged topic, and the folder for its files; empty for the topic itself."""

    index: int
    url: str
    staged: Staged
    remotes: Remotes
    folder: str
    progress: Progress

    @property
    def records(self) -> Mapping[str, FileRecord]:
        """The files that the source gave to the old topic."""
        return self.staged.old.of_source(self.index)

    @property
    def hosts(self) -> frozenset[str] | None:
        """The hosts that a page may lead to: of an old topic, approved ones; None for any."""
        old = self.staged.old
        return None if old.is_new else old.approved | {host_and_port(self.url)}

    def report(self, done: int, total: int) -> None:
        """Report how many files are fetched."""
        self.progress(f"fetching {self.url}", done, total)

    def measure(
        self, source: Source, notes: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> PlannedSource:
        """Return the source with what it has given to the staged topic."""
        records = [each for each in self.staged.files.values() if each.source == self.index]
        return PlannedSource(
            source=source,
            files=len(records),
            size=total_size(records),
            notes=tuple(notes),
            hosts=tuple(dict.fromkeys(filter(None, (host_and_port(self.url), *hosts)))),
        )


def fetch_sources(
    sources: Sequence[Source], staged: Staged, remotes: Remotes, progress: Progress
) -> tuple[PlannedSource, ...]:
    """Fetch every source; one that fails gets a problem, and keeps its old files.

    Raises TopicTooLargeError if all of them together exceed the limits.
    """
    is_new = staged.old.is_new
    found = [_resolve(source, remotes) if is_new else source for source in sources]
    folders = choose_folders(found, staged.old.files)
    fetched = []
    for index, (asked, source) in enumerate(zip(sources, found, strict=True)):
        task = _Task(
            index=index,
            url=asked.url if isinstance(source, FetchError) else source.url,
            staged=staged,
            remotes=remotes,
            folder=folders.get(index, ""),
            progress=progress,
        )
        progress(f"looking at {task.url}", 0, 0)
        try:
            if isinstance(source, FetchError):
                raise source
            with _explain(source):
                planned = _fetch_source(task, source)
        except TopicTooLargeError:
            raise
        except FetchError as error:
            staged.warnings.append(str(error))
            staged.fail_source(index)
            planned = replace(task.measure(asked), problem=error.reason, is_complete=False)
        if isinstance(asked, PackageSource):
            index_host = host_and_port(INDEXES[asked.ecosystem])
            planned = replace(planned, hosts=(index_host, *planned.hosts))
        fetched.append(planned)
    staged.check_size()
    _link_pages(staged)
    return tuple(fetched)


@contextmanager
def _explain(source: Source) -> Iterator[None]:
    """Turn every error of a source alone into a FetchError with its address."""
    try:
        with refuse_hostile(source.url):
            yield
    except (TopicTooLargeError, WriteError):
        raise
    except FetchError as error:
        reason = error.reason if error.url == source.url else f"{error.url}: {error.reason}"
        raise FetchError(source.url, reason) from error
    except KbError as error:
        reason = error.reason if isinstance(error, SourceError) else str(error)
        raise FetchError(source.url, reason) from error


def _resolve(source: Source, remotes: Remotes) -> Source | FetchError:
    """Return the repository of a package, or the reason why it has none; other sources as such."""
    if not isinstance(source, PackageSource):
        return source
    try:
        with _explain(source):
            return resolve_package(source, remotes)
    except FetchError as error:
        return error


def choose_folders(
    sources: Sequence[Source | FetchError], old: Mapping[str, FileRecord]
) -> Mapping[int, str]:
    """Give each repository and directory a folder of its own if there are several.

    A folder with `old` files of another source stays that source's, which may fail
    and keep them.
    """
    trees = [
        (index, source)
        for index, source in enumerate(sources)
        if not isinstance(source, FetchError) and source.is_tree
    ]
    folders: dict[int, str] = {}
    for index, source in trees if len(trees) > 1 else []:
        others = {path.split("/")[0] for path, record in old.items() if record.source != index}
        folders[index] = unused_name(source.folder, [*folders.values(), *others])
    return folders


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


def _fetch_source(task: _Task, source: Source) -> PlannedSource:
    """Fetch a source into the staged topic; raise KbError."""
    match source:
        case GitSource():
            found = _fetch_git(task, source)
        case PackageSource():
            reason = "only create looks packages up; write the repository into topic.md"
            raise FetchError(source.url, reason)
        case LocalSource():
            reason = "a directory of this machine is read in place: llm kb add ID DIRECTORY --user"
            raise FetchError(source.url, reason)
        case WebSource():
            found = _fetch_page(task, source)
        case CrawlSource():
            found = _fetch_crawl(task, source)
    if not found.files:
        raise FetchError(source.url, "; ".join(["it has no file to fetch", *found.notes]))
    return found


def preview_source(source: Source, remotes: Remotes) -> PlannedSource:
    """Return a source before anybody is contacted, with the repository if it is known here."""
    hosts, notes = [source.url], list[str]()
    if isinstance(source, PackageSource):
        hosts = [INDEXES[source.ecosystem]]
        package = find_installed(source.ecosystem, source.name, remotes.workspace)
        if package and package.repository:
            hosts.append(package.repository)
            notes.append(f"leads to {package.repository}")
    return PlannedSource(
        source=source,
        notes=tuple(notes),
        hosts=tuple(filter(None, map(host_and_port, hosts))),
    )


def _fetch_git(task: _Task, source: GitSource) -> PlannedSource:
    """Fetch the files of a repository at its present commit; those with the same blob are kept."""
    old = task.staged.old
    if not old.is_new:
        source = follow_package(source, task.remotes)
    pinned = replace(source, commit=task.remotes.find_commit(source))
    notes = tuple(filter(None, [source.package]))
    if _keep_commit(task, pinned):
        return task.measure(pinned, notes)
    repository = task.remotes.open(pinned)
    files, left_out = repository.list_files(pinned)
    most = task.remotes.policy.max_files
    if len(files) > most:
        reason = f"it has {len(files):,} files, over max_files ({most:,}); narrow it by paths"
        raise FetchError(source.url, reason)
    prefix = _prefix(task, source, [file.path for file in files])
    wanted = [file for file in files if not _keep_blob(task, pinned, prefix, file)]
    kept = len(files) - len(wanted)
    for done, (file, data) in enumerate(repository.read(repository.fetch_blobs(wanted)), kept + 1):
        task.staged.write(prefix + file.path, data, _record_blob(task, pinned, file))
        task.report(done, len(files))
    return task.measure(pinned, (*notes, *left_out))


def _keep_commit(task: _Task, source: GitSource) -> bool:
    """Keep all files of the old topic if they are those of this commit."""
    records, old = task.records, task.staged.old
    is_same = asks_the_same(source, old.asked[task.index]) and all(
        record.commit == source.commit and path.startswith(f"{task.folder}/" if task.folder else "")
        for path, record in records.items()
    )
    if not records or not is_same or not old.has(records):
        return False
    for path, record in records.items():
        task.staged.keep_as_it_is(path, replace(record, fetched_at=task.staged.now))
    return True


def _record_blob(task: _Task, source: GitSource, file: GitFile) -> FileRecord:
    return FileRecord(
        source=task.index,
        url=source.url,
        revision=source.ref,
        commit=source.commit,
        blob=file.blob,
    )


def _keep_blob(task: _Task, source: GitSource, prefix: str, file: GitFile) -> bool:
    """Keep the old topic's file if it has this blob; tell whether it was kept."""
    path = prefix + file.path
    old = task.records.get(path)
    if old is None or old.blob != file.blob:
        return False
    record = _record_blob(task, source, file)
    now = task.staged.now
    return task.staged.keep(path, replace(record, hash=old.hash, size=old.size, fetched_at=now))


def _prefix(task: _Task, source: Source, paths: Sequence[str]) -> str:
    """Return the folder of the files, with its `/`; empty for the topic itself.

    A source needs a folder if one of its files would replace one of ours.
    """
    reserved = {name.casefold() for name in RESERVED}
    folder = task.folder
    if not folder and any(path.split("/")[0].casefold() in reserved for path in paths):
        folder = source.folder
    return f"{folder}/" if folder else ""


def _fetch_page(task: _Task, source: WebSource) -> PlannedSource:
    """Fetch one page, at its own address, wherever that redirected before."""
    path, record = next(iter(task.records.items()), ("", None))
    known = record.conditions if record and task.staged.old.has({path: record}) else None
    page = find_page(source.url, task.remotes.policy, hosts=task.hosts, known=known)
    _write_page(task, page, page_name(page.url), taken=())
    return task.measure(source, _moved(source.url, page.url), page.hosts)


def _fetch_crawl(task: _Task, source: CrawlSource) -> PlannedSource:
    """Fetch the pages of a site.

    A page is gone if the server says so, or if no page leads to it any more. One
    that fails, or may be missing because another failed, keeps its earlier file.
    """
    old, records = task.staged.old, task.records
    # All pages of an edited source are read: an unchanged one may lead to others now.
    is_same_wish = asks_the_same(source, old.asked[task.index])
    known = {
        record.url: record.conditions if is_same_wish and old.has({path: record}) else {}
        for path, record in records.items()
    }
    progress = partial(task.progress, f"looking at {source.url}")
    crawl = find_pages(source, task.remotes.policy, known, progress, hosts=task.hosts)
    if not crawl.pages and crawl.failed:
        raise FetchError(source.url, next(iter(crawl.failed.values())))
    kept = _keep_missing(task, source, crawl)
    stay = [path for path, record in records.items() if record.url in crawl.pages]
    for page in crawl.pages.values():
        _write_page(task, page, page_path(page.url), taken=stay)
    if not old.is_new:
        for url, reason in crawl.failed.items():
            more = "; its file is kept as it was" if url in kept else ""
            task.staged.warnings.append(f"{FetchError(url, reason)}{more}")
    notes = (*_moved(source.url, crawl.start.url), *crawl.notes)
    planned = task.measure(source, notes, crawl.contacted)
    return replace(planned, is_complete=not kept)


def _keep_missing(task: _Task, source: CrawlSource, crawl: Crawl) -> set[str]:
    """Keep the old files of pages that failed or may have been missed; return their addresses."""
    kept: set[str] = set()
    for path, record in task.records.items():
        is_gone = record.url in crawl.gone or not crawl.covers(record.url)
        is_missed = not crawl.is_whole and not is_gone
        has_room = len(crawl.pages) + len(kept) < source.max_pages
        is_found = record.url in crawl.pages or record.url in kept
        if not is_found and (record.url in crawl.failed or (is_missed and has_room)):
            task.staged.keep_as_it_is(path, record)
            kept.add(record.url)
    return kept


def _write_page(task: _Task, page: Page, name: str, *, taken: Sequence[str]) -> None:
    """Write a page, or keep the old topic's file if it is unchanged.

    A page keeps its name; new pages do not take those of others that stay.
    """
    staged = task.staged
    path, before = staged.old.find_page(task.index, page.url) or ("", None)
    if page.text is None:
        if before is None or not staged.keep(path, before):
            raise FetchError(page.url, "its file was changed meanwhile; refresh the topic again")
        return
    if not page.text:
        raise no_text(page.url)
    record = FileRecord(
        source=task.index,
        url=page.url,
        etag=page.etag,
        last_modified=page.last_modified,
    )
    others = [other for other in taken if other != path]
    unused = unused_name(path or name, [*staged.files, *RESERVED, *others])
    staged.write(unused, page.text.encode(), record)


def _moved(asked: str, found: str) -> tuple[str, ...]:
    if host_and_port(asked) == host_and_port(found):
        return ()
    what = "port" if urlsplit(asked).hostname == urlsplit(found).hostname else "host"
    return (f"redirects to another {what}: {found}",)
