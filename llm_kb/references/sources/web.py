"""Requests over HTTP to checked addresses, within limits, and web pages as Markdown.

The standard library's client lets us choose the address a connection goes to.
No cookies, no credentials, no proxies.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import IO
from urllib.parse import quote, urlsplit, urlunsplit

import webencodings

from llm_kb.files.conversion import ConversionError, Conversions
from llm_kb.files.converters.addresses import join_url
from llm_kb.files.converters.html import tree_to_markdown
from llm_kb.files.converters.html_page import (
    page_links,
    parse_html,
    refresh_target,
)
from llm_kb.references.errors import (
    FetchError,
    LedAwayError,
    NoPageError,
    SourceError,
    TooLargeError,
)
from llm_kb.references.sources.rules import (
    Policy,
    check_web_url,
    host_and_port,
    require_approved,
    resolve_host,
)
from llm_kb.subjects.names import DOCUMENTS, INSTALL, can_convert, find_extension

PRODUCT = "llm-kb"
"""Our product token in `robots.txt`."""

USER_AGENT = f"{PRODUCT} (+https://pypi.org/project/llm-kb/)"
MAX_REDIRECTS = 5
MAX_PAGE_BYTES = 10_000_000
"""Size limit for a page, whatever was planned."""

MAX_FIELD = 1_000
"""The most characters of a header that is read."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_READ = (
    "content-encoding", "content-length", "content-type", "etag", "last-modified", "location",
    "transfer-encoding",
)  # fmt: skip
"""The headers that are read."""

_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:+-]{1,40})""", re.ASCII | re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer; `url` is the address after redirects, `hosts` those of all that were requested."""

    url: str
    status: int
    headers: Mapping[str, str]
    """Those in `_READ`, by their names in lower case."""
    body: bytes = b""
    hosts: tuple[str, ...] = ()

    @property
    def content_type(self) -> str:
        """The media type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The declared character set, in lower case."""
        found = _CHARSET.search(self.headers.get("content-type", ""))
        return found[1].lower() if found else None


Allows = Callable[[str], bool]
"""Tells whether a redirect may lead to an address."""


def anywhere(_url: str) -> bool:
    """Allow every address."""
    return True


def request(  # noqa: PLR0913 - one thing for each rule
    url: str,
    policy: Policy,
    *,
    headers: Mapping[str, str] | None = None,
    hosts: Collection[str] | None = None,
    most: int = MAX_PAGE_BYTES,
    allows: Allows = anywhere,
) -> Response:
    """Return the answer to a GET request, following redirects; each hop is checked like the first.

    `hosts` are those that a redirect may lead to, as `host_and_port` writes them; None allows any
    public one. `allows` tells whether it may lead to an address. `most` is a limit of its size, in
    addition to `max_bytes`. Raises FetchError; a status of 400 and above is returned like any
    other.
    """
    policy = replace(policy, max_bytes=min(policy.max_bytes, most))
    deadline = min(time.monotonic() + policy.timeout, policy.until)
    if time.monotonic() >= policy.until:
        raise FetchError(url, "its plan has taken too long; make it with fewer pages")
    contacted: list[str] = []
    for _ in range(MAX_REDIRECTS + 1):
        require_approved(url, policy.hosts)
        if policy.allowance:
            policy.allowance.take(url)
        response = _exchange(url, policy, headers or {}, deadline)
        contacted.append(host_and_port(url))
        if response.status not in _REDIRECTS or "location" not in response.headers:
            return replace(response, hosts=tuple(contacted))
        target = _find_target(url, response.headers["location"])
        check_redirect(url, target, hosts, allows)
        url = target
    raise FetchError(url, f"more than {MAX_REDIRECTS} redirects")


def check_redirect(
    url: str, target: str, hosts: Collection[str] | None, allows: Allows = anywhere
) -> None:
    """Raise FetchError if a redirect may not be followed, as to a host that is not in `hosts`."""
    if (urlsplit(url).scheme, urlsplit(target).scheme) == ("https", "http"):
        raise FetchError(url, f"it redirects from https to http ({target})")
    host = host_and_port(target)
    if hosts is not None and host not in hosts:
        reason = f"it redirects to another host, {host}, which was not approved for this topic"
        advice = "if you trust it, name it in `sources` of topic.md, or create the topic again"
        raise LedAwayError(url, f"{reason}; {advice}")
    if not allows(target):
        raise LedAwayError(url, f"it redirects to {target}, which is not to be read")


