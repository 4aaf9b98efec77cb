"""Names of hosts that programs read differently: the host checked is the host contacted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from llm_kb.references.errors import BlockedAddressError, FetchError, SourceError
from llm_kb.references.sources.git import find_commit
from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import (
    Policy,
    check_git_url,
    check_web_url,
    is_public,
    resolve_host,
)
from llm_kb.references.sources.web import request
from llm_kb.texts.html.addresses import join_url
from tests.references.sites import serve_site


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("faß.example", "xn--fa-hia.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("\uff41.example", "a.example"),
        ("\u24d0.example", "a.example"),
        ("a\u3002example", "a.example"),
        ("g\u0456thub.com", "xn--gthub-n2e.com"),
        ("\uff11\uff12\uff17.0.0.1", "127.0.0.1"),
    ],
)
@pytest.mark.parametrize("check", [check_web_url, check_git_url])
def test_one_name_is_planned_checked_and_asked(
    check: Callable[[str], str], host: str, asked: str
) -> None:
    assert check(f"http://{host}:81/x") == f"http://{asked}:81/x"
    assert join_url("http://other.example/", f"//{host}/y") == f"http://{asked}/y"


@pytest.mark.parametrize(
    "host",
    [
        "%6cocalhost", "a%2eb", "0x7f.1", "2130706433", "127.1", "0177.0.0.1", "1.2.3.4.5",
        "a..b", ".a", "a_\u00fc.example", "xn--\u00fc.example", "\u00ad.example", "[::1%25lo]",
        "[::ffff:1.2.3.4%1]", "a\u2024b", "a!b", "a,b", "\u2488com",
    ],
)  # fmt: skip
@pytest.mark.parametrize("check", [check_web_url, check_git_url])
def test_names_that_could_be_read_in_two_ways_are_refused(
    check: Callable[[str], str], host: str
) -> None:
    with pytest.raises(SourceError):
        check(f"http://{host}/x")


def test_a_redirect_to_letters_is_not_followed() -> None:
    """Its header has bytes, and nobody knows which letters they are."""
    with serve_site() as site:
        url = site.redirect("/x", "http://fa\u00df.example/")
        with pytest.raises(FetchError, match="an invalid address"):
            request(url, Policy(allow_hosts=("127.0.0.1",), timeout=10))


@pytest.mark.parametrize(
    "address",
    [
        "::ffff:127.0.0.1", "::ffff:100.64.0.1", "64:ff9b::6440:1", "::ffff:0:7f00:1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
    ],
)  # fmt: skip
def test_addresses_within_addresses_are_judged_themselves(address: str) -> None:
    assert not is_public(address)


def test_public_ones_of_nat64_are_public() -> None:
    assert is_public("64:ff9b::808:808")


def test_a_port_may_be_allowed_alone() -> None:
    policy = Policy(allow_hosts=("wiki.corp:8080",), resolver=lambda *_: ["10.0.0.1"])

    def ask(port: int) -> Sequence[str]:
        return resolve_host("u", "wiki.corp", port, policy)

    assert ask(8080) == ["10.0.0.1"]
    with pytest.raises(BlockedAddressError):
        ask(22)


@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
def test_git_connects_to_the_address_that_was_checked(scheme: str) -> None:
    """The name is one that no name server knows: otherwise git could not connect at all."""
    policy = Policy(
        allow_hosts=("wiki.invalid",),
        allow_protocols=("ssh",),
        timeout=10,
        resolver=lambda host, port: ["127.0.0.1"],
    )
    source = GitSource(url=f"{scheme}://wiki.invalid:9/x")
    with pytest.raises(FetchError) as caught:
        find_commit(source, policy)
    assert "onnect" in str(caught.value)
    assert "resolve" not in str(caught.value).lower()
