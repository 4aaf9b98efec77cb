"""Reading the files of a repository at one commit, without a checkout.

Trees are fetched first, then exactly the wanted blobs, into a temporary bare repository.
Since there is no work tree, the repository's hooks, filters, submodules, links and
line-ending rules have no effect.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from itertools import accumulate, groupby
from pathlib import Path
from urllib.parse import urlsplit

from llm_kb.files import git
from llm_kb.files.walk import iter_files
from llm_kb.references.errors import FetchError, TooLargeError
from llm_kb.references.sources import rules
from llm_kb.references.sources.records import GitSource, compile_paths
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.editions import Edition, describe_editions, find_translations, list_places

SLACK_BYTES = 16_000_000
"""Bytes that a transfer may take on disk in addition to twice `max_bytes`."""

TRANSFER_PATIENCE = 30
"""Time limit for a whole transfer, as a multiple of the timeout of a request."""

MAX_SHOWN = 1000
"""Characters of git's messages in an error."""

_SAFE = {
    "credential.interactive": "false",
    # A redirect would lead to a host that was not checked or approved.
    "http.followRedirects": "false",
    "protocol.version": "2",
}


_NO_CONFIGURATION = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
}
"""The environment of git for a host that nobody approved: no helper, header, cookie, certificate
or rewritten address of the user's goes there."""

_WAY = frozenset({"http.proxy", "http.sslbackend", "http.sslcainfo", "http.sslcapath"})
"""The settings that such a host is reached by all the same; they hold no secret of its own."""

_NO_LOGIN = ("could not read Username", "Authentication failed", "terminal prompts disabled")


def _read_way(source: GitSource) -> dict[str, str]:
    """Return the user's settings that lead to a server, without those that log in to it."""
    command = ("config", "--null", "--get-urlmatch", "http", source.url)
    try:
        printed = git.run_git(*command, env={"GIT_DIR": os.devnull}, timeout=10)
    except git.GitError:  # there are none
        return {"http.emptyAuth": "false"}
    fields = (each.partition("\n") for each in printed.decode(errors="replace").split("\0"))
    found = {key.lower(): value for key, _, value in fields}
    return {key: found[key] for key in _WAY & found.keys()} | {"http.emptyAuth": "false"}


def ask_server(
    source: GitSource,
    policy: rules.Policy,
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    stdin: bytes = b"",
) -> bytes:
    """Return the output of a git command that talks to the source's server.

    With a `cwd` it may be a whole transfer, which has more time; the
    size of the directory is limited. Raises FetchError, and its kinds BlockedAddressError and
    TooLargeError.
    """
    most = 2 * policy.max_bytes + SLACK_BYTES
    too_large = TooLargeError(source.url, f"it is over max_bytes ({policy.max_bytes:,})")

    def watch() -> None:
        if cwd and _size(cwd) > most:
            raise too_large

    # A slow transfer may take long; a stalled one is ended.
    stalled = {"http.lowSpeedLimit": "1000", "http.lowSpeedTime": f"{policy.timeout:.0f}"}
    pinned, ssh_options = _pin(source, policy)
    ssh = git.git_environment().get("GIT_SSH_COMMAND", "ssh")
    environment = {
        "GIT_ALLOW_PROTOCOL": ":".join(
            sorted({*rules.GIT_PROTOCOLS, *policy.protocols(source.url)})
        ),
        "GIT_ASKPASS": "",
        "GIT_DIR": "." if cwd else os.devnull,
        "GIT_SSH_COMMAND": f"{ssh} -oBatchMode=yes{ssh_options}",
    }
    host = rules.host_and_port(source.url)
    if host and host not in policy.trusted:
        login, environment = _read_way(source), environment | _NO_CONFIGURATION
    else:
        login = _credentials(source)
    try:
        return git.run_git(
            *args,
            cwd=cwd,
            stdin=stdin,
            env=environment,
            server=True,
            settings=(_SAFE | stalled | login | pinned).items(),
            timeout=policy.timeout * (TRANSFER_PATIENCE if cwd else 1),
            watch=watch,
            max_file=most,
        )
    except git.GitError as error:
        watch()
        # Git's own words for the end of a process that it started.
        if error.code == -signal.SIGXFSZ or f"of signal {signal.SIGXFSZ:d}" in error.stderr:
            raise too_large from error
        raise FetchError(source.url, _explain(error)) from error


