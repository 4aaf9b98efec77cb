"""Shares entries and annotations with a remote by fetch, merge and push, never by force."""

from __future__ import annotations

import os
import random
import re
import secrets
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from llm_kb.capture.entries import Entry, KnowledgeStore, arrange, dedup_key, normalize
from llm_kb.capture.notes import (
    ANNOTATIONS_REF,
    KNOWLEDGE_REF,
    Move,
    RefMovedError,
    commit_notes,
    list_notes,
    read_note,
    read_ref,
)
from llm_kb.capture.rendering import render_short
from llm_kb.capture.store import (
    BusyStoreError,
    Snapshot,
    change_store,
    load_store,
    move_with,
    parse_note,
    require_repository,
    save_store,
)
from llm_kb.errors import KbError
from llm_kb.files.git import NO_PROGRAMS, GitError, Settings, find_program, run_git
from llm_kb.rendering.plain_text import count, one_line

SHARED_REFS = (KNOWLEDGE_REF, ANNOTATIONS_REF)

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
    before, here, there = ({dedup_key(e): e for e in s.entries} for s in (base, ours, theirs))
    notices: list[str] = []
    kept: list[Entry] = []
    for entry in theirs.entries:
        old, mine = before.get(dedup_key(entry)), here.get(dedup_key(entry))
        if mine:
            chosen, notice = _choose(old, mine, entry)
            kept.append(chosen)
            notices += [notice] if notice else []
        elif not old or not _is_same(entry, old):
            notices.append(f"Received: {render_short(entry)}")
            kept.append(entry)
    for entry in ours.entries:
        old = before.get(dedup_key(entry))
        if dedup_key(entry) in there:
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
    changed = {key: v for key, v in ours.extra.items() if base.extra.get(key) != v}
    extra = {**ours.extra, **theirs.extra, **changed}
    return KnowledgeStore(entries=arrange(kept), extra=extra), notices


def _choose(before: Entry | None, ours: Entry, theirs: Entry) -> tuple[Entry, str | None]:
    """Return the entry to keep of two with one key, under the id of theirs, and a notice."""
    if before and _is_same(theirs, before):
        return ours.with_fields(id=theirs.id), None
    if before and _is_same(ours, before):
        return theirs, None
    both = Entry(ours.kind, {**ours.fields, **theirs.fields})
    differing = [
        f"{name}: {one_line(ours.text(name))}"
        for name in ours.kind.settable
        if normalize(ours.text(name)) != normalize(theirs.text(name))
    ]
    if differing:
        return both, (
            f"Conflict: theirs is kept of {render_short(theirs)}\n"
            f"  ours: {'; '.join(differing)}\n"
            f"  `llm kb knowledge edit {one_line(theirs.id)}` changes it."
        )
    if ours.id == theirs.id:
        return both, None
    return both, f"Duplicate: {render_short(ours)} is {render_short(theirs)} there"


def _is_same(one: Entry, other: Entry) -> bool:
    """Tell whether two entries are equal except for their ids."""
    return {**one.fields, "id": ""} == {**other.fields, "id": ""}


def pull(directory: Path, remote: str) -> list[str]:
    """Fetch the remote's entries and annotations, merge them into ours, and return what changed.

    Raises DamagedStoreError for a remote whose store cannot be read.
    """
    require_repository(directory)
    fetched = fetch_notes(directory, remote)
    name = hide_secrets(remote)
    lines: list[str] = []
    if theirs := fetched.get(ANNOTATIONS_REF):
        lines += move_with(directory, lambda: _merge_annotations(directory, theirs))
    if entries := fetched.get(KNOWLEDGE_REF):
        lines += change_store(directory, lambda s: _merge_entries(directory, s, entries, name))
    else:
        lines.append(f"{name}: the remote has no knowledge store.")
    return lines


def _merge_entries(
    directory: Path, snapshot: Snapshot, theirs: str, name: str
) -> tuple[list[str], Sequence[Move]]:
    ours = snapshot.note.commit
    ancestor = _find_merge_base(directory, ours, theirs) if ours else None
    if ancestor == theirs:
        return [f"{name}: nothing new."], ()
    base = _store_at(directory, ancestor, name) if ancestor else KnowledgeStore()
    store, notices = merge(base, snapshot.store, _store_at(directory, theirs, name))
    lines = [*notices[:MAX_NOTICES], f"{count(len(store.entries), 'entry', 'entries')}."]
    if len(notices) > MAX_NOTICES:
        lines.insert(MAX_NOTICES, f"{len(notices) - MAX_NOTICES:,} more.")
    if ours is None or ancestor == ours:
        return lines, [(KNOWLEDGE_REF, theirs, ours)]
    message = f"Merge knowledge of {name}"
    return lines, [save_store(directory, snapshot, store, message, merged=theirs)]


