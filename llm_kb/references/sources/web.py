"""Fetching web pages: their size, their validators, and their text as Markdown."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

import webencodings

from llm_kb.converters.html import tree_to_markdown
from llm_kb.converters.html_page import (
    page_links,
    parse_html,
    refresh_target,
)
from llm_kb.files.conversion import ConversionError, Conversions
from llm_kb.references.errors import FetchError, NoPageError
from llm_kb.references.sources.addresses import Policy
from llm_kb.references.sources.http import (
    MAX_REDIRECTS,
    Allows,
    Response,
    anywhere,
    check_redirect,
    request,
)
from llm_kb.subjects.names import DOCUMENTS, INSTALL, can_convert, find_extension

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