def run_offline(  # noqa: PLR0913 - what a process takes
    source: GitSource,
    policy: rules.Policy,
    args: Sequence[str],
    *,
    cwd: Path,
    stdin: bytes = b"",
    max_output: int = git.MAX_OUTPUT,
) -> bytes:
    """Return the output of a git command inside a fetched repository, without network.

    Raises FetchError; TooLargeError for more than `max_output` bytes.
    """
    try:
        return git.run_git(
            *args,
            cwd=cwd,
            stdin=stdin,
            env={"GIT_DIR": "."},
            settings=_SAFE.items(),
            timeout=policy.timeout,
            max_output=max_output,
        )
    except git.OutputTooLargeError as error:
        raise TooLargeError(source.url, f"git: {_message(error)}") from error
    except git.GitError as error:
        raise FetchError(source.url, f"git: {_message(error)}") from error


def _message(error: git.GitError) -> str:
    """Return git's message in one line, shortened, since a server may have written it."""
    message = " ".join(error.stderr.split()) or f"exit code {error.code}"
    return message if len(message) <= MAX_SHOWN else f"…{message[-MAX_SHOWN:]}"


_MOVED = re.compile(r"returned error: 30\d")
"""An HTTP status in a message of git, which follows no redirect here."""


def _explain(error: git.GitError) -> str:
    said = _message(error)
    if error.code == git.TIMED_OUT:
        return f"git {said}; raise timeout under [kb.references] in your own kb.toml"
    if any(sign in said for sign in _NO_LOGIN):
        return (
            f"git: {said}. It may need a login, which git does only for a host that you approved:"
            " name it yourself with llm kb references create --git"
        )
    if "redirect" in said or _MOVED.search(said):
        return f"git: {said}. The repository has moved: plan it under its new address"
    return f"git: {said}"


def _pin(source: GitSource, policy: rules.Policy) -> tuple[dict[str, str], str]:
    """Return git settings and ssh options that bind git to the checked addresses of the server.

    Without them a second answer of the name server could lead git elsewhere (DNS rebinding).
    """
    split = urlsplit(source.url)
    rules.require_approved(source.url, policy)
    if split.scheme == "file" or not split.hostname:
        return {}, ""
    host, port = split.hostname, split.port or rules.USUAL_PORTS[split.scheme]
    addresses = rules.resolve_host(source.url, host, port, policy)
    listed = [f"[{address}]" if ":" in address else address for address in addresses]
    if split.scheme == "ssh":
        # The server's key is still looked up under the server's name.
        return {}, f" -oHostName={addresses[0]} -oHostKeyAlias={host} -oCheckHostIP=no"
    # git 2.37 or later
    return {"http.curloptResolve": f"{host}:{port}:{','.join(listed)}"}, ""


def _size(directory: Path) -> int:
    total = 0
    for _, entry in iter_files(directory):
        with suppress(OSError):  # git's temporary files come and go
            total += 0 if isinstance(entry, OSError) else entry.stat().st_size
    return total


ENTRY_BYTES = 400
"""Bytes allowed for a file in git's list (mode, id and path); 110 on average."""

