"""Commits and files of repositories on GitHub, through its command-line tool gh.

gh knows the user's login, so private repositories work. If gh is missing or logged out,
plain git is used instead.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, urlsplit

from llm_kb.git.run import GitError, find_program, run_gh
from llm_kb.references.errors import FetchError
from llm_kb.references.sources.git import GitFile, Tree, select_files
from llm_kb.references.sources.records import GitSource

_REPOSITORY = re.compile(r"/([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9_.][A-Za-z0-9_.-]*?)(?:\.git)?/?")
_NOT_USABLE = frozenset({4, 127})
"""Exit codes of a gh that is logged out, and of a missing gh."""


def credentials(source: GitSource) -> dict[str, str]:
    """Return settings that let git log in as gh does; none where gh is of no use."""
    if repository_name(source) is None or find_program("gh") is None:
        return {}
    # git runs the value as a command; it is constant.
    return {"credential.https://github.com.helper": "!gh auth git-credential"}


def repository_name(source: GitSource) -> str | None:
    """Return `owner/name` of a repository on GitHub; None for other hosts."""
    split = urlsplit(source.url)
    if split.hostname not in {"github.com", "www.github.com"} or split.scheme != "https":
        return None
    found = _REPOSITORY.fullmatch(split.path)
    return f"{found[1]}/{found[2]}" if found else None


def find_commit(source: GitSource, timeout: float) -> str | None:
    """Return the current commit of a source's revision; None if gh cannot be used."""
    ref = quote(source.ref or "HEAD", safe="")
    answer = _api(source, f"commits/{ref}", timeout)
    return None if answer is None else str(answer["sha"])


def list_files(source: GitSource, timeout: float) -> Tree | None:
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
    name = repository_name(source)
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
