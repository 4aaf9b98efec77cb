"""Reading the files of a repository at one commit, without a checkout.

Trees are fetched first, then exactly the wanted blobs, into a temporary bare repository.
Since there is no work tree, the repository's hooks, filters, submodules, links and
line-ending rules have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.references.errors import FetchError, TooLargeError
from llm_kb.references.sources.addresses import Policy
from llm_kb.references.sources.file_names import is_safe_path
from llm_kb.references.sources.git_transport import ask_server, run_offline
from llm_kb.references.sources.records import GitSource, LocalSource, covers
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.editions import describe_editions, find_translations

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing itself from Python 3.11 on

ENTRY_BYTES = 400
"""Bytes allowed for a file in git's list (mode, id and path); 110 on average."""

BATCH_BYTES = 16_000_000
"""Bytes of content read from git at once."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LIKE_COMMIT = re.compile(r"[0-9a-fA-F]{4,64}")


def find_commit(source: GitSource, policy: Policy) -> str:
    """Return the current commit of a source's revision; one request, none for a commit id."""
    wanted = source.ref or "HEAD"
    if _COMMIT.fullmatch(wanted):
        return wanted
    names = [wanted, f"refs/heads/{wanted}", f"refs/tags/{wanted}", f"refs/tags/{wanted}^{{}}"]
    printed = ask_server(source, policy, ["ls-remote", "--quiet", "--", source.url, *names])
    found: dict[str, str] = {}
    for line in printed.decode(errors="replace").splitlines():
        commit, _, name = line.partition("\t")
        found[name] = commit
    # git's own order: a full name, then tags (peeled), then branches.
    for name in (wanted, names[3], names[2], names[1]):
        if name in found and _COMMIT.fullmatch(found[name]):
            return found[name]
    reason = f"it has no branch or tag {wanted!r}"
    if _LIKE_COMMIT.fullmatch(wanted):
        reason += "; a commit id must be given in full (40 digits), in lower case"
    raise FetchError(source.url, reason)


class Repositories:
    """The repositories open during one run, so that none is fetched twice.

    Each is in a directory made by `make_directory`.
    """

    def __init__(
        self, policy: Policy, make_directory: Callable[[], AbstractContextManager[Path]]
    ) -> None:
        self._policy = policy
        self._make_directory = make_directory
        self._stack = ExitStack()
        self._open: dict[tuple[str, str | None], Repository] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def make_directory(self) -> Path:
        """Return an empty directory that is deleted after this run."""
        return self._stack.enter_context(self._make_directory())

    def open(self, source: GitSource, settings: Mapping[str, str] | None = None) -> Repository:
        """Return the repository of a source with the trees of its commit.

        `settings` are further ones of git, such as gh as the credential helper.
        """
        key = (source.url, source.commit)
        if key not in self._open:
            directory = self.make_directory()
            repository = Repository(source, self._policy, directory, settings)
            repository.fetch_trees()
            self._open[key] = repository
        return self._open[key]


class Repository:
    """A bare, shallow, partial copy of a source; made by `Repositories`."""

    def __init__(
        self,
        source: GitSource,
        policy: Policy,
        directory: Path,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._source = source
        self._policy = policy
        self._run = partial(run_offline, source, policy, cwd=directory)
        self._ask = partial(ask_server, source, policy, cwd=directory, settings=settings)
        self.commit = ""

    def fetch_trees(self) -> None:
        """Fetch the commit and its trees, which hold the names of all files, but no blobs."""
        wanted = self._source.commit or self._source.ref or "HEAD"
        kind = "sha256" if len(self._source.commit or "") == 64 else "sha1"
        self._run(["init", "--quiet", "--bare", "--template=", f"--object-format={kind}"])
        self._fetch("--depth=1", "--", self._source.url, wanted)
        self.commit = self._run(["rev-parse", "--verify", "FETCH_HEAD^{commit}"]).decode().strip()

    def tree(self, source: GitSource) -> Tree:
        """Return the files that a source's `paths` cover, without their sizes.

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
            name = path.decode("utf-8", "surrogateescape")
            entries.append(GitFile(path=name, blob=blob, mode=mode))
        return select_files(source, entries)

    def fetch_blobs(self, files: Sequence[GitFile]) -> tuple[GitFile, ...]:
        """Fetch the blobs of files in one request; return the files with their sizes."""
        blobs = sorted({file.blob for file in files})
        if not blobs:
            return ()
        stdin = "".join(f"{blob}\n" for blob in blobs).encode()
        self._fetch("--stdin", "--", self._source.url, stdin=stdin)
        printed = self._run(["cat-file", "--batch-check=%(objectname) %(objectsize)"], stdin=stdin)
        sizes = dict(line.split(" ") for line in printed.decode().splitlines())
        return tuple(replace(file, size=int(sizes[file.blob])) for file in files)

    def read(self, files: Sequence[GitFile]) -> Iterator[tuple[GitFile, bytes]]:
        """Yield the content of files whose blobs were fetched."""
        for batch in _batches(files):
            stdin = "".join(f"{file.blob}\n" for file in batch).encode()
            printed = self._run(["cat-file", "--batch"], stdin=stdin)
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
        command = [*config, *common, *args]
        self._ask(command, stdin=stdin)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFile:
    """A file of a source; in a commit it has a `blob`, and no size until the blob is fetched."""

    path: str
    blob: str = ""
    size: int | None = None
    mode: str = "100644"
    """Its mode as git writes it; `special` for FIFOs and devices, which git does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The wanted files of a source, and notes on those left out."""

    files: tuple[GitFile, ...]
    notes: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    """The directories that could not be read, each with the reason; a path ends in `/`."""


def select_files(source: GitSource | LocalSource, entries: Sequence[GitFile]) -> Tree:
    """Return the regular files that a source's `paths` cover.

    Links, submodules, special files and files with unsafe names are left out.
    """
    wanted = [file for file in entries if covers(source.paths, file.path)]
    regular = [file for file in wanted if file.mode.startswith("100")]
    files = sorted((f for f in regular if is_safe_path(f.path)), key=lambda file: file.path)
    left_out = (
        ("link", "", sum(file.mode == "120000" for file in wanted)),
        ("submodule", "", sum(file.mode == "160000" for file in wanted)),
        ("special file", "", sum(file.mode == "special" for file in wanted)),
        ("file", " with an unsafe name", len(regular) - len(files)),
    )
    notes = [f"left out: {count(number, what)}{more}" for what, more, number in left_out if number]
    notes += [
        f"no file matches the path {path!r}"
        for path in source.paths
        if not any(covers([path], file.path) for file in files)
    ]
    if others := _find_others(source, files):
        files = [file for file in files if not file.path.startswith(tuple(others))]
        notes.append(describe_editions(others, "paths (--path '{}')"))
    return Tree(files=tuple(files), notes=tuple(notes))


def _find_others(source: GitSource | LocalSource, files: Sequence[GitFile]) -> Mapping[str, str]:
    """Return the directories that hold documentation in languages that `paths` do not name."""
    named = tuple(f"{path.rstrip('/')}/" for path in source.paths)
    found = find_translations(file.path for file in files).items()
    return {path: kind for path, kind in found if not any(n.startswith(path) for n in named)}
