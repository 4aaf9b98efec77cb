"""The guard against requests into private networks.

A host is resolved here, once, and connections go to the addresses that were checked, so
that a second answer of the name server (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import ipaddress
import math
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llm_kb.references.errors import BlockedAddressError, FetchError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Sequence[str]]


def system_resolver(host: str, port: int) -> Sequence[str]:
    """Return a host's addresses, in the system's order of preference."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


@dataclass(slots=True)
class Allowance:
    """The number of requests that may still be made."""

    left: int

    def take(self, url: str) -> None:
        """Count a request; raise FetchError if none is left."""
        if not self.left:
            raise FetchError(url, "it needs more requests than its number of pages allows")
        self.left -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The user's settings for fetching, and the limits of a run."""

    allow_hosts: tuple[str, ...] = ()
    allow_protocols: tuple[str, ...] = ()
    timeout: float = 60
    """Seconds for a whole request, including redirects."""
    max_bytes: int = 500_000_000
    max_files: int = 50_000
    until: float = math.inf
    """Deadline for the requests of a plan, on the monotonic clock."""
    hosts: frozenset[str] | None = None
    """The only hosts that may be asked, as `host_and_port` writes them; None for any public one."""
    allowance: Allowance | None = None
    """Counts the requests of a crawl, redirects included; None for no limit."""
    resolver: Resolver = system_resolver


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_TRANSLATED = ipaddress.ip_network("::ffff:0:0:0/96")  # RFC 2765
_SIX_TO_FOUR = ipaddress.ip_network("2002::/16")
# Reserved, but `is_global` says otherwise in some of the Pythons we run on.
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "192.0.0.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",
        "240.0.0.0/4",
        "::/96",  # v4-compatible
        "64:ff9b:1::/48",  # NAT64 of a local network
        "100::/64",
        "2001::/23",  # Teredo, ORCHID and others that wrap addresses
        "3fff::/20",
        "5f00::/16",
        "fec0::/10",
    )
)


def is_public(text: str) -> bool:
    """Tell whether an address is public.

    An IPv4 address inside an IPv6 one (mapped, translated, NAT64, 6to4) is judged itself.
    """
    try:
        address = _unwrap(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        return False
    if any(address in network for network in _REFUSED if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast


def resolve_host(url: str, host: str, port: int, policy: Policy) -> Sequence[str]:
    """Return the addresses of a host, all of them checked.

    One private address among them is enough to refuse the host, since a connection may go to
    any of them. Hosts in `allow_hosts` may have any address.
    """
    try:
        addresses = policy.resolver(host, port)
    except (OSError, UnicodeError) as error:
        raise FetchError(url, f"cannot resolve {host}: {error}") from error
    if not addresses:
        raise FetchError(url, f"{host} has no address")
    allowed = {_plain(name) for name in policy.allow_hosts}
    if not {_plain(host), f"{_plain(host)}:{port}"} & allowed:
        for address in addresses:
            if not is_public(address):
                raise BlockedAddressError(url, host, address)
    return addresses


def _unwrap(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return address.ipv4_mapped
        if address in _NAT64 or address in _TRANSLATED:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if address in _SIX_TO_FOUR:
            return ipaddress.IPv4Address((int(address) >> 80) & 0xFFFFFFFF)
    return address


def _plain(host: str) -> str:
    return host.lower().strip("[]").rstrip(".")
