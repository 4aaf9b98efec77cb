"""Shares entries and annotations with a remote by fetch, merge and push, never by force."""

from __future__ import annotations

import os
import re
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from llm_kb.capture import notes, store
from llm_kb.capture.entries import RETIRED, Entry, KnowledgeStore, normalize
from llm_kb.capture.rendering import render_short
from llm_kb.errors import KbError
from llm_kb.files.git import NO_PROGRAMS, GitError, Settings, find_program, run_git
from llm_kb.rendering.plain_text import count
from llm_kb.texts.safe import one_line

SHARED_REFS = (notes.KNOWLEDGE_REF, notes.ANNOTATIONS_REF)

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
    retired = [*ours.retired.items(), *theirs.retired.items()]
    highest = {RETIRED: dict(sorted(retired))} if retired else {}
    return {**ours.extra, **theirs.extra, **changed, **highest}


def _describe_clash(ours: Entry, theirs: Entry) -> list[str]:
    """Return a notice about two entries with one key that both sides made or changed."""
    differing = [
        f"{name}: {one_line(ours.text(name))}"
        for name in ours.kind.settable
        if normalize(ours.text(name)) != normalize(theirs.text(name))
    ]
    if differing:
        return [
            f"Conflict: theirs is kept of {render_short(theirs)}\n"
            f"  ours: {'; '.join(differing)}\n"
            f"  `llm kb knowledge edit {one_line(theirs.id)}` changes it."
        ]
    if ours.id == theirs.id:
        return []
    return [f"Duplicate: {render_short(ours)} is {render_short(theirs)} there"]


def _is_same(one: Entry, other: Entry) -> bool:
    """Tell whether two entries are equal except for their ids."""
    return {**one.fields, "id": ""} == {**other.fields, "id": ""}


def pull(directory: Path, remote: str) -> list[str]:
    """Fetch the remote's entries and annotations, merge them into ours, and return what changed.

    Raises DamagedStoreError for a remote whose store cannot be read.
    """
    store.require_repository(directory)
    fetched = fetch_notes(directory, remote)
    name = hide_secrets(remote)

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

    lines = store.change_store(directory, decide)
    if notes.KNOWLEDGE_REF not in fetched:
        lines.append(f"{name}: the remote has no knowledge store.")
    return lines or [f"{name}: nothing new."]


def _merge_entries(
    directory: Path, snapshot: store.Snapshot, base: str | None, theirs: str, name: str
) -> tuple[list[str], str]:
    """Return lines about the merge, and the commit that has it."""
    before = _store_at(directory, base, name) if base else KnowledgeStore()
    merged, notices = merge(before, snapshot.store, _store_at(directory, theirs, name))
    lines = [*notices[:MAX_NOTICES], f"{count(len(merged.entries), 'entry', 'entries')}."]
    if len(notices) > MAX_NOTICES:
        lines.insert(MAX_NOTICES, f"{len(notices) - MAX_NOTICES:,} more.")
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


def push(directory: Path, remote: str) -> list[str]:
    """Push our entries and annotations, pull before that if the remote has moved; return lines.

    Raises KbError if the remote keeps moving.
    """
    store.load_store(directory)  # a damaged store is not pushed
    refs = [ref for ref in SHARED_REFS if notes.read_ref(directory, ref)]
    if not refs:
        raise KbError("there is nothing to push: no entry was ever captured here")
    lines: list[str] = []
    reason = ""
    for _ in range(MAX_PUSHES):
        try:
            push_refs(directory, remote, refs)
        except notes.RefMovedError as error:
            reason = str(error)
            lines += pull(directory, remote)
        else:
            entries = count(len(store.load_store(directory).entries), "entry", "entries")
            return [*lines, f"Pushed {entries} to {hide_secrets(remote)}."]
    raise KbError(
        f"{hide_secrets(remote)} kept being changed by others; try again. git's message: {reason}"
    )


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
    # Nobody can have made a symbolic ref of a name that nobody can guess.
    place = f"refs/llm-kb/{secrets.token_hex(8)}"
    options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    # What `remote.*.fetch` says of notes would replace ours. For a remote on this disk, the
    # repository's configuration could name any program.
    own = ("--refmap=", "--upload-pack=git-upload-pack")
    refs = "+refs/notes/chronicle*:" + f"{place}/chronicle*"
    try:
        _ask_server(directory, "fetch", *options, *own, "--end-of-options", remote, refs)
        names = {ref: ref.replace("refs/notes", place) for ref in SHARED_REFS}
        found = {ref: notes.read_ref(directory, name) for ref, name in names.items()}
        return {ref: commit for ref, commit in found.items() if commit}
    finally:
        # Of a fetch that failed some may have arrived.
        shape = "--format=delete %(refname)"
        listed = run_git("for-each-ref", shape, f"{place}/", cwd=directory)
        run_git("update-ref", "--stdin", cwd=directory, stdin=listed)


def push_refs(directory: Path, remote: str, refs: Sequence[str]) -> None:
    """Push refs without force. Raises RefMovedError if the remote's have moved."""
    # Neither tags nor submodules, whatever `push.*` sets for the user's own pushes.
    options = ("--quiet", "--no-follow-tags", "--recurse-submodules=no", "--no-signed")
    program, settings = _choose_receiver(directory, remote)
    pairs = [f"{ref}:{ref}" for ref in refs]
    command = ("push", *options, program, "--end-of-options", remote, *pairs)
    try:
        _ask_server(directory, *command, settings=settings)
    except GitError as error:
        if _MOVED.search(error.stderr):
            raise notes.RefMovedError(error.stderr.strip()) from error
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
