"""Preview the sources of a topic, and fetch them into a staging directory, each in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import WriteError
from llm_kb.files.containment import read_regular
from llm_kb.references.errors import FetchError, TopicTooLargeError, refuse_hostile
from llm_kb.references.plan import PlannedSource, is_more
from llm_kb.references.sources import records, rules
from llm_kb.references.sources.crawl import Count, Crawl, find_pages
from llm_kb.references.sources.git import Remotes, find_commit, select_files
from llm_kb.references.sources.installed import find_installed
from llm_kb.references.sources.packages import (
    REGISTRIES,
    explain_tag,
    follow_package,
    get_json,
    index_url,
    resolve_package,
)
from llm_kb.references.sources.rules import host_and_port
from llm_kb.references.sources.web import Page, find_page, no_text
from llm_kb.references.topic.staging import PageLinks, Staged, asks_the_same
from llm_kb.references.topic.topic_directory import RESERVED, FileRecord, hash_content
from llm_kb.rendering.plain_text import count, format_size
from llm_kb.texts.formats import is_pointer

Progress = Callable[[str, int, int], None]
"""Called with the step, the work done and the total, 0 if it is unknown; no step is the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One source of a staged topic; it `has_folder` of its own among several repositories."""

    index: int
    asked: records.Source
    staged: Staged
    remotes: Remotes
    has_folder: bool
    progress: Count
    shown: PlannedSource | None

    @property
    def old_files(self) -> Mapping[str, FileRecord]:
        """The files that the source gave to the old topic."""
        return self.staged.old.of_source(self.index)

    @property
    def policy(self) -> rules.Policy:
        """The rules for pages, which lead to approved hosts alone if the topic is old."""
        policy, approved = self.remotes.policy, self.staged.old.approved
        if approved is None:
            return policy
        return replace(policy, hosts=approved | {host_and_port(self.asked.url)})

    def measure(
        self, source: records.Source, notes: Sequence[str] = (), hosts: Iterable[str] = ()
    ) -> PlannedSource:
        """Return the source with what it has given to the staged topic."""
        files = [each for each in self.staged.files.values() if each.source == self.index]
        hosts = [_asked_host(self.asked), _asked_host(source), *hosts]
        return PlannedSource(
            source=source,
            files=len(files),
            size=sum(each.size for each in files),
            notes=tuple(notes),
            hosts=tuple(dict.fromkeys(filter(None, hosts))),
        )


def fetch_sources(
    sources: Sequence[records.Source],
    staged: Staged,
    remotes: Remotes,
    progress: Progress,
    shown: Sequence[PlannedSource] = (),
) -> tuple[PlannedSource, ...]:
    """Fetch every source, as far as it was shown; one that fails gets a problem, keeps old files.

    Raises TopicTooLargeError if all of them together exceed the limits.
    """
    has_folders = sum(source.is_tree for source in sources) > 1
    fetched = []
    for index, source in enumerate(sources):
        task = _Task(
            index=index,
            asked=source,
            staged=staged,
            remotes=remotes,
            has_folder=has_folders,
            progress=partial(progress, source.url.partition("://")[2]),
            shown=shown[index] if shown else None,
        )
        task.progress(0, 0)
        try:
            with refuse_hostile(source.url):
                planned = _fetch_source(task, source)
        except (TopicTooLargeError, WriteError):
            raise
        except KbError as error:
            failure = _of_source(error, source.url)
            staged.warnings.append(str(failure))
            staged.fail_source(index)
            planned = task.measure(source, hosts=filter(None, [failure.host]))
            planned = replace(planned, problem=failure.reason, is_complete=False)
        fetched.append(planned)
    progress("", 0, 0)
    _link_pages(staged)
    return tuple(fetched)


def _of_source(error: KbError, url: str) -> FetchError:
    """Return any error as that of the source with this address."""
    if not isinstance(error, FetchError):
        return FetchError(url, str(error))
    reason = error.reason if error.url == url else f"{error.url}: {error.reason}"
    return FetchError(url, reason, error.host)


def _link_pages(staged: Staged) -> None:
    """Make links between pages relative, after all pages have their names."""
    links = PageLinks(staged.directory, staged.files)
    for path, record in links.pages.items():
        data = read_regular(staged.directory / path)
        linked = links.localize(path, data.decode("utf-8", "replace")).encode()
        # A file that was edited here is not changed.
        if linked != data and hash_content(data) == record.hash:
            staged.rewrite(path, linked)


def _fetch_source(task: _Task, source: records.Source) -> PlannedSource:
    """Fetch a source into the staged topic; raise KbError."""
    match source:
        case records.GitSource():
            found = _fetch_git(task, source)
        case records.PackageSource() if task.staged.old.is_new:
            found = _fetch_git(task, resolve_package(source, task.remotes))
        case records.PackageSource():
            reason = "only create looks packages up; write the repository into topic.md"
            raise FetchError(source.url, reason)
        case records.WebSource():
            found = _fetch_page(task, source)
        case records.CrawlSource():
            found = _fetch_crawl(task, source)
    if not found.files:
        raise FetchError(source.url, "; ".join(["it has no file to fetch", *found.notes]))
    return found


GITHUB = "https://api.github.com/repos/"


def preview_source(
    source: records.Source, policy: rules.Policy, workspace: Path | None
) -> PlannedSource:
    """Return a source with what is known of it, and the addresses that will be requested.

    Nothing that a model wrote is sent, but the name of a repository to GitHub.
    """
    planned = PlannedSource(source=source, hosts=tuple(filter(None, [_asked_host(source)])))
    if isinstance(source, records.GitSource):
        limits = f"at most {policy.max_files:,} files, {format_size(policy.max_bytes)}"
        unknown = replace(planned, notes=(f"how much it holds is not known; {limits}",))
        with suppress(FetchError, KeyError, TypeError, ValueError, AttributeError):
            return _ask_github(planned, source, policy) or unknown
        return unknown
    if isinstance(source, records.PackageSource):
        return _preview_package(planned, source, workspace)
    if isinstance(source, records.CrawlSource):
        note = f"and pages below it, {source.depth} links deep, with robots.txt and lists of pages"
        return replace(planned, notes=(note,))
    return planned


def _preview_package(
    planned: PlannedSource, source: records.PackageSource, workspace: Path | None
) -> PlannedSource:
    """Return a package with its repository, if the workspace knows it, else with its index."""
    package = find_installed(source.ecosystem, source.name, workspace)
    if package and package.repository and source.version in {None, package.version}:
        hosts = (*planned.hosts, host_and_port(package.repository))
        return replace(planned, notes=(f"leads to {package.repository}",), hosts=hosts)
    note = f"asks {index_url(source)} for its repository, which you are asked about then"
    return replace(planned, notes=(note,))


def _ask_github(
    planned: PlannedSource, source: records.GitSource, policy: rules.Policy
) -> PlannedSource | None:
    """Return a repository with the figures that GitHub has of its default branch, if any."""
    name = source.short_name
    if not records.ON_GITHUB.fullmatch(name):
        return None
    policy = replace(policy, hosts=frozenset({host_and_port(GITHUB)}))
    tree = get_json(f"{GITHUB}{name}/git/trees/HEAD?recursive=1", policy)
    found = {each["path"]: each for each in tree["tree"] if each["type"] != "tree"}
    entries = [(each["mode"], each["sha"], path) for path, each in found.items()]
    files, _ = select_files(source, entries)
    language = get_json(f"{GITHUB}{name}", policy).get("language")
    notes = ["these are the figures of its default branch"] if source.ref else []
    notes += ["GitHub does not list all of it"] if tree.get("truncated") else []
    return replace(
        planned,
        files=len(files),
        size=sum(max(0, int(found[path].get("size", 0))) for path in files),
        language=language if isinstance(language, str) else "",
        notes=tuple(notes),
    )


def _asked_host(source: records.Source) -> str:
    """Return the host that is contacted first; empty without one."""
    url = REGISTRIES[source.ecosystem] if isinstance(source, records.PackageSource) else source.url
    return host_and_port(url)


def _fetch_git(task: _Task, source: records.GitSource) -> PlannedSource:
    """Fetch the files of a repository at its present commit; those with the same blob are kept."""
    policy = task.remotes.policy
    rules.check_git_url(source.url, policy.protocols(source.url))
    if not task.staged.old.is_new:
        source = follow_package(source, task.remotes)
    pinned = replace(source, commit=find_commit(source, policy))
    notes = tuple(filter(None, [explain_tag(source)]))
    if _keep_commit(task, pinned):
        return task.measure(pinned, notes)
    repository = task.remotes.open(pinned)
    files, left_out = repository.list_files(pinned)
    most = policy.max_files
    if task.shown and is_more(task.shown, len(files)):
        return replace(task.measure(pinned), files=len(files))
    if len(files) > most:
        reason = f"it has {len(files):,} files, over max_files ({most:,}); narrow it by paths"
        raise FetchError(source.url, reason)
    folder = _choose_folder(task, source, files)
    wanted = {
        path: blob
        for path, blob in files.items()
        if not _keep_blob(task, pinned, folder + path, blob)
    }
    kept, pointers = len(files) - len(wanted), 0
    for done, (path, data) in enumerate(repository.read(wanted), kept + 1):
        if is_pointer(data):
            pointers += 1
        else:
            task.staged.write(folder + path, data, _record_blob(task, pinned, wanted[path]))
        task.progress(done, len(files))
    if pointers:
        left_out = [*left_out, f"left out: {count(pointers, 'file')} in Git LFS, never fetched"]
    return task.measure(pinned, (*notes, *left_out))


def _choose_folder(task: _Task, source: records.GitSource, paths: Iterable[str] = ()) -> str:
    """Return the folder of the files, with its `/`; empty for the topic itself.

    A source needs a folder if there are several repositories, or if one of its files would replace
    one of ours. A folder with files of another source stays that source's, which may fail and keep
    them.
    """
    if not task.has_folder and RESERVED.isdisjoint(path.split("/")[0].casefold() for path in paths):
        return ""
    files = [*task.staged.files.items(), *task.staged.old.files.items()]
    others = {path.split("/")[0] for path, record in files if record.source != task.index}
    return f"{rules.unused_name(source.folder, others)}/"


def _keep_commit(task: _Task, source: records.GitSource) -> bool:
    """Keep all files of the old topic if they are those of this commit."""
    files, old = task.old_files, task.staged.old
    folder = _choose_folder(task, source)
    is_same = asks_the_same(source, old.asked.get(task.index)) and all(
        record.commit == source.commit and path.startswith(folder) for path, record in files.items()
    )
    if not files or not is_same or not old.has(files):
        return False
    for path, record in files.items():
        task.staged.keep(path, replace(record, fetched_at=task.staged.now))
    return True


def _record_blob(task: _Task, source: records.GitSource, blob: str) -> FileRecord:
    return FileRecord(
        source=task.index,
        url=source.url,
        revision=source.ref,
        commit=source.commit,
        blob=blob,
    )


def _keep_blob(task: _Task, source: records.GitSource, path: str, blob: str) -> bool:
    """Keep the old topic's file if it has this blob; tell whether it was kept."""
    staged = task.staged
    old = staged.old.files.get(path)
    if old is None or (old.source, old.blob) != (task.index, blob):
        return False
    record = _record_blob(task, source, blob)
    return staged.keep(path, replace(record, hash=old.hash, size=old.size, fetched_at=staged.now))