BATCH_BYTES = 16_000_000
"""Bytes of content read from git at once."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LIKE_COMMIT = re.compile(r"[0-9a-fA-F]{4,64}")


def find_commit(source: GitSource, policy: rules.Policy) -> str:
    """Return the current commit of a source's revision; one request, none for a commit id."""
    wanted = source.ref or "HEAD"
    if _COMMIT.fullmatch(wanted):
        return wanted
    # In git's own order: a full name, then `tags/v1`, tags (peeled), branches.
    places = ("refs/{}^{{}}", "refs/{}", "refs/tags/{}^{{}}", "refs/tags/{}", "refs/heads/{}")
    names = [wanted, *(place.format(wanted) for place in places)]
    found = _list_refs(source, policy, names=names)
    for name in names:
        if name in found:
            return found[name]
    reason = f"it has no branch or tag {wanted!r}"
    if _LIKE_COMMIT.fullmatch(wanted):
        reason += "; a commit id must be given in full (40 digits), in lower case"
    raise FetchError(source.url, reason)


def find_tags(source: GitSource, policy: rules.Policy) -> Mapping[str, str]:
    """Return the commits of all tags of a repository, keyed by tag; one request."""
    refs = _list_refs(source, policy, "--tags")
    tags = {name.removeprefix("refs/tags/"): commit for name, commit in refs.items()}
    # A tag with a message has a second line, for the commit.
    return {tag: tags.get(f"{tag}^{{}}", commit) for tag, commit in tags.items()}


