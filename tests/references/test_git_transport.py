"""The servers that git may contact: allowed ones, at checked addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.references.errors import BlockedAddressError, FetchError, TooLargeError
from llm_kb.references.sources.git import ask_server, run_offline
from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import Policy
from tests.references.remotes import Remote


def ask(url: str, policy: Policy) -> bytes:
    return ask_server(GitSource(url=url), policy, ["ls-remote", "--", url, "HEAD"])


def test_local_repositories_need_the_users_word(remote: Remote) -> None:
    with pytest.raises(FetchError, match="not allowed"):
        ask(remote.url, Policy(timeout=20))
    printed = ask(remote.url, Policy(timeout=20, allow_protocols=("file",)))
    assert printed.decode() == f"{remote.commit}\tHEAD\n"


def test_inside_a_repository_no_server_is_asked(remote: Remote) -> None:
    source = GitSource(url=remote.url)
    policy = Policy(timeout=20, allow_protocols=("file",))
    with pytest.raises(FetchError, match="transport 'file' not allowed"):
        run_offline(source, policy, ["ls-remote", "--", remote.url], cwd=remote.directory)


def test_a_process_of_git_that_ends_at_the_size_limit_is_an_error_of_size(
    remote: Remote, tmp_path: Path
) -> None:
    """Git prints the signal that ended its helper, which writes the files."""
    policy = Policy(timeout=20, allow_protocols=("file",))
    source = GitSource(url=remote.url)
    died = 'alias.died=!kill -s XFSZ "$$" #'
    with pytest.raises(TooLargeError, match="it is over max_bytes"):
        ask_server(source, policy, ["-c", died, "died"], cwd=tmp_path)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1"])
def test_hosts_with_private_addresses_are_refused(address: str) -> None:
    policy = Policy(resolver=lambda host, port: [address])
    with pytest.raises(BlockedAddressError):
        ask("https://evil.example/x", policy)


def test_a_host_that_was_not_approved_is_not_looked_up() -> None:
    policy = Policy(hosts=frozenset({"good.example"}), resolver=lambda host, port: [host])
    with pytest.raises(FetchError, match=r"evil\.example was not approved"):
        ask("https://evil.example/x", policy)


def test_git_connects_to_the_address_that_was_checked() -> None:
    """The name is one that no name server knows: without the pin git could not connect."""
    policy = Policy(
        allow_hosts=("wiki.invalid",), timeout=20, resolver=lambda host, port: ["127.0.0.1"]
    )
    with pytest.raises(FetchError) as caught:
        ask("http://wiki.invalid:9/x", policy)
    assert "Could not resolve" not in str(caught.value)
    assert "onnect" in str(caught.value)
