"""git for repositories of strangers: what it may run, whom it may ask, how much it may take."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from llm_kb.git import GitError, git_environment, run_remote
from llm_kb.references.errors import FetchError, TooLargeError
from llm_kb.references.sources.addresses import Resolver, resolve_host, system_resolver
from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import GIT_PROTOCOLS, OPTIONAL_GIT_PROTOCOLS

SLACK_BYTES = 16_000_000
"""How much a transfer may take on disk besides twice `max_bytes`."""

TRANSFER_PATIENCE = 30
"""How many times the timeout of a request a whole transfer may take."""

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


def ask_server(
    source: GitSource,
    policy: GitPolicy,
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    stdin: bytes = b"",
) -> bytes:
    """Run a git command that talks to the source's server, and return what it prints.

    With a `cwd` it may be a whole transfer, which has more time; what is in the directory
    is held to `max_bytes`. Raises FetchError, BlockedAddressError and TooLargeError among them.
    """

    def watch() -> None:
        if cwd and _size(cwd) > 2 * policy.max_bytes + SLACK_BYTES:
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
            env=_server_environment(policy),
            timeout=patience,
            watch=watch,
        )
    except GitError as error:
        raise FetchError(source.url, _explain(error, policy)) from error


def run_offline(
    source: GitSource, policy: GitPolicy, args: Sequence[str], *, cwd: Path, stdin: bytes = b""
) -> bytes:
    """Run git inside a fetched repository, where nothing may be fetched behind our back.

    Returns what it prints; raises FetchError.
    """
    try:
        return run_remote(
            "git",
            *_options(_SAFE),
            *args,
            cwd=cwd,
            stdin=stdin,
            env={"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"},
            timeout=policy.timeout,
        )
    except GitError as error:
        raise FetchError(source.url, f"git: {_said(error)}") from error


def _server_environment(policy: GitPolicy) -> dict[str, str]:
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


def _said(error: GitError) -> str:
    return error.stderr.strip().replace("\n", " ") or f"exit code {error.code}"


def _explain(error: GitError, policy: GitPolicy) -> str:
    said = _said(error)
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


def _size(directory: Path) -> int:
    total = 0
    for root, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size  # noqa: PTH116, PTH118 - often
            except OSError:
                continue  # git's temporary files come and go
    return total
