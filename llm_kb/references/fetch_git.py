"""Read the files of a repository at one commit, without ever checking it out.

Trees come first, then exactly the wanted blobs, into a bare repository that is
thrown away. Since there is no work tree, no hook, filter, submodule, link or
line-ending rule of the repository has anything to act on.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from llm_kb.git import GitError, git_environment, run_remote
from llm_kb.references.addresses import Resolver, resolve_host, system_resolver
from llm_kb.references.errors import FetchError, TooLargeError
from llm_kb.references.file_names import is_safe_path
from llm_kb.references.sources import GIT_PROTOCOLS, OPTIONAL_GIT_PROTOCOLS, GitSource

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing itself from Python 3.11 on

BATCH_BYTES = 16_000_000
"""How much is read from git at once."""

TRANSFER_PATIENCE = 30
"""How many times the timeout of a request a whole transfer may take."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_SAFE = {
    "core.askPass": "",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.symlinks": "false",
    "credential.interactive": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    # A redirect would lead to a host nobody checked or approved.
    "http.followRedirects": "false",
    "init.templateDir": "",
    "maintenance.auto": "false",
    "protocol.version": "2",
    "submodule.recurse": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPolicy:
    """What git may do: the user's settings, and the seam for tests of DNS."""

    allow_hosts: tuple[str, ...] = ()
    allow_protocols: tuple[str, ...] = ()
    timeout: float = 60
    max_bytes: int = 500_000_000
    resolver: Resolver = field(default=system_resolver)
    config: tuple[tuple[str, str], ...] = ()
    """More settings for git, such as gh as its credential helper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFile:
    """A regular file of a commit; `size` is None until its blob was fetched."""

    path: str
    blob: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The files of a commit that a source wants, and what was left out of them."""

    files: tuple[GitFile, ...]
    notes: tuple[str, ...] = ()


def select_files(source: GitSource, entries: Sequence[tuple[str, GitFile]]) -> Tree:
    """Keep the regular files that a source's `paths` cover, by the modes of tree entries.

    Links are not kept, submodules neither, nor names that are not safe to write.
    """
    wanted = [(mode, file) for mode, file in entries if source.wants(file.path)]
    regular = [file for mode, file in wanted if mode.startswith("100")]
    files = sorted((f for f in regular if is_safe_path(f.path)), key=lambda file: file.path)
    left_out = (
        ("link", "", sum(mode == "120000" for mode, _ in wanted)),
        ("submodule", "", sum(mode == "160000" for mode, _ in wanted)),
        ("file", " with an unsafe name", len(regular) - len(files)),
    )
    notes = [
        f"left out: {count:,} {what}{'' if count == 1 else 's'}{more}"
        for what, more, count in left_out
        if count
    ]
    notes += [
        f"no file matches the path {path!r}"
        for path in source.paths
        if not any(GitSource(url="", paths=(path,)).wants(file.path) for file in files)
    ]
    return Tree(files=tuple(files), notes=tuple(notes))


def find_commit(source: GitSource, policy: GitPolicy) -> str:
    """Return the commit a source's revision is now; one request, none for a commit id."""
    wanted = source.ref or "HEAD"
    if _COMMIT.fullmatch(wanted):
        return wanted
    names = [wanted, f"refs/heads/{wanted}", f"refs/tags/{wanted}", f"refs/tags/{wanted}^{{}}"]
    printed = _ask(source, policy, ["ls-remote", "--quiet", "--", source.url, *names])
    found: dict[str, str] = {}
    for line in printed.decode(errors="replace").splitlines():
        commit, _, name = line.partition("\t")
        found[name] = commit
    # git's own order: a full name, then tags (peeled), then branches.
    for name in (wanted, names[3], names[2], names[1]):
        if name in found and _COMMIT.fullmatch(found[name]):
            return found[name]
    raise FetchError(source.url, f"it has no branch or tag {wanted!r}")


class Repositories:
    """The repositories open during one run: what a plan fetched is not fetched again."""

    def __init__(self, policy: GitPolicy) -> None:
        self._policy = policy
        self._stack = ExitStack()
        self._open: dict[tuple[str, str | None], Repository] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def open(self, source: GitSource, config: Sequence[tuple[str, str]] = ()) -> Repository:
        """Return the repository of a source with the trees of its commit."""
        key = (source.url, source.commit)
        if key not in self._open:
            directory = tempfile.TemporaryDirectory(
                prefix="llm-kb-git-", ignore_cleanup_errors=True
            )
            policy = replace(self._policy, config=(*self._policy.config, *config))
            repository = Repository(source, policy, Path(self._stack.enter_context(directory)))
            repository.fetch_trees()
            self._open[key] = repository
        return self._open[key]


