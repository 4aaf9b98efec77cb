"""The rules for addresses, refs and paths of sources, and for the names of fetched files. Pure.

These values may come from a model or a stranger. None may act as an option or a helper of git,
lead outside, hide from the operator who approves it, or hold a secret.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from urllib.parse import SplitResult, unquote, urlsplit

import idna

from llm_kb.converters.addresses import ascii_url
from llm_kb.references.errors import FetchError, SourceError
from llm_kb.subjects.names import UNUSABLE, is_portable

GIT_PROTOCOLS = frozenset({"https", "http"})
"""Protocols that git may use by default."""

OPTIONAL_GIT_PROTOCOLS = frozenset({"file", "git", "ssh"})
"""Protocols that `allow_protocols` may add; remote helpers such as `ext::` never run."""

USUAL_PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418}

# A subset of git's own rule (git-check-ref-format). The first character cannot begin an
# option, a refspec or a revision expression.
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+=#@-]*")


def check_git_url(url: str, where: str, protocols: Collection[str] = ()) -> str:
    """Return the URL of a repository, checked; raise SourceError if git may not use it."""
    allowed = GIT_PROTOCOLS | (OPTIONAL_GIT_PROTOCOLS & set(protocols))
    if "::" in url.partition("//")[0]:
        raise SourceError(where, f"url {url!r}: git remote helpers are never run")
    split = _split(url, where)
    if split.scheme not in allowed:
        hint = ""
        if split.scheme in OPTIONAL_GIT_PROTOCOLS or not split.scheme:
            hint = (
                "; allow_protocols under [kb.references] in your own kb.toml adds "
                "URLs such as file:///path, ssh://git@host/path and git://host/path"
            )
        kinds = " or ".join(sorted(allowed))
        raise SourceError(where, f"url {url!r} must be a URL of {kinds}{hint}")
    if split.scheme != "file":
        url = _check_host(split, url, where)
    if split.query or split.fragment:
        raise SourceError(where, f"url {url!r} may not have a query or a #fragment")
    if not split.path.strip("/"):
        raise SourceError(where, f"url {url!r} names no repository")
    return url


def check_web_url(url: str, where: str) -> str:
    """Return the URL of a page, checked; raise SourceError unless it is http or https."""
    split = _split(url, where)
    if split.scheme not in {"http", "https"}:
        raise SourceError(where, f"url {url!r} must be http or https")
    return _check_host(split, url, where)


def host_and_port(url: str) -> str:
    """Return the host of a URL, with its port unless it is the usual one; empty without a host."""
    split = urlsplit(url)
    host = split.hostname or ""
    if not split.port or split.port == USUAL_PORTS.get(split.scheme):
        return host
    return f"[{host}]:{split.port}" if ":" in host else f"{host}:{split.port}"


def require_approved(url: str, hosts: Collection[str] | None) -> None:
    """Raise FetchError unless the host of a URL is among the approved ones; None allows any."""
    if hosts is not None and (host := host_and_port(url)) not in hosts:
        raise FetchError(url, f"{host} is not approved; give this address as a source, to ask")


def show_host(place: str) -> str:
    """Return a host and port for people, with the spelling in other scripts added."""
    host, colon, port = place.partition(":")
    try:
        plain = host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
        spelled = idna.decode(plain) if "xn--" in plain else plain
    except idna.IDNAError:
        return place if place.isascii() else ascii(place)
    return f"{plain}{colon}{port}" + (f" (spelled {spelled})" if spelled != plain else "")


def check_ref(ref: str | None, where: str) -> str | None:
    """Return a branch, tag or commit id, checked; raise SourceError for anything else."""
    if ref is None:
        return None
    bad = not _REF.fullmatch(ref) or ".." in ref or "//" in ref or "@{" in ref
    if bad or ref.endswith(("/", ".", ".lock")) or "/." in ref:
        raise SourceError(where, f"ref {ref!r} is not the name of a branch or tag, nor a commit id")
    return ref


def check_paths(paths: Iterable[str], where: str) -> tuple[str, ...]:
    """Return the `paths` of a source; raise SourceError for one that leads outside."""
    paths = tuple(dict.fromkeys(paths))
    for path in paths:
        parts = path.removesuffix("/").split("/")
        if is_unsafe(path) or any(part in {"", ".", ".."} for part in parts):
            raise SourceError(
                where,
                f"path {path!r} must name a file or a directory inside the source, such as "
                "'README.md' or 'docs/'",
            )
    return paths


def is_unsafe(path: str) -> bool:
    """Tell whether a path has deceptive characters, or a backslash."""
    return "\\" in path or UNUSABLE.search(path) is not None


def _split(url: str, where: str) -> SplitResult:
    # Unprintable characters and blanks could deceive; in a URL they must be escaped.
    if not url.isprintable() or " " in url or url.startswith("-"):
        raise SourceError(where, f"url {url!r} has blanks or control characters, or a leading '-'")
    try:
        split = urlsplit(url)
        _ = split.port  # parsed late, and raises late
    except ValueError as error:
        raise SourceError(where, f"url {url!r} is invalid: {error}") from error
    return split


def _check_host(split: SplitResult, url: str, where: str) -> str:
    """Return the URL with its host in ASCII; raise SourceError for a bad host or a password."""
    if not split.hostname or split.hostname.startswith("-"):
        raise SourceError(where, f"url {url!r} names no host")
    # `ssh://git@host` names a login, which is not a secret.
    if split.password or (split.username and split.scheme != "ssh"):
        raise SourceError(
            where,
            f"the url of {split.hostname} contains a user name or password, which would be kept in "
            "plain text; use a git credential helper",
        )
    try:
        return ascii_url(url)
    except ValueError as error:
        raise SourceError(where, f"url {url!r} names no host: {error}") from error


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
    """Return an address in the form by which pages are compared: `/index.html` becomes `/`."""
    return re.sub(r"/index\.html?$", "/", url.partition("#")[0])


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
    parts[-1] = re.sub(r"-(?:html?|md|markdown|txt|php)$", "", parts[-1])
    if split.query:
        parts[-1] += f"-{slug_text(unquote(split.query), url)}"
    if len(parts) > 12:
        return f"{folder}/{slug_text(split.path, url)}.md"
    return f"{folder}/{'/'.join(parts)}.md"


def slug_text(text: str, whole: str, most: int = MAX_NAME) -> str:
    """Return a text as lower-case letters, digits and dashes; a long or empty one gets a digest."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if slug and len(slug) <= most:
        return slug if is_portable(slug) else f"{slug}-1"  # such as `aux`, a device on Windows
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[:most].rstrip('-')}-{digest}".lstrip("-")


def unused_name(name: str, taken: Collection[str]) -> str:
    """Return a name, with a number before its extension if it is taken (ignoring case)."""
    folded = {other.casefold() for other in taken}
    stem, dot, extension = name.rpartition(".")
    if not dot or "/" in extension:
        stem, dot, extension = name, "", ""
    candidate, number = name, 1
    while candidate.casefold() in folded:
        number += 1
        candidate = f"{stem}-{number}{dot}{extension}"
    return candidate
