"""Requests over HTTP to checked addresses, within limits, and web pages as Markdown.

No cookies, no credentials, no proxies.
"""

from __future__ import annotations

import gzip
import io
import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from llm_kb.files.conversion import ConversionError
from llm_kb.references import errors
from llm_kb.references.errors import FetchError
from llm_kb.references.sources import rules
from llm_kb.references.sources.connections import HTTP_ERRORS, Answer, open_answer
from llm_kb.references.sources.rules import Policy, host_and_port
from llm_kb.texts import formats
from llm_kb.texts.decoding import decode_page
from llm_kb.texts.html import to_markdown
from llm_kb.texts.html.addresses import escape_url, join_url
from llm_kb.texts.html.page import page_links, refresh_target
from llm_kb.texts.html.tree import parse_html

PRODUCT = "llm-kb"
"""Our product token in `robots.txt`."""

USER_AGENT = f"{PRODUCT} (+https://pypi.org/project/llm-kb/)"
MAX_REDIRECTS = 5
MAX_PAGE_BYTES = 10_000_000
"""Size limit for a page, whatever was planned."""

MAX_TEXT_BYTES = 500_000
"""Size limit for the lists of a site's pages, such as llms.txt."""

MAX_FIELD = 1_000
"""The most characters of a header that is read."""

MAX_PIECES = 20_000
"""The most small pieces of a body, each of which takes time, beside one for 64 bytes."""

ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1"
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
PAGE_TYPES = HTML_TYPES | {"text/markdown"}
TEXT_TYPES = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/vnd.oai.openapi"}
)
UNTYPED = frozenset({"application/octet-stream", "binary/octet-stream"})
"""What servers call files whose type they do not know."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_READ = (
    "content-encoding", "content-length", "content-type", "etag", "last-modified", "location",
    "retry-after",
)  # fmt: skip
"""The headers that are read."""

_ENCODINGS = frozenset({"", "identity", "none", "utf-8", "gzip", "x-gzip"})
"""Encodings of a body; `none` and `utf-8` are not, but servers send them."""

_BUSY = frozenset({429, 503})

_PAGE = re.compile(rb"\s{0,100}<(?:!doctype html|html)\b", re.IGNORECASE)
_GZIP = b"\x1f\x8b"
_REFRESH = re.compile(rb"""http-equiv\s*=\s*["']?refresh""", re.IGNORECASE)
_NOT_TEXT = re.compile(r"(?im)^#.*$|\b(?:loading|please wait)\b|\W")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:+-]{1,40})""", re.ASCII | re.IGNORECASE)


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
        """The media type without its parameters; of a page also if the server gives none."""
        declared = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_page = not declared and _PAGE.match(self.body)
        return "text/html" if is_page else declared


Allows = Callable[[str], bool]
"""Tells whether a redirect may lead to an address."""


def request(
    url: str,
    policy: Policy,
    *,
    headers: Mapping[str, str] | None = None,
    most: int = MAX_PAGE_BYTES,
    allows: Allows | None = None,
) -> Response:
    """Return the answer to a GET request, following redirects; each hop is checked like the first.

    `allows` tells whether a redirect may lead to an address. `most` is a limit of the size, in
    addition to `max_bytes`. Raises FetchError; a status of 400 and above is returned like any
    other.
    """
    policy = replace(policy, max_bytes=min(policy.max_bytes, most))
    deadline = min(time.monotonic() + policy.timeout, policy.until)
    if time.monotonic() >= policy.until:
        raise FetchError(url, "its plan has taken too long; make it with fewer pages")
    contacted: list[str] = []
    for _ in range(MAX_REDIRECTS + 1):
        rules.require_approved(url, policy)
        response = _exchange(url, policy, headers or {}, deadline)
        seconds = response.headers.get("retry-after", "")
        # Up to five seconds, once.
        if response.status in _BUSY and seconds.isdecimal() and int(seconds) <= 5:
            time.sleep(int(seconds))
            response = _exchange(url, policy, headers or {}, deadline)
        contacted.append(host_and_port(url))
        target = _find_target(response)
        if target is None:
            return replace(response, hosts=tuple(contacted))
        if (urlsplit(url).scheme, urlsplit(target).scheme) == ("https", "http"):
            raise FetchError(url, f"it redirects from https to http ({target})")
        if allows and not allows(target):
            raise errors.LedAwayError(url, f"it redirects to {target}, which is not to be read")
        url = target
    raise FetchError(url, f"more than {MAX_REDIRECTS} redirects")


def _find_target(response: Response) -> str | None:
    """Return the address that an answer redirects to, also by `<meta>`; None if it does not."""
    url, location = response.url, response.headers.get("location")
    if response.status in _REDIRECTS and location is not None:
        target = join_url(url, escape_url(location))
        if target is None:
            raise FetchError(url, f"it redirects to an invalid address: {location[:200]!r}")
    else:
        is_page = response.status == 200 and response.content_type in HTML_TYPES
        if not is_page or not _REFRESH.search(response.body[:4096]):
            return None
        target = refresh_target(parse_html(_decode(response)), url)
        if target in {None, url}:
            return None
    try:
        return rules.check_web_url(target)
    except errors.SourceError as error:
        reason = f"it redirects to an address that is not a web page's: {error}"
        raise FetchError(url, reason) from error


def _exchange(url: str, policy: Policy, headers: Mapping[str, str], deadline: float) -> Response:
    """Return the answer to one request, without following redirects."""
    sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", "Connection": "close", **headers}
    try:
        with open_answer(url, policy, list(sent.items()), deadline) as answer:
            fields = _read_fields(answer.headers)
            has_body = answer.status not in _REDIRECTS | {204, 304}
            body = _read_body(answer, fields, url, policy.max_bytes) if has_body else b""
            if time.monotonic() >= deadline:
                raise TimeoutError
            return Response(url=url, status=answer.status, headers=fields, body=body)
    except (*HTTP_ERRORS, OSError, ValueError) as error:
        # After the deadline any error may come from it.
        is_late = time.monotonic() >= deadline
        late = f"no complete answer within {policy.timeout:g} s"
        raise FetchError(url, late if is_late else str(error) or type(error).__name__) from error


def _read_fields(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers that are read, the first of each name; raise ValueError for a long one."""
    fields: dict[str, str] = {}
    for name, value in headers:
        key = name.decode("latin-1").lower()
        if key in _READ:
            fields.setdefault(key, value.decode("latin-1"))
    if long := [name for name, text in fields.items() if len(text) > MAX_FIELD]:
        raise ValueError(f"its header {long[0]} has over {MAX_FIELD:,} characters")
    return fields


