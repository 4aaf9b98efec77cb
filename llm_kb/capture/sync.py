"""Shares entries and annotations with a remote by fetch, merge and push, never by force."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from llm_kb.capture import notes, store
from llm_kb.capture.entries import Entry, KnowledgeStore, normalize
from llm_kb.capture.rendering import render_short
from llm_kb.errors import KbError
from llm_kb.files.git import NO_PROGRAMS, GitError, find_program, make_scratch, run_git
from llm_kb.rendering.plain_text import count
from llm_kb.texts.safe import one_line

SHARED_REFS = (notes.KNOWLEDGE_REF, notes.ANNOTATIONS_REF)

_REMOTE = "exchange"
"""The name of a remote in the repository of an exchange."""

Git: TypeAlias = "partial[bytes]"
"""git in one repository."""

MAX_PUSHES = 10
_NETWORK_TIMEOUT = 300.0

MAX_NOTICES = 100
"""The most changes of a merge that are listed: a remote may have thousands of entries."""

_MOVED = re.compile(
    r"\((fetch first|non-fast-forward|stale info|failed to update ref"
    r"|incorrect old value provided|cannot lock ref[^\n()]*|reference already exists)\)"
    r"|failed to lock"
)


def merge(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore
) -> tuple[KnowledgeStore, list[str]]:
    """Merge two stores that both come from `base`, an empty store if that is unknown.

    Returns the store, and a line for each entry that the merge changed here.

    An entry is identified by its content, not by its id: an entry with another rule is
    another entry. Entries that either side added stay; entries that one side removed and
    the other did not change go. Of an entry that both changed theirs stays. Pure.
    """
    before, here, there = ({e.key: e for e in side.entries} for side in (base, ours, theirs))
    notices: list[str] = []
    kept: list[Entry] = []
    for entry in theirs.entries:
        old, mine = before.get(entry.key), here.get(entry.key)
        is_unchanged = old is not None and _is_same(entry, old)
        if mine and is_unchanged:
            kept.append(mine.with_fields(id=entry.id))
        elif mine:
            kept.append(Entry(entry.kind, {**mine.fields, **entry.fields}))
            if not old or not _is_same(mine, old):
                notices += _describe_clash(mine, entry)
        elif not is_unchanged:
            notices.append(f"Received: {render_short(entry)}")
            kept.append(entry)
    for entry in ours.entries:
        old = before.get(entry.key)
        if entry.key in there:
            continue
        if old and _is_same(entry, old):
            notices.append(f"Removed there: {render_short(entry)}")
        elif any(entry.id == other.id for other in kept):
            # An entry removed on one side has had its id, too.
            used = (*base.entries, *ours.entries, *theirs.entries, *kept)
            id_ = KnowledgeStore(entries=used).next_id(entry.kind)
            notices.append(f"Renumbered: {render_short(entry)} is now {id_}")
            kept.append(entry.with_fields(id=id_))
        else:
            kept.append(entry)
    return KnowledgeStore(extra=_merge_extra(base, ours, theirs)).with_entries(kept), notices


def _merge_extra(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore
) -> dict[str, object]:
    changed = {key: v for key, v in ours.extra.items() if base.extra.get(key) != v}
    return {**ours.extra, **theirs.extra, **changed}


def _describe_clash(ours: Entry, theirs: Entry) -> list[str]:
    """Return a notice about two entries with one key that both sides made or changed."""
    differing = [
        f"{name}: {one_line(ours.text(name))}"
        for name in ours.kind.settable
        if normalize(ours.text(name)) != normalize(theirs.text(name))
    ]
    change = (
        f"Conflict: theirs is kept of {render_short(theirs)}\n"
        f"  ours: {'; '.join(differing)}\n"
        f"  `llm kb knowledge edit {one_line(theirs.id)}` changes it."
    )
    return [change] if differing else []


def _is_same(one: Entry, other: Entry) -> bool:
    """Tell whether two entries are equal except for their ids."""
    return {**one.fields, "id": ""} == {**other.fields, "id": ""}


def pull(directory: Path, remote: str) -> list[str]:
    """Fetch the remote's entries and annotations, merge them into ours, and return what changed.

    Raises DamagedStoreError for a remote whose store cannot be read.
    """
    name = hide_secrets(remote)
    fetched = fetch_notes(directory, remote)
    lines = _merge_fetched(directory, fetched, name)
    if notes.KNOWLEDGE_REF not in fetched:
        lines.append(f"{name}: the remote has no knowledge store.")
    return lines or [f"{name}: nothing new."]


def _merge_fetched(directory: Path, fetched: Mapping[str, str], name: str) -> list[str]:
    """Merge the commits of refs into ours, and return what changed."""

    def decide(snapshot: store.Snapshot) -> tuple[list[str], Sequence[notes.Move]]:
        lines: list[str] = []
        moves: list[notes.Move] = []
        annotated = notes.read_ref(directory, notes.ANNOTATIONS_REF)
        pairs = ((notes.ANNOTATIONS_REF, annotated), (notes.KNOWLEDGE_REF, snapshot.note.commit))
        for ref, ours in pairs:
            theirs = fetched.get(ref)
            base = _find_merge_base(directory, ours, theirs) if ours and theirs else None
            if not theirs or base == theirs:
                continue
            if ref == notes.KNOWLEDGE_REF:
                told, new = _merge_entries(directory, snapshot, base, theirs, name)
            else:
                told, new = _merge_annotations(directory, ours, base, theirs)
            lines += told
            moves.append((ref, new, ours))
        return lines, moves

    return store.change_store(directory, decide)


def _merge_entries(
    directory: Path, snapshot: store.Snapshot, base: str | None, theirs: str, name: str
) -> tuple[list[str], str]:
    """Return lines about the merge, and the commit that has it."""
    before = _store_at(directory, base, name) if base else KnowledgeStore()
    merged, notices = merge(before, snapshot.store, _store_at(directory, theirs, name))
    more = [f"{len(notices) - MAX_NOTICES:,} more."] if len(notices) > MAX_NOTICES else []
    lines = [*notices[:MAX_NOTICES], *more, f"{count(len(merged.entries), 'entry', 'entries')}."]
    if base == snapshot.note.commit:
        return lines, theirs
    message = f"Merge knowledge of {name}"
    return lines, store.save_store(directory, snapshot, merged, message, merged=theirs)[1]


def _merge_annotations(
    directory: Path, ours: str | None, base: str | None, theirs: str
) -> tuple[list[str], str]:
    """Of a commit that both sides annotated since they parted, our annotation stays."""
    new = theirs
    if base != ours:
        new = notes.commit_notes(directory, ours, {}, "Merge annotations", merged=theirs)
    before = notes.list_notes(directory, ours) if ours else {}
    found = notes.list_notes(directory, new)
    number = sum(before.get(commit) != note for commit, note in found.items())
    return [f"Annotations of {count(number, 'commit')} received."], new


def sync(directory: Path, remote: str) -> Iterator[str]:
    """Pull, then push our entries and annotations; yield lines.

    Where the push is refused what was pulled stays, and a line says so.
    """
    store.require_repository(directory)
    if kept := notes.read_ref(directory, notes.KEPT_REF):
        yield from _merge_fetched(directory, {notes.KNOWLEDGE_REF: kept}, "this repository")
    yield from pull(directory, remote)
    refs = [ref for ref in SHARED_REFS if notes.read_ref(directory, ref)]
    place, reason = hide_secrets(remote), ""
    for _ in range(MAX_PUSHES if refs else 0):
        try:
            is_local = push_refs(directory, remote, refs)
        except notes.RefMovedError as error:
            reason = f"others keep changing it; {error}"
            yield from pull(directory, remote)
        except GitError as error:
            reason = str(error)
            break
        else:
            entries = count(len(store.load_store(directory).entries), "entry", "entries")
            hooks = ", without running hooks of a repository on this disk" if is_local else ""
            yield f"Pushed {entries} to {place}{hooks}."
            return
    yield f"Not pushed to {place}: {reason or 'no entry was ever captured here'}"


def _store_at(directory: Path, commit: str, remote: str) -> KnowledgeStore:
    return store.parse_note(notes.read_note(directory, commit), remote)


def _find_merge_base(directory: Path, one: str, other: str) -> str | None:
    """Return the latest common ancestor of two commits; None without one."""
    try:
        return run_git("merge-base", one, other, cwd=directory).decode().strip()
    except GitError as error:
        if error.code == 1:
            return None
        raise


def fetch_notes(directory: Path, remote: str) -> Mapping[str, str]:
    """Fetch the notes of a remote, and return the commits of those refs it has.

    They have no ref here; git keeps them for two weeks.
    """
    options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    refs = "+refs/notes/chronicle*:refs/fetched/chronicle*"
    with _open_exchange(directory, remote) as git:
        _ask_server(git, "fetch", *options, _REMOTE, refs)
        listed = git("for-each-ref", "--format=%(refname) %(objectname)", "refs/fetched/")
    lines = listed.decode(errors="replace").split("\n")  # a name may have other ends of lines
    ids = dict(line.partition(" ")[::2] for line in lines)
    named = {ref: ids.get(ref.replace("notes", "fetched")) for ref in SHARED_REFS}
    found = {ref: notes.read_ref(directory, id_) for ref, id_ in named.items() if id_}
    return {ref: commit for ref, commit in found.items() if commit}


def push_refs(directory: Path, remote: str, refs: Sequence[str]) -> bool:
    """Push refs without force, and tell whether the remote is on this disk.

    Raises RefMovedError if the remote's have moved.
    """
    # No submodules, whatever `push.*` sets for the user's own pushes.
    options = ("--quiet", "--recurse-submodules=no", "--no-signed")
    pairs = [f"{ref}:{ref}" for ref in refs]
    try:
        with _open_exchange(directory, remote) as git:
            receiver = _choose_receiver(git)
            _ask_server(git, "push", *options, *receiver, _REMOTE, *pairs)
            return bool(receiver)
    except GitError as error:
        if _MOVED.search(error.stderr):
            raise notes.RefMovedError(error.stderr.strip()) from error
        raise


@contextmanager
def _open_exchange(directory: Path, remote: str) -> Iterator[Git]:
    """Make a repository that has the objects and the notes of another one, and yield its git.

    Nothing but the addresses of the remote is taken from the configuration of the other one,
    which may be a stranger's: it could name a proxy, certificates or a file for cookies.
    """
    repository = store.require_repository(directory)
    kind = run_git("rev-parse", "--show-object-format", cwd=directory).decode().strip()
    commits = {ref: notes.read_ref(directory, ref) for ref in SHARED_REFS}
    created = "".join(f"create {ref} {commit}\n" for ref, commit in commits.items() if commit)
    with make_scratch() as place:
        own, made = place / "configuration", place / "exchange.git"
        options = ("--quiet", "--bare", "--template=", f"--object-format={kind}")
        run_git("init", *options, str(made))
        settings, addresses = _read_own_settings(directory, remote)
        own.write_bytes(settings)
        with (made / "config").open("ab") as file:
            file.write(addresses)
        environment = {
            "GIT_CONFIG_GLOBAL": str(own),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(made),
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OBJECT_DIRECTORY": str(repository.common_dir / "objects"),
            "GIT_SHALLOW_FILE": str(repository.common_dir / "shallow"),
        }
        # An address that is a path begins at the top of the work tree.
        git = partial(run_git, cwd=repository.root, env=environment)
        git("update-ref", "--stdin", stdin=created.encode())
        yield git


def _read_own_settings(directory: Path, remote: str) -> tuple[bytes, bytes]:
    """Return the user's and the system's settings, and the addresses of a remote, as files of git.

    What these settings include for such a directory or remote counts.
    """
    listed = run_git("config", "--list", "--show-scope", "--null", cwd=directory)
    words = listed.decode(errors="surrogateescape").split("\0")
    lines: list[str] = []
    urls: list[str] = []
    push_urls: list[str] = []
    for scope, entry in zip(words[::2], words[1::2], strict=False):
        key, is_set, value = entry.partition("\n")
        place, _, name = key.rpartition(".")
        section, _, rest = place.partition(".")
        if key == f"remote.{remote}.url":
            urls.append(f"url = {_quote(value)}")
        elif key == f"remote.{remote}.pushurl":
            push_urls.append(f"pushurl = {_quote(value)}")
        elif scope in {"system", "global"} and section not in {"include", "includeif", "remote"}:
            lines.append(f"[{section} {_quote(rest)}]" if rest else f"[{section}]")
            lines.append(f"{name} = {_quote(value)}" if is_set else name)
    # What is not the name of a remote is an address or a path.
    urls = urls or [f"url = {_quote(remote)}"]
    files = (lines, [f"[remote {_quote(_REMOTE)}]", *urls, *push_urls])
    own, addresses = ("\n".join([*f, ""]).encode(errors="surrogateescape") for f in files)
    return own, addresses


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _choose_receiver(git: Git) -> Sequence[str]:
    """Return options of `git push` that name the program at the other end.

    For a repository on this disk git starts that program here, where the other repository's
    configuration counts and not ours: its hooks may be those of an unpacked archive.
    """
    listed = git("remote", "get-url", "--push", "--all", _REMOTE)
    are_local = {*map(_is_local, listed.decode(errors="replace").splitlines())}
    if len(are_local) > 1:
        raise KbError(
            "the remote has addresses on this disk and elsewhere; nothing was pushed, name one:\n"
            "llm kb knowledge sync ADDRESS"
        )
    if are_local == {False}:
        return []
    settings = (word for key, value in NO_PROGRAMS for word in ("-c", f"{key}={value}"))
    words = [find_program("git") or "git", *settings, "receive-pack"]
    return [f"--receive-pack={shlex.join(words)}"]


def _is_local(url: str) -> bool:
    """Tell whether git takes a URL for a path: `file://`, or no colon before the first slash."""
    return url.startswith("file://") or ":" not in url.partition("/")[0]


def _ask_server(git: Git, *args: str) -> None:
    git(*args, server=True, terminal=True, timeout=_NETWORK_TIMEOUT)


def hide_secrets(url: str) -> str:
    """Return a URL without user, password and query; anything else as it is."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    place, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"
