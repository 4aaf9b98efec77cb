"""Fetches a remote's refs next to ours, and pushes ours without force."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from llm_kb.capture.errors import BusyStoreError
from llm_kb.capture.notes import ANNOTATIONS_REF, KNOWLEDGE_REF, require_direct
from llm_kb.errors import KbError
from llm_kb.git.run import NO_PROGRAMS, GitError, Settings, find_program, run_git

TRACKING_REFS = "refs/llm-kb"
"""The prefix of fetched refs, outside `refs/notes`, where a mirror would push or prune them."""

SHARED_REFS = (KNOWLEDGE_REF, ANNOTATIONS_REF)

MAX_PUSHES = 10
_NETWORK_TIMEOUT = 300.0

_MOVED = re.compile(
    r"\((fetch first|non-fast-forward|stale info|failed to update ref"
    r"|incorrect old value provided|cannot lock ref[^\n()]*|reference already exists)\)"
    r"|failed to lock"
)


def tracking_ref(remote: str, ref: str) -> str:
    """Return the name of the ref that holds a fetched ref."""
    return f"{TRACKING_REFS}/{_ref_component(remote)}/{ref.rpartition('/')[2]}"


def _ref_component(remote: str) -> str:
    # A remote may be a URL, which is not the name of a ref.
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", remote):
        return remote
    return f"url-{hashlib.sha256(remote.encode()).hexdigest()[:16]}"


def fetch_ref(directory: Path, remote: str, ref: str) -> str | None:
    """Fetch a ref of a remote and return its commit; None if the remote does not have it."""
    tracking = tracking_ref(remote, ref)
    require_direct(directory, [tracking])
    options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    # For a remote on this disk, the repository's configuration could name any program.
    program = "--upload-pack=git-upload-pack"
    command = ("fetch", *options, program, "--end-of-options", remote, f"+{ref}:{tracking}")
    try:
        _ask_server(directory, *command)
    except GitError as error:
        if "couldn't find remote ref" in error.stderr:
            return None
        raise
    return run_git("rev-parse", "--verify", tracking, cwd=directory).decode().strip()


def push_ref(directory: Path, remote: str, ref: str, pull: Callable[[], object]) -> None:
    """Push a ref, and call `pull` before each new attempt if the remote has moved.

    Raises BusyStoreError if the remote keeps moving.
    """
    # Neither tags nor submodules, whatever `push.*` sets for the user's own pushes.
    options = ("--quiet", "--no-follow-tags", "--recurse-submodules=no", "--no-signed")
    program, settings = _choose_receiver(directory, remote)
    command = ("push", *options, program, "--end-of-options", remote, f"{ref}:{ref}")
    for attempt in range(MAX_PUSHES):
        try:
            _ask_server(directory, *command, settings=settings)
        except GitError as error:
            if not _MOVED.search(error.stderr):
                raise
            last = error
        else:
            return
        time.sleep(random.uniform(0, 0.1 * attempt))  # noqa: S311 - no secret
        pull()
    raise BusyStoreError(f"{ref} of {remote}", last.stderr.strip()) from last


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


def find_merge_base(directory: Path, one: str, other: str) -> str | None:
    """Return the latest common ancestor of two commits; None without one."""
    try:
        return run_git("merge-base", one, other, cwd=directory).decode().strip()
    except GitError as error:
        if error.code == 1:
            return None
        raise


class UnknownRemoteError(KbError):
    """A name that is not a remote of the repository."""

    def __init__(self, remote: str) -> None:
        super().__init__(f"no remote is called {remote!r} here; `git remote -v` lists them")


def require_remote(directory: Path, remote: str) -> None:
    """Raise UnknownRemoteError for a name that is neither a remote nor a path nor a URL."""
    if not re.search(r"[/:\\]", remote) and not (directory / remote).exists():
        try:
            run_git("remote", "get-url", "--", remote, cwd=directory)
        except GitError as error:
            raise UnknownRemoteError(remote) from error


def describe_remote(directory: Path, remote: str) -> str:
    """Return the name of a remote and its push URL, without secrets."""
    urls = ", ".join(map(hide_secrets, _find_push_urls(directory, remote)))
    return urls if urls == hide_secrets(remote) else f"{remote} ({urls})"


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
