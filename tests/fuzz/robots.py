"""The files of a site for crawlers: any bytes are rules and addresses, or refused."""

from __future__ import annotations

from llm_kb.references.sources.rules import host_and_port, show_host
from llm_kb.references.sources.site import parse_robots
from llm_kb.texts.html.addresses import join_url


def fuzz(data: bytes) -> None:
    """Read the bytes as rules, ask about the address that they are, and name its host."""
    text = data.decode("utf-8", "replace")
    url = join_url("https://e.org/", text)
    if url is not None and url.startswith(("http://", "https://")):
        host = host_and_port(url)
        assert host.isascii()
        show_host(host)
    show_host(text)
    try:
        robots = parse_robots(f"User-agent: *\nDisallow: {text}")
    except ValueError:
        return
    robots.can_fetch(url or "https://e.org/", "llm-kb")
    assert (robots.crawl_delay("llm-kb") or 0) >= 0
    assert all(isinstance(place, str) for place in robots.sitemaps)
