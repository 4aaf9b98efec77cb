"""Running git for repositories of strangers, with limits on protocols, hosts and size."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from llm_kb.files.walk import iter_files
from llm_kb.git.run import (
    MAX_OUTPUT,
    OUTPUT_TOO_LARGE,
    GitError,
    git_environment,
    run_git,
)
from llm_kb.references.errors import FetchError, TooLargeError
from llm_kb.references.sources.addresses import Policy, resolve_host
from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import (
    GIT_PROTOCOLS,
    OPTIONAL_GIT_PROTOCOLS,
    USUAL_PORTS,
    require_approved,
)

SLACK_BYTES = 16_000_000
"""Bytes that a transfer may take on disk in addition to twice `max_bytes`."""

TRANSFER_PATIENCE = 30
"""Time limit for a whole transfer, as a multiple of the timeout of a request."""

MAX_SHOWN = 1000
"""Characters of git's messages in an error."""

_SAFE = {
    "core.askPass": "",
    "core.symlinks": "false",
    "credential.interactive": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    # A redirect would lead to a host that was not checked or approved.
    "http.followRedirects": "false",
    "init.templateDir": "",
    "maintenance.auto": "false",
    "protocol.version": "2",
    "submodule.recurse": "false",
}


def ask_server(  # noqa: PLR0913 - what a process takes
    source: GitSource,
    policy: Policy,
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    stdin: bytes = b"",
    settings: Mapping[str, str] | None = None,
) -> bytes:
    """Return the output of a git command that talks to the source's server.

    `settings` are added to git's. With a `cwd` it may be a whole transfer, which has more time; the
    size of the directory is limited. Raises FetchError, and its kinds BlockedAddressError and
    TooLargeError.
    """
    most = 2 * policy.max_bytes + SLACK_BYTES

    too_large = f"it is over max_bytes ({policy.max_bytes:,})"

    def watch() -> None:
        if cwd and _size(cwd) > most:
            raise TooLargeError(source.url, too_large)

    # A slow transfer may take long; a stalled one is ended.
    stalled = {"http.lowSpeedLimit": "1000", "http.lowSpeedTime": f"{policy.timeout:.0f}"}
    pinned, ssh_options = _pin(source, policy)
    environment = _server_environment(policy, ssh_options)
    environment["GIT_DIR"] = "." if cwd else os.devnull
    try:
        return run_git(
            *args,
            cwd=cwd,
            stdin=stdin,
            env=environment,
            server=True,
            settings=(_SAFE | stalled | dict(settings or {}) | pinned).items(),
            timeout=policy.timeout * (TRANSFER_PATIENCE if cwd else 1),
            watch=watch,
            max_file=most if cwd else None,
        )
    except GitError as error:
        watch()
        if _died_of_size(error):
            raise TooLargeError(source.url, too_large) from error
        raise FetchError(source.url, _explain(error, policy)) from error


def run_offline(  # noqa: PLR0913 - what a process takes
    source: GitSource,
    policy: Policy,
    args: Sequence[str],
    *,
    cwd: Path,
    stdin: bytes = b"",
    max_output: int = MAX_OUTPUT,
) -> bytes:
    """Return the output of a git command inside a fetched repository, without network.

    Raises FetchError; TooLargeError for more than `max_output` bytes.
    """
    try:
        return run_git(
            *args,
            cwd=cwd,
            stdin=stdin,
            env={"GIT_DIR": ".", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"},
            settings=_SAFE.items(),
            timeout=policy.timeout,
            max_output=max_output,
        )
    except GitError as error:
        kind = TooLargeError if error.code == OUTPUT_TOO_LARGE else FetchError
        raise kind(source.url, f"git: {_message(error)}") from error


def _server_environment(policy: Policy, ssh_options: str) -> dict[str, str]:
    """Return the environment for a git command that talks to a server."""
    protocols = GIT_PROTOCOLS | (OPTIONAL_GIT_PROTOCOLS & set(policy.allow_protocols))
    environment = {
        "GIT_ALLOW_PROTOCOL": ":".join(sorted(protocols)),
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    ssh = git_environment().get("GIT_SSH_COMMAND", "ssh")
    return environment | {"GIT_SSH_COMMAND": f"{ssh} -oBatchMode=yes{ssh_options}"}


def _message(error: GitError) -> str:
    """Return git's message in one line, shortened, since a server may have written it."""
    message = " ".join(error.stderr.split()) or f"exit code {error.code}"
    return message if len(message) <= MAX_SHOWN else f"…{message[-MAX_SHOWN:]}"


def _died_of_size(error: GitError) -> bool:
    """Tell whether a process was ended because a file reached the size limit."""
    number = getattr(signal, "SIGXFSZ", 0)
    # git's own words for the end of a process that it started.
    return error.code == -number or f"died of signal {number:d}" in error.stderr


def _explain(error: GitError, policy: Policy) -> str:
    said = _message(error)
    if error.code == 124:
        return f"git {said}; raise timeout under [kb.references] in your own kb.toml"
    if "redirect" in said:
        return f"git: {said}. The repository has moved: plan it under its new address"
    if "not allowed" in said:
        more = ", ".join(policy.allow_protocols) or "nothing more"
        return f"git: {said}; allow_protocols under [kb.references] in your own kb.toml has {more}"
    return f"git: {said}"


def _pin(source: GitSource, policy: Policy) -> tuple[dict[str, str], str]:
    """Return git settings and ssh options that bind git to the checked addresses of the server.

    Without them a second answer of the name server could lead git elsewhere (DNS rebinding).
    """
    split = urlsplit(source.url)
    if split.scheme == "file" or not split.hostname:
        return {}, ""
    require_approved(source.url, policy.hosts)
    host, port = split.hostname, split.port or USUAL_PORTS[split.scheme]
    addresses = resolve_host(source.url, host, port, policy)
    listed = [f"[{address}]" if ":" in address else address for address in addresses]
    if split.scheme == "ssh":
        # The server's key is still looked up under the server's name.
        return {}, f" -oHostName={addresses[0]} -oHostKeyAlias={host} -oCheckHostIP=no"
    if split.scheme == "git":
        # For git:// the URL is rewritten to the address, since there is no setting for it.
        return {f"url.git://{listed[0]}:{port}/.insteadOf": f"git://{split.netloc}/"}, ""
    # git 2.37 or later
    return {"http.curloptResolve": f"{host}:{port}:{','.join(listed)}"}, ""


def _size(directory: Path) -> int:
    total = 0
    for _, entry in iter_files(directory):
        with suppress(OSError):  # git's temporary files come and go
            total += 0 if isinstance(entry, OSError) else entry.stat().st_size
    return total
