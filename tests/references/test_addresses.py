"""Public and private addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.sources.rules import is_public

PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:10.0.0.1",
    "::ffff:1.1.1.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:101:101::1",
    "2001:0:53aa:64c:0:fffe:80ff:fffe",
    "2001:db8::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "not an address",
]
PUBLIC = [
    "1.1.1.1",
    "93.184.216.34",
    "2606:4700:4700::1111",
    "64:ff9b::101:101",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_and_reserved_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_changes_nothing(address: object) -> None:
    assert is_public(f"64:ff9b::{address}") == is_public(str(address))