def _fetch_page(task: _Task, source: records.WebSource) -> PlannedSource:
    """Fetch one page, at its own address, wherever that redirected before."""
    path, record = next(iter(task.old_files.items()), ("", None))
    known = record.conditions if record and task.staged.old.has({path: record}) else None
    page = find_page(source.url, task.policy, known=known)
    _write_page(task, page, rules.page_name(page.url), taken=())
    notes = [f"redirects to {page.url}"] if len(page.hosts) > 1 else []
    return task.measure(source, notes, page.hosts)


def _fetch_crawl(task: _Task, source: records.CrawlSource) -> PlannedSource:
    """Fetch the pages of a site.

    A page is gone if the server says so, or if no page leads to it any more. One
    that fails, or may be missing because another failed, keeps its earlier file.
    """
    old, files = task.staged.old, task.old_files
    # All pages of an edited source are read: an unchanged one may lead to others now.
    is_same = asks_the_same(source, old.asked.get(task.index))
    known = {
        record.url: record.conditions if is_same and old.has({path: record}) else {}
        for path, record in files.items()
    }
    crawl = find_pages(source, task.policy, known, task.progress)
    if not crawl.pages and crawl.failed:
        raise FetchError(source.url, next(iter(crawl.failed.values())))
    kept = _keep_missing(task, source, crawl)
    stay = [path for path, record in files.items() if record.url in crawl.pages]
    for page in crawl.pages.values():
        _write_page(task, page, rules.page_path(page.url), taken=stay)
    if not old.is_new:
        for url, reason in crawl.failed.items():
            more = "; its file is kept as it was" if url in kept else ""
            task.staged.warnings.append(f"{FetchError(url, reason)}{more}")
        if crawl.is_late:
            task.staged.warnings.append(f"{source.url}: {crawl.stopped}; files of others are kept")
    planned = task.measure(source, crawl.notes, crawl.contacted)
    return replace(planned, is_complete=not kept)


def _keep_missing(task: _Task, source: records.CrawlSource, crawl: Crawl) -> set[str]:
    """Keep the old files of pages that failed or may have been missed; return their addresses."""
    kept: set[str] = set()
    for path, record in task.old_files.items():
        is_gone = record.url in crawl.gone or not crawl.covers(record.url)
        is_missed = not crawl.is_whole and not is_gone
        has_room = len(crawl.pages) + len(kept) < source.max_pages
        is_found = record.url in crawl.pages or record.url in kept
        if not is_found and (record.url in crawl.failed or (is_missed and has_room)):
            task.staged.keep(path, record, edited=True)
            kept.add(record.url)
    return kept


def _write_page(task: _Task, page: Page, name: str, *, taken: Sequence[str]) -> None:
    """Write a page, or keep the old topic's file if it is unchanged.

    A page keeps its name; new pages do not take those of others that stay.
    """
    staged, files = task.staged, task.old_files
    path = next((path for path, record in files.items() if record.url == page.url), "")
    if page.text is None:
        if not path or not staged.keep(path, files[path]):
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
    unused = rules.unused_name(path or name, [*staged.files, *RESERVED, *others])
    staged.write(unused, page.text.encode(), record)
