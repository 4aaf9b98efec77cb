"""The rules for addresses, refs, paths and hosts, and for the names of fetched files.

These values may come from a model or a stranger. None may act as an option or a helper of git,
lead outside or into a private network, hide from the operator who approves it, or hold a secret.
A host is resolved here, once, and connections go to the addresses that were checked, so
that a second answer of the name server (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import re
import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

import idna

from llm_kb.files.conversion import Conversions
from llm_kb.references.errors import BlockedAddressError, FetchError, LedAwayError, SourceError
from llm_kb.subjects.topics import is_portable
from llm_kb.texts.formats import strip_served
from llm_kb.texts.html.addresses import ascii_url
from llm_kb.texts.safe import UNUSABLE

GIT_PROTOCOLS = frozenset({"https", "http"})
"""Protocols that git may use by default."""

OPTIONAL_GIT_PROTOCOLS = frozenset({"file", "ssh"})
"""Protocols that `allow_protocols` may add; remote helpers such as `ext::` never run."""

USUAL_PORTS = {"http": 80, "https": 443, "ssh": 22}

# A subset of git's own rule (git-check-ref-format). The first character cannot begin an
# option, a refspec or a revision expression; `@` begins the tags of npm's scopes.
_REF = re.compile(r"(?:\w|@\w)[\w./+=#@-]*")


def check_git_url(url: str, protocols: Collection[str] = ()) -> str:
    """Return the URL of a repository, checked; raise SourceError if git may not use it."""
    allowed = GIT_PROTOCOLS | (OPTIONAL_GIT_PROTOCOLS & set(protocols))
    if "::" in url.partition("//")[0]:
        raise SourceError(f"url {url!r}: git remote helpers are never run")
    split = _split(url)
    if split.scheme not in allowed:
        raise SourceError(
            f"url {url!r} must be a URL of {' or '.join(sorted(allowed))}; allow_protocols under "
            "[kb.references] in your own kb.toml adds URLs such as file:///path and "
            "ssh://git@host/path"
        )
    if split.scheme != "file":
        url = _check_host(split, url)
    if split.query or split.fragment:
        raise SourceError(f"url {url!r} may not have a query or a #fragment")
    if not split.path.strip("/"):
        raise SourceError(f"url {url!r} names no repository")
    return url


def check_web_url(url: str) -> str:
    """Return the URL of a page, checked; raise SourceError unless it is http or https."""
    split = _split(url)
    if split.scheme not in {"http", "https"}:
        raise SourceError(f"url {url!r} must be http or https")
    return _check_host(split, url)


def host_and_port(url: str) -> str:
    """Return the host of a URL, with its port unless it is the usual one; empty without a host.

    A file is its own host.
    """
    if url.startswith("file:"):
        return url
    try:
        split = urlsplit(url)
        host, port = split.hostname or "", split.port
    except ValueError:  # metadata of a package may name anything
        return ""
    if not port or port == USUAL_PORTS.get(split.scheme):
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def require_approved(url: str, policy: Policy) -> None:
    """Raise LedAwayError unless the host of a URL may be asked."""
    if policy.hosts is not None and (host := host_and_port(url)) not in policy.hosts:
        reason = f"{host} was not approved; if you trust it, name this address as a source"
        raise LedAwayError(url, reason, host)


def show_host(place: str) -> str:
    """Return a host and port for people, with the spelling in other scripts added."""
    host, colon, port = place.partition(":")
    try:
        plain = host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
        spelled = idna.decode(plain) if "xn--" in plain else plain
    except idna.IDNAError:
        return place if place.isascii() else ascii(place)
    return f"{plain}{colon}{port}" + (f" (spelled {spelled})" if spelled != plain else "")


def is_ref(text: str) -> bool:
    """Tell whether a text may be the name of a branch or tag, in any script, or a commit id."""
    if not _REF.fullmatch(text) or UNUSABLE.search(text):
        return False
    is_bad = any(each in text for each in ("..", "//", "@{", "/."))
    return not is_bad and not text.endswith(("/", ".", ".lock"))


def check_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the `paths` of a source; raise SourceError for one that leads outside."""
    paths = tuple(dict.fromkeys(paths))
    for path in paths:
        parts = path.removesuffix("/").split("/")
        is_unsafe = "\\" in path or UNUSABLE.search(path)
        if is_unsafe or any(part in {"", ".", ".."} for part in parts):
            raise SourceError(
                f"path {path!r} must name a file or a directory inside the source, such as "
                "'README.md' or 'docs/'"
            )
    return paths


def _split(url: str) -> SplitResult:
    # Unprintable characters and blanks could deceive; in a URL they must be escaped.
    if not url.isprintable() or " " in url or url.startswith("-"):
        raise SourceError(f"url {url!r} has blanks or control characters, or a leading '-'")
    try:
        split = urlsplit(url)
        _ = split.port  # parsed late, and raises late
    except ValueError as error:
        raise SourceError(f"url {url!r} is invalid: {error}") from error
    return split