def _find_target(url: str, location: str) -> str:
    """Return the target of a redirect; raise FetchError if it is not a web address."""
    target = join_url(url, _quote(location))
    if target is None:
        raise FetchError(url, f"it redirects to an invalid address: {location[:200]!r}")
    try:
        return check_web_url(target, f"redirect of {url}")
    except SourceError as error:
        raise FetchError(
            url, f"it redirects to an address that is not a web page's: {error.reason}"
        ) from error


class _PinnedConnection(http.client.HTTPConnection):
    """A connection to checked addresses, with a deadline."""

    def __init__(self, url: str, policy: Policy, deadline: float) -> None:
        split = urlsplit(url)
        self._secure = split.scheme == "https"
        port = split.port or (443 if self._secure else 80)
        super().__init__(split.hostname or "", port)
        if self._secure:
            self.default_port = 443  # so that `Host` has no needless port
        self._url = url
        self._policy = policy
        self._deadline = deadline
        self._raw: socket.socket | None = None

    def connect(self) -> None:
        """Connect to the first address that answers; start TLS for https."""
        addresses = resolve_host(self._url, self.host, self.port, self._policy)
        problem: OSError | None = None
        for address in addresses:
            try:
                left = max(0.001, self._deadline - time.monotonic())
                self._raw = socket.create_connection((address, self.port), timeout=left)
                break
            except OSError as error:
                problem = error
        else:
            raise problem or OSError("no address")
        if self._secure:
            context = ssl.create_default_context()
            # The handshake comes after the assignment, so that `abort` knows the new socket.
            self._raw = secure = context.wrap_socket(
                self._raw, server_hostname=self.host, do_handshake_on_connect=False
            )
            secure.do_handshake()
        self.sock = self._raw

    def close(self) -> None:
        """Close the connection, even if it was not fully established."""
        super().close()
        if self._raw is not None:
            self._raw.close()

    def abort(self) -> None:
        """Break the connection from another thread, so that pending reads end at once."""
        if self._raw is not None:
            with suppress(OSError):  # it may be gone already
                socket.socket.shutdown(self._raw, socket.SHUT_RDWR)


def _exchange(url: str, policy: Policy, headers: Mapping[str, str], deadline: float) -> Response:
    """Return the answer to one request, without following redirects."""
    try:
        split = urlsplit(url)
        target = urlunsplit(("", "", _quote(split.path or "/"), _quote(split.query), ""))
        with (
            closing(_PinnedConnection(url, policy, deadline)) as connection,
            _watchdog(connection, url, deadline, policy.timeout),
        ):
            sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", "Connection": "close"}
            connection.request("GET", target, headers={**sent, **headers})
            answer = connection.getresponse()
            fields = _read_fields(answer, url)
            has_body = answer.status not in _REDIRECTS | {204, 304}
            body = _read_body(answer, fields, url, policy.max_bytes) if has_body else b""
            return Response(url=url, status=answer.status, headers=fields, body=body)
    except (OSError, EOFError, http.client.HTTPException, zlib.error, ValueError) as error:
        raise FetchError(url, str(error) or type(error).__name__) from error


@contextmanager
def _watchdog(
    connection: _PinnedConnection, url: str, deadline: float, timeout: float
) -> Iterator[None]:
    """Break the connection at the deadline; a socket's own timeout restarts with each byte."""
    timer = threading.Timer(max(0.0, deadline - time.monotonic()), connection.abort)
    timer.daemon = True
    timer.start()
    late = FetchError(url, f"no complete answer within {timeout:g} s")
    try:
        yield
    except Exception as error:
        # After the deadline any error may come from the broken connection.
        if time.monotonic() >= deadline or isinstance(error, TimeoutError):
            raise late from error
        raise
    finally:
        timer.cancel()
    if time.monotonic() >= deadline:
        raise late


def _read_fields(answer: http.client.HTTPResponse, url: str) -> dict[str, str]:
    """Return the headers that are read; raise FetchError for a long one.

    Parsers of the standard library take quadratic time for what is in them.
    """
    fields = {name: str(answer.headers.get(name, "")) for name in _READ}
    if long := [name for name, text in fields.items() if len(text) > MAX_FIELD]:
        raise FetchError(url, f"its header {long[0]} has over {MAX_FIELD:,} characters")
    return {name: text for name, text in fields.items() if text}


