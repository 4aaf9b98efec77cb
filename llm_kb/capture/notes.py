"""Finds a repository and its notes, and writes notes without losing those of others.

`git notes` overwrites whatever was written since it read. Here it writes to a draft ref of
our own, and the real ref moves to the result only if it still is where it was read.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from llm_kb.errors import KbError
from llm_kb.files.git import GitError, read_objects, run_git

KNOWLEDGE_REF = "refs/notes/chronicle-knowledge"
ANNOTATIONS_REF = "refs/notes/chronicle"

EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The empty tree by the length of a repository's ids. git knows it in every repository,
whether or not it is stored, so a note on it belongs to the repository as a whole."""

_MOVED = ("but expected", "already exists", "File exists", "unable to resolve reference")
"""git's messages about a ref that has moved or that another process has locked."""

_MAX_LISTED = 20_000_000
"""The most bytes of a list of notes: about 200,000. Trees can share subtrees, so a few
objects may unfold to any number."""

_DEEPEST = 3
"""The most directories of a note's path; git splits its tree once there are some hundred."""

_LONGEST_PATH = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """The directories of a repository."""

    root: Path
    """The top of the work tree."""
    common_dir: Path
    """The directory that all work trees share, with the refs and the objects."""


def find_repository(directory: Path) -> Repository | None:
    """Return the repository that git would find from a directory; None without one.

    Only the `.git` entries of the directory and its parents are read. A directory that is a
    repository itself does not count: a clone can carry one among its files, with a
    configuration that runs programs, while a `.git` is never cloned.
    """
    directory = directory.absolute()
    for root in (directory, *directory.parents):
        try:
            git_dir = _find_git_dir(root)
        except OSError:
            continue  # a directory of another user
        if git_dir:
            named = git_dir / "commondir"
            # Without it, this is the main work tree or a submodule.
            common_dir = git_dir / _read_start(named).strip() if named.is_file() else git_dir
            return Repository(root=root, common_dir=common_dir)
    return None


def _find_git_dir(root: Path) -> Path | None:
    dot_git = root / ".git"
    if dot_git.is_dir():
        return dot_git if _is_git_dir(dot_git) else None
    if not dot_git.is_file():
        return None
    # A linked work tree or a submodule: one line with the path.
    said = _read_start(dot_git)
    named = root / said.removeprefix("gitdir:").strip()
    return named if said.startswith("gitdir:") and named.is_dir() else None


def _is_git_dir(directory: Path) -> bool:
    return (
        (directory / "HEAD").is_file()
        and (directory / "objects").is_dir()
        and (directory / "refs").is_dir()
    )


def _read_start(path: Path) -> str:
    with path.open("rb") as file:
        return os.fsdecode(file.read(_LONGEST_PATH))


def may_have_ref(repository: Repository, ref: str) -> bool:
    """Tell by its files whether a repository may have a ref; in a reftable it may."""
    common = repository.common_dir
    if (common / ref).is_file() or (common / "reftable").is_dir():
        return True
    packed = common / "packed-refs"
    try:
        # Reading a pipe of that name would never end.
        return packed.is_file() and f" {ref}\n".encode() in packed.read_bytes()
    except OSError:
        return False


def read_author(directory: Path) -> str | None:
    """Return the name that annotations are signed with, by git's configuration."""
    for name in ("chronicle.author", "user.name"):
        with suppress(GitError):  # it is not set
            value = run_git("config", "--get", name, cwd=directory).decode(errors="replace")
            if value.strip():
                return value.strip()
    return None


class DamagedNotesError(KbError):
    """A ref or an object that does not hold git notes."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has no readable git notes; run `git fsck`")


class RefMovedError(KbError):
    """A ref that has moved since it was read, or that another process has locked."""


class UnknownAuthorError(KbError):
    """A git that has no name or address for the commits it makes."""

    def __init__(self) -> None:
        super().__init__(
            "git does not know who you are, and knowledge is written as a commit; "
            'run `git config --global user.name "…"` and '
            '`git config --global user.email "…"`, then try again'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The note of one object at one commit of its ref."""

    ref: str
    target: str
    commit: str | None
    """The commit of the ref; None if the ref does not exist."""
    data: bytes | None
    """The text of the note; None if the object has no note."""
    path: str = ""
    """The path of the note in the tree of its ref; empty if the object has no note."""


def read_ref(directory: Path, name: str) -> str | None:
    """Return the commit of a ref; None without one."""
    (found,) = read_objects(directory, [f"{name}^{{commit}}"])
    return found.id if found else None