def _read_body(answer: Answer, fields: Mapping[str, str], url: str, most: int) -> bytes:
    """Return the body, decompressed; raise TooLargeError before it is over `most` bytes."""
    declared = int(fields.get("content-length", "0"))
    if declared > most:
        raise errors.TooLargeError(url, f"it has {declared:,} bytes, over the limit of {most:,}")
    encoding = fields.get("content-encoding", "").strip().lower()
    if encoding not in _ENCODINGS:
        raise ValueError(f"its encoding {encoding!r} was not asked for")
    body = bytearray()
    for number, piece in enumerate(answer.iter_stream()):
        body += piece
        if number > MAX_PIECES + len(body) // 64:
            raise ValueError("it comes in too many pieces")
        if len(body) > most:
            raise errors.TooLargeError(url, f"it is over the limit of {most:,} bytes")
    return unpack(bytes(body), url, most) if encoding.endswith("gzip") else bytes(body)


def unpack(data: bytes, url: str, most: int) -> bytes:
    """Return what gzip has packed; raise FetchError, TooLargeError for over `most` bytes."""
    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FetchError(url, str(error)) from error
    if len(unpacked) > most:
        raise errors.TooLargeError(url, f"it is over the limit of {most:,} bytes")
    return unpacked


Conditions = Mapping[str, str | None]
"""The address and validators of a fetched page, for a conditional request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a site, or a list of its pages."""

    url: str
    """The address after redirects."""
    text: str | None
    """Its text as it is kept, empty if it has none; None if it is unchanged."""
    etag: str | None = None
    last_modified: str | None = None
    links: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """The hosts that were contacted for it."""