def _merge_annotations(directory: Path, theirs: str) -> tuple[list[str], Sequence[Move]]:
    """Of a commit that both sides annotated since they parted, our annotation stays."""
    ours = read_ref(directory, ANNOTATIONS_REF)
    base = _find_merge_base(directory, ours, theirs) if ours else None
    if base == theirs:
        return [], ()
    new = theirs
    if base != ours:
        new = commit_notes(directory, ours, {}, "Merge annotations", merged=theirs)
    before = list_notes(directory, ours) if ours else {}
    number = sum(before.get(name) != blob for name, blob in list_notes(directory, new).items())
    return [f"Annotations of {count(number, 'commit')} received."], [(ANNOTATIONS_REF, new, ours)]


def push(directory: Path, remote: str) -> list[str]:
    """Push our entries and annotations, pull before that if the remote has moved; return lines.

    Raises BusyStoreError if the remote keeps moving.
    """
    store = load_store(directory)  # a damaged store is not pushed
    refs = [ref for ref in SHARED_REFS if read_ref(directory, ref)]
    if not refs:
        raise KbError("there is nothing to push: no entry was ever captured here")
    lines: list[str] = []
    for attempt in range(MAX_PUSHES):
        try:
            push_refs(directory, remote, refs)
        except RefMovedError as error:
            last = error
        else:
            entries = count(len(store.entries), "entry", "entries")
            return [*lines, f"Pushed {entries} to {hide_secrets(remote)}."]
        time.sleep(random.uniform(0, 0.1 * attempt))  # noqa: S311 - no secret
        lines += pull(directory, remote)
        store = load_store(directory)
    raise BusyStoreError(f"the notes of {hide_secrets(remote)}", str(last)) from last


def _store_at(directory: Path, commit: str, remote: str) -> KnowledgeStore:
    return parse_note(read_note(directory, commit), remote)


def _find_merge_base(directory: Path, one: str, other: str) -> str | None:
    """Return the latest common ancestor of two commits; None without one."""
    try:
        return run_git("merge-base", one, other, cwd=directory).decode().strip()
    except GitError as error:
        if error.code == 1:
            return None
        raise


def fetch_notes(directory: Path, remote: str) -> Mapping[str, str]:
    """Fetch the notes of a remote, and return the commits of those refs it has."""
    _require_remote(directory, remote)
    # Nobody can have made a symbolic ref of a name that nobody can guess.
    place = f"refs/llm-kb/{secrets.token_hex(8)}"
    options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    # What `remote.*.fetch` says of notes would replace ours. For a remote on this disk, the
    # repository's configuration could name any program.
    own = ("--refmap=", "--upload-pack=git-upload-pack")
    refs = "+refs/notes/chronicle*:" + f"{place}/chronicle*"
    try:
        _ask_server(directory, "fetch", *options, *own, "--end-of-options", remote, refs)
    except BaseException:
        _take_refs(directory, place)  # of those that arrived
        raise
    fetched = _take_refs(directory, place)
    return {ref.replace(place, "refs/notes", 1): commit for ref, commit in fetched.items()}


def _take_refs(directory: Path, place: str) -> Mapping[str, str]:
    """Delete the refs below a place and return their commits, which git keeps for two weeks."""
    shape = "--format=%(objectname) %(refname)"
    listed = run_git("for-each-ref", shape, f"{place}/", cwd=directory)
    # The names are the remote's: in any bytes, and with any end of a line but git's.
    lines = listed.decode(errors="surrogateescape").split("\n")[:-1]
    taken = {ref: commit for commit, _, ref in (line.partition(" ") for line in lines)}
    deletions = "".join(f"delete {ref}\n" for ref in taken)
    stdin = deletions.encode(errors="surrogateescape")
    run_git("update-ref", "--stdin", cwd=directory, stdin=stdin)
    return taken


