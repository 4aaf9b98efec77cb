"""Network access of one run: the user's limits, and the repositories and pages already open."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from llm_kb.git.run import GitError, find_program, run_gh
from llm_kb.references.errors import FetchError
from llm_kb.references.sources.addresses import Policy
from llm_kb.references.sources.git import (
    GitFile,
    Repositories,
    Repository,
    Tree,
    find_commit,
    select_files,
)
from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import check_git_url

_REPOSITORY = re.compile(r"/([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9_.][A-Za-z0-9_.-]*?)(?:\.git)?/?")
_NOT_USABLE = frozenset({4, 127})
"""Exit codes of a gh that is logged out, and of a missing gh."""


def _credentials(source: GitSource) -> dict[str, str]:
    """Return settings that let git log in as gh does; none where gh is of no use."""
    if _name_on_github(source) is None or find_program("gh") is None:
        return {}
    # git runs the value as a command; it is constant.
    return {"credential.https://github.com.helper": "!gh auth git-credential"}


def _name_on_github(source: GitSource) -> str | None:
    """Return `owner/name` of a repository on GitHub; None for other hosts."""
    split = urlsplit(source.url)
    if split.hostname not in {"github.com", "www.github.com"} or split.scheme != "https":
        return None
    found = _REPOSITORY.fullmatch(split.path)
    return f"{found[1]}/{found[2]}" if found else None


def _find_on_github(source: GitSource, timeout: float) -> str | None:
    """Return the current commit of a source's revision; None if gh cannot be used."""
    ref = quote(source.ref or "HEAD", safe="")
    answer = _api(source, f"commits/{ref}", timeout)
    return None if answer is None else str(answer["sha"])


def _list_on_github(source: GitSource, timeout: float) -> Tree | None:
    """Return the wanted files of a source's commit with their sizes.

    None if gh cannot be used, or if the repository has more files than GitHub lists
    at once.
    """
    answer = _api(source, f"git/trees/{source.commit}?recursive=1", timeout)
    if answer is None or answer.get("truncated"):
        return None
    entries = [
        GitFile(path=item["path"], blob=item["sha"], size=item.get("size"), mode=item["mode"])
        for item in answer["tree"]
        if item["type"] != "tree"
    ]
    return select_files(source, entries)


def _api(source: GitSource, what: str, timeout: float) -> dict[str, Any] | None:
    """Return GitHub's data on a repository; None if it is elsewhere, or gh cannot be used."""
    name = _name_on_github(source)
    if name is None:
        return None
    endpoint = f"repos/{name}/{what}"
    try:
        printed = run_gh("api", "--method", "GET", endpoint, timeout=timeout)
        answer = json.loads(printed)
    except GitError as error:
        if error.code in _NOT_USABLE:
            return None
        raise FetchError(source.url, f"gh: {error.stderr.strip() or error}") from error
    except ValueError as error:
        raise FetchError(source.url, f"gh answered with what is not JSON: {error}") from error
    if not isinstance(answer, dict) or not {"sha", "tree"} & answer.keys():
        raise FetchError(source.url, f"gh answered without a commit or files to {endpoint}")
    return answer


PLAN_TIMEOUTS = 30
"""Time limit for a whole plan, as a multiple of the timeout of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remotes:
    """The network access to sources, under the settings of the user layer."""

    policy: Policy
    repositories: Repositories
    workspace: Path | None = None
    """The directory whose installed packages count; None for none."""

    def while_planning(self) -> Remotes:
        """Return a copy with a deadline for planning, so that a slow site cannot hang it.

        It is as long as git's time limit for one repository.
        """
        until = time.monotonic() + PLAN_TIMEOUTS * self.policy.timeout
        return replace(self, policy=replace(self.policy, until=until))

    def find_commit(self, source: GitSource) -> str:
        """Return the current commit of a source's revision, in one request."""
        check_git_url(source.url, source.url, self.policy.allow_protocols)
        return _find_on_github(source, self.policy.timeout) or find_commit(source, self.policy)

    def list_files(self, source: GitSource) -> Tree:
        """Return the files of a source's commit, with their sizes where GitHub tells them."""
        found = _list_on_github(source, self.policy.timeout)
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

    def open(self, source: GitSource) -> Repository:
        """Return the repository of a source with the trees of its commit."""
        return self.repositories.open(source, _credentials(source))


def check_count(url: str, files: int, policy: Policy) -> None:
    """Raise FetchError if a source has more files than the user's limit."""
    if files > policy.max_files:
        raise FetchError(
            url,
            f"it has {files:,} files, over max_files ({policy.max_files:,}); narrow it by paths",
        )