def _list_refs(
    source: GitSource, policy: rules.Policy, option: str = "--quiet", names: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return the commits of the refs of a server, keyed by their full names."""
    printed = ask_server(source, policy, ["ls-remote", option, "--", source.url, *names])
    lines = (line.partition("\t") for line in printed.decode(errors="replace").splitlines())
    return {name: commit for commit, _, name in lines if _COMMIT.fullmatch(commit)}


def _credentials(source: GitSource) -> dict[str, str]:
    """Return settings that let git log in on GitHub as gh does; none where gh is of no use."""
    split = urlsplit(source.url)
    is_github = (split.scheme, split.hostname) == ("https", "github.com")
    has_gh = is_github and git.find_program("gh")
    # git runs the value as a command; it is constant.
    return {"credential.https://github.com.helper": "!gh auth git-credential"} if has_gh else {}


class Remotes(ExitStack):
    """The network access of one run, and its open repositories, so that none is fetched twice.

    Each repository is in a directory made by `make_directory`. `workspace` is the directory
    whose installed packages count; None for none.
    """

    def __init__(
        self,
        policy: rules.Policy,
        make_directory: Callable[[], AbstractContextManager[Path]],
        workspace: Path | None = None,
    ) -> None:
        super().__init__()
        self.policy = policy
        self.workspace = workspace
        self._make_directory = make_directory
        self._open: dict[tuple[str, str | None], Repository] = {}

    def open(self, source: GitSource) -> Repository:
        """Return the repository of a source with the trees of its commit."""
        key = (source.url, source.commit)
        if key not in self._open:
            directory = self.enter_context(self._make_directory())
            repository = Repository(source, self.policy, directory)
            repository.fetch_trees()
            self._open[key] = repository
        return self._open[key]


class Repository:
    """A bare, shallow, partial copy of a source; made by `Remotes`."""

    def __init__(self, source: GitSource, policy: rules.Policy, directory: Path) -> None:
        self._source = source
        self._policy = policy
        self._run = partial(run_offline, source, policy, cwd=directory)
        self._ask = partial(ask_server, source, policy, cwd=directory)
        self.commit = ""

    def fetch_trees(self) -> None:
        """Fetch the commit and its trees, which hold the names of all files, but no blobs."""
        wanted = self._source.commit or self._source.ref or "HEAD"
        kind = "sha256" if len(self._source.commit or "") == 64 else "sha1"
        self._run(["init", "--quiet", "--bare", "--template=", f"--object-format={kind}"])
        self._fetch("--depth=1", "--", self._source.url, wanted)
        self.commit = self._run(["rev-parse", "--verify", "FETCH_HEAD^{commit}"]).decode().strip()

    def list_files(self, source: GitSource) -> tuple[Mapping[str, str], list[str]]:
        """Return the blobs of the files that `paths` cover, keyed by path, and notes on others.

        A few kilobytes can unfold to any number of files, so git is stopped when its list is
        far longer than `max_files` files need. Raises TooLargeError.
        """
        most = self._policy.max_files
        command = ("ls-tree", "-r", "-z", "--", self.commit, *source.paths)
        try:
            printed = self._run(command, max_output=(most + 100) * ENTRY_BYTES)
        except TooLargeError as error:
            reason = f"it has far more files than max_files ({most:,}); narrow it by paths"
            raise TooLargeError(source.url, reason) from error
        entries = []
        for record in printed.split(b"\0")[:-1]:
            # "<mode> <type> <id>\t<path>"
            meta, _, path = record.partition(b"\t")
            mode, _, blob = meta.decode("ascii").split(" ")
            entries.append((mode, blob, path.decode("utf-8", "surrogateescape")))
        return select_files(source, entries)

    def read(self, files: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        """Fetch the blobs of files in one request, and yield each path with its content."""
        if not files:
            return
        self._fetch("--stdin", "--", self._source.url, stdin=_list(set(files.values())))
        sizes = self._run(["cat-file", "--batch-check=%(objectsize)"], stdin=_list(files.values()))
        numbered = zip(files, accumulate(map(int, sizes.split())), strict=True)
        for _, group in groupby(numbered, lambda each: each[1] // BATCH_BYTES):
            batch = [path for path, _ in group]
            stdin = _list(files[path] for path in batch)
            # A batch ends within BATCH_BYTES, and may begin with a file of the most bytes.
            most = git.MAX_OUTPUT + BATCH_BYTES
            printed = self._run(["cat-file", "--batch"], stdin=stdin, max_output=most)
            for path, found in zip(batch, git.split_objects(printed), strict=True):
                yield path, found.data if found else b""

    def _fetch(self, *args: str, stdin: bytes = b"") -> None:
        common = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--filter=blob:none")
        config = [] if "--depth=1" in args else ["-c", "fetch.negotiationAlgorithm=noop"]
        self._ask([*config, *common, *args], stdin=stdin)


def _list(blobs: Iterable[str]) -> bytes:
    return "".join(f"{blob}\n" for blob in blobs).encode()


def select_files(
    source: GitSource, entries: Sequence[tuple[str, str, str]]
) -> tuple[Mapping[str, str], list[str]]:
    """Return the blobs of the files that a source's `paths` cover, and notes on those left out.

    An entry is a mode, a blob and a path. Links, submodules and files with unsafe names are left
    out.
    """
    covering = compile_paths(source.paths)
    wanted = [entry for entry in entries if not source.paths or covering(entry[2])]
    regular = {path: blob for mode, blob, path in wanted if mode.startswith("100")}
    files = {path: regular[path] for path in sorted(filter(rules.is_safe_path, regular))}
    left_out = (
        ("link", "", sum(mode == "120000" for mode, _, _ in wanted)),
        ("submodule", "", sum(mode == "160000" for mode, _, _ in wanted)),
        ("file", " with an unsafe name", len(regular) - len(files)),
    )
    notes = [f"left out: {count(number, what)}{more}" for what, more, number in left_out if number]
    matched = {path for file in files for path in covering(file)}
    notes += [f"no file matches the path {path!r}" for path in source.paths if path not in matched]
    if others := _find_others(source, files):
        left = [path for path in files if others.keys().isdisjoint(list_places(path))]
        files = {path: files[path] for path in left}
        notes.append(describe_editions(others, "paths (--path '{}')"))
    return files, notes


def _find_others(source: GitSource, files: Iterable[str]) -> Mapping[str, Edition]:
    """Return the directories that hold documentation in languages that `paths` do not name."""
    named = {above for path in source.paths for above in list_places(f"{path}/")}
    found = find_translations(files).items()
    return {path: kind for path, kind in found if path not in named}