def push_refs(directory: Path, remote: str, refs: Sequence[str]) -> None:
    """Push refs without force. Raises RefMovedError if the remote's have moved."""
    _require_remote(directory, remote)
    # Neither tags nor submodules, whatever `push.*` sets for the user's own pushes.
    options = ("--quiet", "--no-follow-tags", "--recurse-submodules=no", "--no-signed")
    program, settings = _choose_receiver(directory, remote)
    pairs = [f"{ref}:{ref}" for ref in refs]
    command = ("push", *options, program, "--end-of-options", remote, *pairs)
    try:
        _ask_server(directory, *command, settings=settings)
    except GitError as error:
        if _MOVED.search(error.stderr):
            raise RefMovedError(error.stderr.strip()) from error
        raise


def _choose_receiver(directory: Path, remote: str) -> tuple[str, Settings]:
    """Return the option of `git push` that names the program at the other end, and settings.

    For a repository on this disk git starts that program here, where the other repository's
    configuration counts and not ours: its hooks may be those of an unpacked archive.
    """
    if not all(map(_is_local, _find_push_urls(directory, remote))):
        # If git took it for a path all the same, it refuses.
        return "--receive-pack=git-receive-pack", [("protocol.file.allow", "never")]
    settings = (word for key, value in NO_PROGRAMS for word in ("-c", f"{key}={value}"))
    words = [find_program("git") or "git", *settings, "receive-pack"]
    return f"--receive-pack={shlex.join(words)}", []


def _is_local(url: str) -> bool:
    """Tell whether git takes a URL for a path: `file://`, or no colon before the first slash."""
    return url.startswith("file://") or ":" not in url.partition("/")[0]


def _ask_server(directory: Path, *args: str, settings: Settings = ()) -> None:
    """Run a git command that contacts a remote, with the user's own programs for it."""
    # An empty value prevents a proxy that the repository names.
    environment = {"GIT_PROXY_COMMAND": "", "GIT_NO_LAZY_FETCH": "1"}
    allowed = os.environ.get("GIT_ALLOW_PROTOCOL")
    if allowed is not None and settings:
        # It would win over the settings.
        environment["GIT_ALLOW_PROTOCOL"] = ":".join(p for p in allowed.split(":") if p != "file")
    run_git(
        *args,
        cwd=directory,
        server=True,
        terminal=True,
        env=environment,
        settings=[*_own_programs(), *settings],
        timeout=_NETWORK_TIMEOUT,
    )


def _own_programs() -> Iterator[tuple[str, str]]:
    """Yield settings for the programs that contact servers, those of the user's configuration.

    The ssh command and the credential helpers of a repository are not trusted.
    """
    listed = ""
    for place in ("--system", "--global"):
        with suppress(GitError):  # there is no such file
            listed += run_git("config", place, "--includes", "--null", "--list").decode()
    own = [entry.partition("\n") for entry in listed.split("\0")]
    found = {key: value for key, _, value in own if key in {"core.sshcommand", "core.askpass"}}
    ssh = found.get("core.sshcommand") or shlex.quote(os.environ.get("GIT_SSH") or "ssh")
    yield "core.sshCommand", ssh
    yield "core.askPass", found.get("core.askpass") or os.environ.get("SSH_ASKPASS", "")
    yield "credential.helper", ""  # resets the list of helpers
    yield from ((key, value) for key, _, value in own if key.startswith("credential."))


def _require_remote(directory: Path, remote: str) -> None:
    """Raise KbError for a name that is neither a remote nor a path nor a URL."""
    if not re.search(r"[/:\\]", remote) and not (directory / remote).exists():
        try:
            run_git("remote", "get-url", "--", remote, cwd=directory)
        except GitError as error:
            message = f"no remote is called {remote!r} here; `git remote -v` lists them"
            raise KbError(message) from error


def _find_push_urls(directory: Path, remote: str) -> list[str]:
    """Return the URLs to which git pushes; a remote that is not a name is a URL or a path."""
    command = ("remote", "get-url", "--push", "--all", "--", remote)
    try:
        return run_git(*command, cwd=directory).decode(errors="replace").splitlines()
    except GitError:
        return [remote]


def hide_secrets(url: str) -> str:
    """Return a URL without user, password and query; anything else as it is."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    place, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"
