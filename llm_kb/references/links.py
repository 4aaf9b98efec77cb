"""Where links lead: joined to an address, or nowhere. Pure."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit


def join_url(base: str, link: str) -> str | None:
    """Return the absolute address of a link; None where it is no address."""
    try:
        joined = urljoin(base, link)
        _ = urlsplit(joined).port  # parsed late, and raises late
    except ValueError:
        return None
    return joined