def find_page(
    url: str,
    policy: Policy,
    *,
    known: Conditions | None = None,
    allows: Allows | None = None,
    only_pages: bool = False,
) -> Page:
    """Return a page with its links; one that is unchanged since `known` has no text and no links.

    With `only_pages` other texts than pages and Markdown are refused with NoPageError.
    Raises LedAwayError if it redirects to a host or to an address that is not allowed.
    """
    known = known or {}
    tags = {"If-None-Match": known.get("etag"), "If-Modified-Since": known.get("last_modified")}
    headers = {"Accept": ACCEPT, **{name: tag for name, tag in tags.items() if tag}}
    answer = request(url, policy, headers=headers, allows=allows)
    if answer.status == 304 and known:
        if known.get("url") not in {None, answer.url}:
            return find_page(url, policy, allows=allows, only_pages=only_pages)
        return Page(url=answer.url, text=None, hosts=answer.hosts)
    if only_pages and answer.status < 400 and answer.content_type not in PAGE_TYPES:
        raise errors.NoPageError(answer.url, f"it is not a page but {answer.content_type}")
    text = _read_text(answer, policy)
    links: list[str] = []
    if answer.content_type in HTML_TYPES:
        root = parse_html(text)
        links = page_links(root, answer.url)
        converted = to_markdown.tree_to_markdown(root, answer.url, len(text))
        # Where a script draws the page, its title and a notice are all there is.
        is_drawn = "<script" in text and not _NOT_TEXT.sub("", converted)
        text = "" if is_drawn else converted
    return Page(
        url=answer.url,
        text=text if text.strip() else "",
        etag=answer.headers.get("etag"),
        last_modified=answer.headers.get("last-modified"),
        links=tuple(links),
        hosts=answer.hosts,
    )


def no_text(url: str) -> FetchError:
    """Return the error for a page without text."""
    return FetchError(url, "there is no text in it (is it drawn by a script?)")


def fetch_text(url: str, policy: Policy, *, most: int = MAX_TEXT_BYTES) -> Page:
    """Return a text file of a site, such as robots.txt; without text if there is none.

    There is none only if the server answers 4xx, but not 429. Raises FetchError for any other
    failure, LedAwayError if it redirects to a host that is not allowed.
    """
    with errors.refuse_hostile(url):
        answer = request(url, policy, most=most)
        is_missing = 400 <= answer.status < 500 and answer.status != 429  # too many requests
        if answer.status != 200 and not is_missing:
            raise FetchError(url, f"the server answered {answer.status}")
        if answer.body.startswith(_GZIP):  # a sitemap.xml.gz
            answer = replace(answer, body=unpack(answer.body, url, most))
        return Page(url=answer.url, text="" if is_missing else _decode(answer), hosts=answer.hosts)


def _read_text(answer: Response, policy: Policy) -> str:
    """Return the text of a page or a document.

    Raises FetchError for a failure, NoPageError if there is no page or it is not text.
    """
    if answer.status >= 400:
        kind = errors.NoPageError if answer.status in {404, 410} else FetchError
        kind = errors.BusyServerError if answer.status in _BUSY else kind
        raise kind(answer.url, f"the server answered {answer.status}")
    content_type, path = answer.content_type, urlsplit(answer.url).path
    is_text = content_type.startswith("text/") or content_type.endswith(("+xml", "+json"))
    is_named = formats.is_document(path) and not content_type.startswith("text/")
    if document := formats.find_served(content_type) or (
        formats.find_converted(path) if is_named else None
    ):
        if document.is_unread:
            reason = f"it is a document ({document.name}); to read it: {document.needs}"
            raise errors.NoPageError(answer.url, reason)
        try:
            return policy.conversions.convert(document, answer.body).decode()
        except ConversionError as error:
            raise FetchError(answer.url, str(error)) from error
    is_text = is_text or (content_type in UNTYPED and formats.is_prose(path))
    if content_type and not is_text and content_type not in TEXT_TYPES:
        raise errors.NoPageError(answer.url, f"it is not text but {content_type}")
    return _decode(answer)


def _decode(answer: Response) -> str:
    """Return the text of a body, by the charset of its header or its own, as browsers do."""
    declared = _CHARSET.search(answer.headers.get("content-type", ""))
    name = declared[1] if declared else ""
    return decode_page(answer.body, name, is_html=answer.content_type in HTML_TYPES)