def _read_body(
    answer: http.client.HTTPResponse, fields: Mapping[str, str], url: str, most: int
) -> bytes:
    """Return the body, decompressed; raise TooLargeError before it is over `most` bytes."""
    declared = fields.get("content-length", "")
    if re.fullmatch(r"[0-9]{1,18}", declared) and int(declared) > most:
        raise TooLargeError(url, f"it has {int(declared):,} bytes, over the limit of {most:,}")
    encoding = fields.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise FetchError(url, f"its encoding {encoding!r} was not asked for")
    body = _read_chunks(answer.fp, most) if answer.chunked else answer.read(most + 1)
    if answer.length and len(body) <= most:
        raise FetchError(url, f"the connection ended {answer.length:,} bytes early")
    if encoding.endswith("gzip") and len(body) <= most:
        body = gzip.GzipFile(fileobj=io.BytesIO(body)).read(most + 1)
    if len(body) > most:
        raise TooLargeError(url, f"it is over the limit of {most:,} bytes")
    return body


def _read_chunks(file: IO[bytes], most: int) -> bytes:
    """Return the content of chunks up to over `most` bytes; raise ValueError for an odd size.

    `http.client` reads a chunk of size -1 to its end.
    """
    body = bytearray()
    while len(body) <= most:
        size = _CHUNK_SIZE.fullmatch(file.readline(MAX_FIELD).partition(b";")[0].strip())
        if size is None:
            raise ValueError("a chunk of the answer has no size")
        length = int(size[0], 16)
        if not length:
            break
        left = min(length, most + 1 - len(body))
        piece = file.read(left)
        if len(piece) < left:
            raise EOFError("the connection ended early")
        body += piece
        if left == length and file.readline(3).strip():
            raise ValueError("a chunk of the answer is longer than its size")
    return bytes(body)


def _quote(text: str) -> str:
    """Return a text with characters escaped that a request line may not have."""
    return quote(text, safe="/:?#[]@!$&'()*+,;=%~-._")


ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1"

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml"})

_DOCUMENT_TYPES = {
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}

MAX_TEXT_BYTES = 500_000
"""Size limit for the lists of a site's pages, such as llms.txt."""

TOO_MANY_REQUESTS = 429

_REFRESH = re.compile(rb"""http-equiv\s*=\s*["']?refresh""", re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE
)


Conditions = Mapping[str, str | None]
"""The address and validators of a fetched page, for a conditional request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a site, or a list of its pages."""

    url: str
    """The address after redirects."""
    text: str | None
    """Its text as it is kept, empty if it has none; None if it is unchanged."""
    size: int = 0
    """The number of bytes fetched."""
    etag: str | None = None
    last_modified: str | None = None
    digest: str = ""
    """The hash of its bytes."""
    links: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """The hosts that were contacted for it."""


def find_page(
    url: str,
    policy: Policy,
    *,
    hosts: Collection[str] | None = None,
    known: Conditions | None = None,
    allows: Allows = anywhere,
) -> Page:
    """Return a page with its links; one that is unchanged since `known` has no text and no links.

    Raises LedAwayError if it redirects to a host that is not in `hosts`, or to an address
    that is not allowed.
    """
    get = partial(request, policy=policy, hosts=hosts, allows=allows)
    answer = _get(url, known, get, partial(check_redirect, hosts=hosts, allows=allows))
    if answer.status == 304 and known:
        if known.get("url") not in {None, answer.url}:
            return find_page(url, policy, hosts=hosts, allows=allows)
        return Page(url=answer.url, text=None, hosts=answer.hosts)
    _require_text(answer)
    text = _convert(answer) or _decode(answer)
    links: list[str] = []
    if answer.content_type in HTML_TYPES:
        root = parse_html(text)
        links = page_links(root, answer.url)
        text = tree_to_markdown(root, answer.url, len(text))
    return Page(
        url=answer.url,
        text=text if text.strip() else "",
        size=len(answer.body),
        etag=answer.headers.get("etag"),
        last_modified=answer.headers.get("last-modified"),
        digest=hashlib.sha256(answer.body).hexdigest(),
        links=tuple(links),
        hosts=answer.hosts,
    )


