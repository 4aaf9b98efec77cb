"""What the robots.txt of a site asks of us. Pure."""

from __future__ import annotations

from urllib.robotparser import RobotFileParser

MAX_DELAY = 5.0
"""Seconds between requests that a site may ask for with Crawl-delay."""


class Robots:
    """The rules of one site for one client."""

    def __init__(self, text: str, agent: str) -> None:
        self._agent = agent
        self._rules = RobotFileParser()
        self._rules.parse([line for line in text.splitlines() if _makes_sense(line)])

    def allows(self, url: str) -> bool:
        """Tell whether a page may be fetched."""
        return self._rules.can_fetch(self._agent, url)

    @property
    def delay(self) -> float:
        """How many seconds to keep between requests."""
        # Compared before it is a float: none is as large as some numbers a site may write.
        return float(min(self._rules.crawl_delay(self._agent) or 0, MAX_DELAY))


def _makes_sense(line: str) -> bool:
    """Tell whether the parser of the standard library can read a line; it raises on some."""
    try:
        RobotFileParser().parse(["User-agent: *", line])
    except ValueError:
        return False
    return True