def read_note(directory: Path, ref: str, target: str = "") -> Note:
    """Return the note of an object, by default of the empty tree.

    Its `target` is only empty if no object is named and the ref does not exist: the empty tree's
    id depends on the repository's hash, which is then unknown.
    """
    (found,) = read_objects(directory, [ref])
    if found is None:
        return Note(ref=ref, target=target, commit=None, data=None)
    if found.type != "commit":
        raise DamagedNotesError(ref)
    target = target or EMPTY_TREES[len(found.id)]
    paths = [_spread(target, depth) for depth in range(_DEEPEST + 1)]
    try:
        blobs = read_objects(directory, [f"{found.id}:{path}" for path in paths])
    except GitError as error:
        raise DamagedNotesError(ref) from error  # a malformed tree ends git
    for path, blob in zip(paths, blobs, strict=True):
        if blob and blob.type == "blob":
            return Note(ref=ref, target=target, commit=found.id, data=blob.data, path=path)
    if _list_tree(directory, found.id, *paths):
        # Without this error the note would be overwritten.
        raise DamagedNotesError(ref)
    return Note(ref=ref, target=target, commit=found.id, data=None)


def _spread(target: str, depth: int) -> str:
    """Return the path of an object's note in a tree that is split `depth` times."""
    parts = [target[start : start + 2] for start in range(0, 2 * depth, 2)]
    return "/".join([*parts, target[2 * depth :]])


def list_notes(directory: Path, commit: str) -> dict[str, str]:
    """Return the blob of every note of a commit, keyed by the id of its object."""
    listed = ((path.replace("/", ""), id_) for path, id_ in _list_tree(directory, commit, "-r"))
    # Other files may be in the tree, too.
    return {name: id_ for name, id_ in listed if re.fullmatch(f"[0-9a-f]{{{len(id_)}}}", name)}


def _list_tree(directory: Path, commit: str, *args: str) -> list[tuple[str, str]]:
    """Return the paths in a commit's tree with the ids of their objects."""
    command = ("ls-tree", "-z", "--full-tree", commit)
    try:
        listed = run_git(*command, *args, cwd=directory, max_output=_MAX_LISTED)
    except GitError as error:
        raise DamagedNotesError(commit) from error
    records = (record.partition("\t") for record in listed.decode(errors="replace").split("\0"))
    # "<mode> <type> <id>\t<path>"
    return [(path, meta.rpartition(" ")[2]) for meta, _, path in records if path]


def commit_notes(
    directory: Path,
    commit: str | None,
    notes: Mapping[str, bytes],
    message: str,
    merged: str | None = None,
) -> str:
    """Write a commit with further `notes`, keyed by their object, and return its id.

    Its parents are `commit` and `merged`, whose other notes it has as well, those of
    `commit` where both have one. No ref moves. Raises UnknownAuthorError.
    """
    draft = f"refs/notes/llm-kb-draft-{secrets.token_hex(8)}"
    parents = [parent for parent in (commit, merged) if parent]

    def write(*args: str, stdin: bytes = b"") -> str:
        return run_git(*args, cwd=directory, stdin=stdin).decode().strip()

    try:
        if commit:
            write("update-ref", draft, commit)
        if merged:
            write("notes", f"--ref={draft}", "merge", "--quiet", "--strategy=ours", merged)
        for target, data in notes.items():
            # As a blob: from a file git takes lines that begin with `#` for comments.
            blob = write("hash-object", "-w", "--stdin", stdin=data)
            write("notes", f"--ref={draft}", "add", "-f", "--allow-empty", "-C", blob, target)
        options = [option for parent in parents for option in ("-p", parent)]
        return write("commit-tree", *options, "-m", message, f"{draft}^{{tree}}")
    except GitError as error:
        raise _explain(error) from error
    finally:
        with suppress(GitError):
            write("update-ref", "-d", draft)


def _explain(error: GitError) -> KbError:
    is_unknown = "ident" in error.stderr or "tell me who you are" in error.stderr
    return UnknownAuthorError() if is_unknown else error


Move: TypeAlias = tuple[str, str, "str | None"]
"""A ref, its new commit, and the commit at which it was read; None if it did not exist."""


def move_refs(directory: Path, moves: Sequence[Move]) -> None:
    """Move refs, all of them or none.

    A symbolic ref is replaced, not followed. Raises RefMovedError if a ref has moved or is locked.
    """
    lines = "".join(
        f"option no-deref\nupdate {ref} {new} {old or '0' * len(new)}\n" for ref, new, old in moves
    )
    try:
        run_git("update-ref", "-m", "llm-kb", "--stdin", cwd=directory, stdin=lines.encode())
    except GitError as error:
        if any(sign in error.stderr for sign in _MOVED):
            raise RefMovedError(error.stderr.strip()) from error
        raise
