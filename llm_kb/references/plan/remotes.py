"""Network access of one run: the user's limits, and the repositories and pages already open."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from llm_kb.references.errors import FetchError
from llm_kb.references.sources import github
from llm_kb.references.sources.addresses import Policy
from llm_kb.references.sources.archive import TARS, ZIPS
from llm_kb.references.sources.git import Repositories, Repository, Tree, find_commit
from llm_kb.references.sources.http import request
from llm_kb.references.sources.records import ArchiveSource, GitSource, LocalSource
from llm_kb.references.sources.rules import check_git_url, host_and_port

MAX_ARCHIVE_BYTES = 100_000_000
"""The largest archive, whatever `max_bytes` allows."""

PLAN_TIMEOUTS = 30
"""Time limit for a whole plan, as a multiple of the timeout of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remotes:
    """The network access to sources, under the settings of the user layer."""

    policy: Policy
    repositories: Repositories
    workspace: Path | None = None
    """The directory whose installed packages count; None for none."""
    archives: dict[str, Path] = field(default_factory=dict)
    """Fetched archives, keyed by hash, until the run ends."""

    def while_planning(self) -> Remotes:
        """Return a copy with a deadline for planning, so that a slow site cannot hang it.

        It is as long as git's time limit for one repository.
        """
        until = time.monotonic() + PLAN_TIMEOUTS * self.policy.timeout
        return replace(self, policy=replace(self.policy, until=until))

    def find_commit(self, source: GitSource) -> str:
        """Return the current commit of a source's revision, in one request."""
        check_git_url(source.url, source.url, self.policy.allow_protocols)
        return github.find_commit(source, self.policy.timeout) or find_commit(source, self.policy)

    def list_files(self, source: GitSource) -> Tree:
        """Return the files of a source's commit, with their sizes where GitHub tells them."""
        found = github.list_files(source, self.policy.timeout)
        return found or self.open(source).tree(source)

    def measure(self, source: GitSource, known: Mapping[str, int] | None = None) -> Tree:
        """Return the files of a source with their sizes; those of `known` blobs are given.

        Servers other than GitHub do not report sizes, so the files are fetched into a temporary
        repository, which lasts for this run and supplies them if the plan is approved.
        """
        tree = self.list_files(source)
        check_count(source.url, len(tree.files), self.policy)
        files = [
            file if file.size is not None else replace(file, size=(known or {}).get(file.blob))
            for file in tree.files
        ]
        unknown = [file for file in files if file.size is None]
        weighed = {f.path: f for f in self.open(source).fetch_blobs(unknown)} if unknown else {}
        return replace(tree, files=tuple(weighed.get(file.path, file) for file in files))

    def locate(self, source: ArchiveSource) -> LocalSource:
        """Return the local path of an archive, which is fetched once."""
        if source.hash not in self.archives:
            self.archives[source.hash] = self._download(source.url, source.hash)
        return LocalSource(url=self.archives[source.hash].as_posix(), paths=source.paths)

    def _download(self, url: str, known: str) -> Path:
        """Fetch an archive to a temporary path; raise FetchError unless it has the known hash.

        Raises PlanChangedError if it leads to another host.
        """
        answer = request(url, self.policy, hosts={host_and_port(url)}, most=MAX_ARCHIVE_BYTES)
        if answer.status != 200:
            raise FetchError(url, f"the server answered {answer.status}")
        algorithm, _, digits = known.partition(":")
        if hashlib.new(algorithm, answer.body).hexdigest() != digits:
            raise FetchError(url, f"it is not the file whose {algorithm} is known")
        name = PurePosixPath(urlsplit(url).path).name
        suffix = next((s for s in (*ZIPS, *TARS) if name.endswith(s)), None)
        if suffix is None:
            raise FetchError(url, f"{name!r} is not an archive that can be read")
        path = self.repositories.make_directory() / f"archive{suffix}"
        path.write_bytes(answer.body)
        return path

    def open(self, source: GitSource) -> Repository:
        """Return the repository of a source with the trees of its commit."""
        return self.repositories.open(source, github.credentials(source))


def check_count(url: str, files: int, policy: Policy) -> None:
    """Raise FetchError if a source has more files than the user's limit."""
    if files > policy.max_files:
        raise FetchError(
            url,
            f"it has {files:,} files, over max_files ({policy.max_files:,}); narrow it by paths",
        )
