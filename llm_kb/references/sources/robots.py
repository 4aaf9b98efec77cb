"""The rules of a site's robots.txt that are for us, read as RFC 9309 says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from protego import Protego

PRODUCT = "llm-kb"
"""Our product token in `robots.txt`."""

_GROUPS = frozenset({PRODUCT, "*"})
_AGENT = re.compile(r"user[- ]?agent(?:\s*:|\s|$)\s*([\w-]+|\*)?", re.IGNORECASE)
_SITEMAP = re.compile(r"site-?maps?(?:\s*:|\s)", re.IGNORECASE)
_SITE_WIDE = re.compile(r"(?:site-?maps?|host)(?:\s*:|\s|$)", re.IGNORECASE)
# With the misspellings that Protego reads.
_RULE = re.compile(r"(?:allow|di\w{3,9}|crawl[- ]delay)(?:\s*:|\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsLimits:
    """How much of a robots.txt is read."""

    characters: int = 512_000
    """Those that count; RFC 9309 (2.5) asks for at least 500 KiB."""
    rules: int = 5_000
    """The most lines for us, and wildcards in them: each rule is tried on each address."""
    sitemaps: int = 100
    """The sitemaps that are read."""


def parse_robots(text: str, limits: RobotsLimits = RobotsLimits()) -> Protego:
    """Return the rules for us in a robots.txt; raise ValueError for too many.

    Groups for others are left out before it is parsed: a parser adds each rule of a group to each
    of its agents, whose product has no bound.
    """
    if len(text) > limits.characters:
        # Without the line that is cut: a part of it means another rule.
        text = "\n".join(text[: limits.characters].splitlines()[:-1])
    rules, sitemaps = list(_our_lines(text)), _find_sitemaps(text)
    if len(rules) > limits.rules:
        raise ValueError(f"robots.txt has over {limits.rules:,} rules")
    if sum(rule.count("*") + rule.count("$") for rule in rules) > limits.rules:
        raise ValueError(f"robots.txt has over {limits.rules:,} wildcards")
    return Protego.parse("\n".join([*rules, *sitemaps[: limits.sitemaps]]))


def _our_lines(text: str) -> Iterator[str]:
    """Yield the lines of the groups for us and for all, each group with these agents alone."""
    is_ours = is_open = False  # more agents may follow as long as a group is open
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if agent := _AGENT.match(line):
            is_named = (agent[1] or "").lower() in _GROUPS
            is_ours = is_named or (is_ours and is_open)
            is_open = True
            if is_named:
                yield f"User-agent: {agent[1]}"
        elif (":" in line or _RULE.match(line)) and not _SITE_WIDE.match(line):
            is_open = False
            if is_ours:
                yield line


def _find_sitemaps(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if _SITEMAP.match(line)]