class Repository:
    """A bare, shallow, partial copy of a source; made by `Repositories`."""

    def __init__(self, source: GitSource, policy: GitPolicy, directory: Path) -> None:
        self._source = source
        self._policy = policy
        self._directory = directory
        self.commit = ""

    def fetch_trees(self) -> None:
        """Fetch the commit and its trees, no blob: enough to know the names."""
        self._run("init", "--quiet", "--bare", "--template=", ".")
        wanted = self._source.commit or self._source.ref or "HEAD"
        self._fetch("--depth=1", "--", self._source.url, wanted)
        self.commit = self._run("rev-parse", "--verify", "FETCH_HEAD^{commit}").decode().strip()

    def tree(self, source: GitSource) -> Tree:
        """Return the files that a source's `paths` cover, without their sizes."""
        entries = []
        for record in self._run("ls-tree", "-r", "-z", self.commit).split(b"\0")[:-1]:
            # "<mode> <type> <id>\t<path>"
            meta, _, path = record.partition(b"\t")
            mode, _, blob = meta.decode("ascii").split(" ")
            entries.append((mode, GitFile(path=path.decode("utf-8", "surrogateescape"), blob=blob)))
        return select_files(source, entries)

    def fetch_blobs(self, files: Sequence[GitFile]) -> tuple[GitFile, ...]:
        """Fetch the blobs of these files in one request, and return them with their sizes."""
        blobs = sorted({file.blob for file in files})
        if not blobs:
            return ()
        stdin = "".join(f"{blob}\n" for blob in blobs).encode()
        self._fetch("--stdin", "--", self._source.url, stdin=stdin)
        printed = self._run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=stdin)
        sizes = dict(line.split(" ") for line in printed.decode().splitlines())
        return tuple(
            GitFile(path=file.path, blob=file.blob, size=int(sizes[file.blob])) for file in files
        )

    def read(self, files: Sequence[GitFile]) -> Iterator[tuple[GitFile, bytes]]:
        """Yield the content of files whose blobs were fetched."""
        for batch in _batches(files):
            stdin = "".join(f"{file.blob}\n" for file in batch).encode()
            printed = self._run("cat-file", "--batch", stdin=stdin)
            position = 0
            for file in batch:
                # "<id> blob <size>\n<content>\n"
                position = printed.index(b"\n", position) + 1
                end = position + (file.size or 0)
                yield file, printed[position:end]
                position = end + 1

    def _fetch(self, *args: str, stdin: bytes = b"") -> None:
        common = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--filter=blob:none")
        config = [] if "--depth=1" in args else ["-c", "fetch.negotiationAlgorithm=noop"]
        _ask(
            self._source,
            self._policy,
            [*config, *common, *args],
            cwd=self._directory,
            stdin=stdin,
        )

    def _run(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run git inside the repository, where nothing may be fetched behind our back."""
        try:
            return run_remote(
                "git",
                *_options(_SAFE),
                *args,
                cwd=self._directory,
                stdin=stdin,
                env={"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"},
                timeout=self._policy.timeout,
            )
        except GitError as error:
            raise FetchError(self._source.url, str(error)) from error


def remote_environment(policy: GitPolicy) -> dict[str, str]:
    """Return what git's environment needs before it may talk to a server."""
    protocols = GIT_PROTOCOLS | (OPTIONAL_GIT_PROTOCOLS & set(policy.allow_protocols))
    environment = {
        "GIT_ALLOW_PROTOCOL": ":".join(sorted(protocols)),
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    ssh = git_environment().get("GIT_SSH_COMMAND", "ssh")
    return environment | {"GIT_SSH_COMMAND": f"{ssh} -oBatchMode=yes"}


def _ask(
    source: GitSource,
    policy: GitPolicy,
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    stdin: bytes = b"",
) -> bytes:
    """Run a git command that talks to the source's server."""

    def watch() -> None:
        if cwd and _size(cwd) > 2 * policy.max_bytes + BATCH_BYTES:
            raise TooLargeError(source.url, f"it is over max_bytes ({policy.max_bytes:,})")

    # A transfer that goes on may take long; one that stands still is ended.
    stalled = {"http.lowSpeedLimit": "1000", "http.lowSpeedTime": f"{policy.timeout:.0f}"}
    settings = _SAFE | stalled | dict(policy.config) | _pin(source, policy)
    patience = policy.timeout * (TRANSFER_PATIENCE if cwd else 1)
    try:
        return run_remote(
            "git",
            *_options(settings),
            *args,
            cwd=cwd or Path(tempfile.gettempdir()),
            stdin=stdin,
            env=remote_environment(policy),
            timeout=patience,
            watch=watch,
        )
    except GitError as error:
        raise FetchError(source.url, _explain(error, policy)) from error


def _explain(error: GitError, policy: GitPolicy) -> str:
    said = error.stderr.strip().replace("\n", " ") or f"exit code {error.code}"
    if error.code == 124:
        return f"git {said}; raise timeout under [kb.references] in your own kb.toml"
    if "redirect" in said:
        return f"git: {said}. The repository has moved: plan it under its new address"
    if "not allowed" in said:
        more = ", ".join(policy.allow_protocols) or "nothing more"
        return f"git: {said}; allow_protocols under [kb.references] in your own kb.toml has {more}"
    return f"git: {said}"


def _pin(source: GitSource, policy: GitPolicy) -> dict[str, str]:
    """Check the server's addresses, and have git connect to no other (git 2.37 or later)."""
    split = urlsplit(source.url)
    if split.scheme == "file" or not split.hostname:
        return {}
    port = split.port or {"http": 80, "https": 443, "ssh": 22, "git": 9418}[split.scheme]
    addresses = resolve_host(
        source.url,
        split.hostname,
        port,
        allow_hosts=policy.allow_hosts,
        resolver=policy.resolver,
    )
    listed = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    return {"http.curloptResolve": f"{split.hostname}:{port}:{listed}"}


def _options(settings: dict[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]


def _batches(files: Sequence[GitFile]) -> Iterator[list[GitFile]]:
    batch: list[GitFile] = []
    size = 0
    for file in files:
        if batch and size + (file.size or 0) > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size or 0
    if batch:
        yield batch


def _size(directory: Path) -> int:
    total = 0
    for root, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size  # noqa: PTH116, PTH118 - often
            except OSError:
                continue  # git's temporary files come and go
    return total