def _check_host(split: SplitResult, url: str) -> str:
    """Return the URL with its host in ASCII; raise SourceError for a bad host or a password."""
    if not split.hostname or split.hostname.startswith("-"):
        raise SourceError(f"url {url!r} names no host")
    # `ssh://git@host` names a login, which is not a secret.
    if split.password or (split.username and split.scheme != "ssh"):
        raise SourceError(
            f"the url of {split.hostname} contains a user name or password, which would be kept in "
            "plain text; use a git credential helper"
        )
    try:
        return ascii_url(url)
    except ValueError as error:
        raise SourceError(f"url {url!r} names no host: {error}") from error


MAX_NAME = 100
MAX_PATH = 1000


def is_safe_path(path: str) -> bool:
    """Tell whether a `/`-separated path may be written below a topic, on any system.

    Such a path cannot lead out of the directory, is not misread by git, a terminal or Windows,
    has names that a topic can hold, and is of bounded length.
    """
    return len(path) <= MAX_PATH and all(
        is_portable(name) and name.lower() != ".git" for name in path.split("/")
    )


def page_key(url: str) -> str:
    """Return an address in the form by which pages are compared: `/index.html` becomes `/`.

    What says where a reader came from (`utm_source`) is left out.
    """
    url = re.sub(r"(?<=[?&])utm_[^&]*(?:&|$)", "", url.partition("#")[0]).rstrip("?&")
    return re.sub(r"/index\.html?$", "/", url)


def page_name(url: str) -> str:
    """Return the file name of a page: `https://e.org/learn/0.6/` → `e-org-learn-0-6.md`."""
    split = urlsplit(url)
    return f"{slug_text(f'{split.netloc} {unquote(split.path)} {split.query}', url)}.md"


def page_path(url: str) -> str:
    """Return the path of a crawled page, below a folder named after its host."""
    split = urlsplit(url)
    folder = slug_text(split.netloc, url)
    parts = [slug_text(unquote(part), part) for part in split.path.split("/") if part]
    if not parts or split.path.endswith("/"):
        parts.append("index")
    parts[-1] = strip_served(parts[-1])
    if split.query:
        parts[-1] += f"-{slug_text(unquote(split.query), url)}"
    parts[-1] = _avoid_device(parts[-1])
    if len(parts) > 12:
        return f"{folder}/{slug_text(split.path, url)}.md"
    return f"{folder}/{'/'.join(parts)}.md"


def slug_text(text: str, whole: str, most: int = MAX_NAME) -> str:
    """Return a text as lower-case letters, digits and dashes; a long or empty one gets a digest."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if slug and len(slug) <= most:
        return _avoid_device(slug)
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[:most].rstrip('-')}-{digest}".lstrip("-")


def _avoid_device(slug: str) -> str:
    """Return a name that is not one of a device on Windows, such as `aux`."""
    return slug if is_portable(slug) else f"{slug}-1"


def unused_name(name: str, taken: Collection[str]) -> str:
    """Return a name, with a number before its extension if it is taken (ignoring case)."""
    folded = {other.casefold() for other in taken}
    path, number = PurePosixPath(name), 1
    while name.casefold() in folded:
        number += 1
        name = str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
    return name


Resolver = Callable[[str, int], Sequence[str]]


def system_resolver(host: str, port: int) -> Sequence[str]:
    """Return a host's addresses, in the system's order of preference."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


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
    trusted: frozenset[str] = frozenset()
    """The hosts that git may log in to, and the clones of this machine that it may read, as
    `host_and_port` writes them."""
    resolver: Resolver = system_resolver
    conversions: Conversions = field(default_factory=partial(Conversions, None))
    """Converts the documents of a plan, which share its time."""

    def protocols(self, url: str) -> Sequence[str]:
        """Return the protocols that git may use for a URL besides the usual ones."""
        return (*self.allow_protocols, *(["file"] if url in self.trusted else []))


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Reserved, but `is_global` says otherwise in some of the Pythons we run on: of IPv4 those for
# carrier-grade NAT and 6to4 relays among others; of IPv6 those that hold IPv4 (compatible, mapped,
# translated, 6to4), then NAT64 of a local network, Teredo, ORCHID and others that wrap addresses.
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in """
    0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.88.99.0/24 198.18.0.0/15 240.0.0.0/4
    ::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 2002::/16
    64:ff9b:1::/48 100::/64 2001::/23 3fff::/20 5f00::/16 fec0::/10
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)


def is_public(text: str) -> bool:
    """Tell whether an address is public; that of NAT64 is judged by the IPv4 address in it."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if address in _NAT64:
        address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    is_refused = any(address in network for network in _REFUSED)
    return address.is_global and not address.is_multicast and not is_refused


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


def _plain(host: str) -> str:
    return host.lower().strip("[]").rstrip(".")
