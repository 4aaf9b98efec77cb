"""The errors of reference topics; each says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llm_kb.errors import KbError, bound, quote
from llm_kb.rendering.plain_text import shorten


class TopicFileError(KbError):
    """A `topic.md` or a record of files that is invalid or cannot be read."""

    def __init__(self, where: str, reason: str) -> None:
        self.reason = bound(reason)  # it may contain others' text
        super().__init__(f"{where}: {self.reason}")


class SourceError(KbError):
    """A source that is invalid, or that this user does not allow."""

    def __init__(self, reason: str) -> None:
        super().__init__(bound(reason))  # it may contain others' text


class FetchError(KbError):
    """A source that could not be fetched; it may need a `host` that was not approved."""

    def __init__(self, url: str, reason: str, host: str = "") -> None:
        self.url = url
        self.reason = reason
        self.host = host
        super().__init__(f"cannot fetch {url}: {reason}")


class BlockedAddressError(FetchError):
    """A host with a private or reserved address."""

    def __init__(self, url: str, host: str, address: str) -> None:
        at = "" if host == address else f" at {address}"
        super().__init__(
            url,
            f"{host} is{at} a private or reserved address; if you trust it, add it to allow_hosts"
            " under [kb.references] in your own kb.toml (see `llm kb config --path`)",
        )


class NoPageError(FetchError):
    """An address without a page: the server has none, or it is not text."""


class BusyServerError(FetchError):
    """A server that asks for fewer requests, also after it was waited for."""


class TooLargeError(FetchError):
    """More bytes or files than the limits allow."""


class TopicTooLargeError(TooLargeError):
    """A topic whose sources together exceed a limit while they are fetched."""

    def __init__(self, url: str, limit: str, most: str) -> None:
        super().__init__(
            url, f"with it the topic is over {limit} ({most}); narrow it by paths, or fetch less"
        )


class LedAwayError(FetchError):
    """A redirect to a host that was not approved, or to an address that is not to be read."""


class NothingFetchedError(KbError):
    """Every source failed, or none of them had a file."""

    def __init__(self, title: str, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        details = "".join(f"\n  - {reason}" for reason in self.reasons)
        super().__init__(f"nothing could be fetched for {title!r}{':' if details else ''}{details}")


class UnknownReferenceError(KbError):
    """An id of no reference topic, or words that name none or several."""

    def __init__(self, topic_id: str, known: Sequence[str], *, near: Sequence[str] = ()) -> None:
        self.near = tuple(near)
        there = (
            f"nearest: {', '.join(near)}" if near else f"available: {', '.join(known) or 'none'}"
        )
        super().__init__(f"unknown reference topic {quote(topic_id)}; {there}")


class DeniedError(KbError):
    """A plan that the operator denied, worded for a model."""

    def __init__(self, title: str, summary: str) -> None:
        super().__init__(
            f"the user denied fetching {title!r} ({summary}); suggest a smaller scope: give "
            'the git sources a `paths` filter such as ["README.md", "docs/", "examples/"], or '
            "leave sources out. Do not repeat the same request"
        )


class ApprovalNeededError(KbError):
    """A plan that was stored, and waits for the operator's approval."""

    def __init__(self, plan_id: str, title: str, summary: str, hosts: str) -> None:
        self.plan_id = plan_id
        super().__init__(
            f"fetching {title!r} ({summary}) from {hosts} needs the user's approval:"
            f" llm kb review --yes {plan_id}"
        )


class UnknownPlanError(KbError):
    """A pending plan that is missing, used, or changed on disk."""

    def __init__(self, plan_id: str, reason: str) -> None:
        super().__init__(f"no plan {plan_id!r} to approve: {reason}")


_HOSTILE = (
    ArithmeticError, AssertionError, LookupError, MemoryError, RecursionError, ValueError,
)  # fmt: skip
"""The errors that parsers of pages and character sets raise on hostile content."""


@contextmanager
def refuse_hostile(url: str) -> Iterator[None]:
    """Turn the errors of a parser on hostile content into a FetchError of its source.

    One source must not end a run: the others of its topic, and other topics, go on.
    """
    try:
        yield
    except _HOSTILE as error:
        reason = f"its content cannot be processed ({type(error).__name__}: {error})"
        raise FetchError(url, shorten(reason, 160)) from error


class ObsoleteTopicError(KbError):
    """A search in a topic that is marked obsolete."""

    def __init__(self, topic_id: str) -> None:
        super().__init__(
            f"reference topic {topic_id!r} is marked obsolete and is not searched; its files can"
            ' still be read, and `status = "active"` in its topic.md puts it back (see'
            f" `llm kb references show {topic_id}`)"
        )