def no_text(url: str) -> FetchError:
    """Return the error for a page without text."""
    return FetchError(url, "there is no text in it (is it drawn by a script?)")


def _make_headers(known: Conditions | None) -> dict[str, str]:
    conditions = {
        "If-None-Match": (known or {}).get("etag"),
        "If-Modified-Since": (known or {}).get("last_modified"),
    }
    return {"Accept": ACCEPT, **{name: value for name, value in conditions.items() if value}}


def fetch_text(
    url: str,
    policy: Policy,
    hosts: Collection[str] | None = None,
    *,
    most: int = MAX_TEXT_BYTES,
) -> Page:
    """Return a text file of a site, such as robots.txt; without text if there is none.

    There is none only if the server answers 4xx, but not 429. Raises FetchError for any other
    failure, LedAwayError if it redirects to a host that is not in `hosts`.
    """
    answer = request(url, policy, hosts=hosts, most=most)
    is_missing = 400 <= answer.status < 500 and answer.status != TOO_MANY_REQUESTS
    if answer.status != 200 and not is_missing:
        raise FetchError(url, f"the server answered {answer.status}")
    return Page(url=answer.url, text="" if is_missing else _decode(answer), hosts=answer.hosts)


def _get(
    url: str,
    known: Conditions | None,
    get: Callable[..., Response],
    check: Callable[[str, str], None],
) -> Response:
    """Return the answer for a page, following redirects by `<meta>` as well."""
    contacted: tuple[str, ...] = ()
    for _ in range(MAX_REDIRECTS):
        answer = get(url, headers=_make_headers(known))
        contacted += answer.hosts
        answer = replace(answer, hosts=contacted)
        if answer.content_type not in HTML_TYPES or not _REFRESH.search(answer.body[:4096]):
            return answer
        target = refresh_target(parse_html(_decode(answer)), answer.url)
        if not target or target == answer.url:
            return answer
        check(url, target)
        url = target
    raise FetchError(url, f"more than {MAX_REDIRECTS} redirects")


def _document_kind(answer: Response) -> str | None:
    """Return the kind of document (`pdf`) in an answer; None if it is not a document."""
    extension = find_extension(urlsplit(answer.url).path)
    is_named = extension in DOCUMENTS and not answer.content_type.startswith("text/")
    return _DOCUMENT_TYPES.get(answer.content_type) or (extension if is_named else None)


def _convert(answer: Response) -> str | None:
    """Return the text of a document; None if the answer is not a document."""
    kind = _document_kind(answer)
    try:
        text = Conversions(None).convert(kind, answer.body) if kind else b""
    except ConversionError as error:
        raise FetchError(answer.url, error.reason) from error
    return text.decode("utf-8", "replace") or None


def _require_text(answer: Response) -> None:
    """Raise FetchError for a failure, NoPageError if there is no page or it is not text."""
    if answer.status >= 400:
        kind = NoPageError if answer.status in {404, 410} else FetchError
        raise kind(answer.url, f"the server answered {answer.status}")
    if document := _document_kind(answer):
        if can_convert():
            return
        raise NoPageError(answer.url, f"it is a document ({document}); to read it: {INSTALL}")
    content_type = answer.content_type
    is_text = content_type.startswith("text/") or content_type.endswith(("+xml", "+json"))
    if content_type and not is_text and content_type not in TEXT_TYPES:
        raise NoPageError(answer.url, f"it is not text but {content_type}")


def _decode(answer: Response) -> str:
    """Return the text of a body, decoded by its byte order mark, header or `<meta>`, else as UTF-8.

    Character sets are those that browsers know (WHATWG). Python knows more, but some of its
    codecs take quadratic time or are not character sets.
    """
    declared = answer.charset
    if not declared and (found := _META_CHARSET.search(answer.body[:4096])):
        declared = found[1].decode("ascii")
    text: str = webencodings.decode(answer.body, _find_encoding(declared or "utf-8"))[0]
    return text


def _find_encoding(name: str) -> webencodings.Encoding:
    """Return the encoding of a declared name; UTF-8 if browsers do not know it."""
    # Servers write `latin-1` as Python does; browsers know `latin1`.
    names = (name, name.replace("-", "")) if name.isascii() else ()
    found = next(filter(None, map(webencodings.lookup, names)), webencodings.UTF8)
    return webencodings.UTF8 if found.name == "replacement" else found
