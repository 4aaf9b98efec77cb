"""Addresses in the one form that is checked, shown and connected to. Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, urljoin, urlsplit

import idna

_HOST = re.compile(r"(?:[a-z0-9_][a-z0-9_-]*\.)*[a-z0-9_][a-z0-9_-]*\.?")
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\.?")


def ascii_url(url: str) -> str:
    """Return a URL with its host in ASCII, the form that is checked, shown and connected to.

    It is converted by UTS 46, as browsers do. Programs convert differently, so without one form
    another host could be checked than is connected to. Raises ValueError.
    """
    split = urlsplit(url)
    host, port = split.hostname, split.port  # which raises for one that is not a number
    if host is None:
        return url
    plain = host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
    if ":" in plain and "%" not in plain:
        ipaddress.IPv6Address(plain)
    elif not _HOST.fullmatch(plain):
        raise ValueError(f"{host!r} is not a name of a host")
    elif _NUMBER.fullmatch(plain.rstrip(".").rpartition(".")[2]):
        ipaddress.IPv4Address(plain.rstrip("."))  # spelled otherwise, programs read it otherwise
    if plain == host:
        return url
    user, at, _ = split.netloc.rpartition("@")
    end = "" if port is None else f":{port}"
    return split._replace(netloc=f"{user}{at}{plain}{end}").geturl()


def join_url(base: str, link: str) -> str | None:
    """Return the absolute address of a link, with its host in ASCII; None if it is invalid.

    Blanks and characters that cannot be seen are escaped, as browsers do.
    """
    try:
        url = ascii_url(urljoin(base, link))
        return url if url.isprintable() and " " not in url else escape_url(url)
    except ValueError:
        return None


def escape_url(text: str) -> str:
    """Return an address with the characters escaped that a request may not have."""
    return quote(text, safe="/:?#[]@!$&'()*+,;=%~-._")
