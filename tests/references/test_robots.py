"""robots.txt as sites write it, sense or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.plan.crawl import MAX_DELAY, Robots

LINES = ["User-agent: *", "Disallow: /secret", "Crawl-delay: 2"]


@pytest.mark.parametrize(
    "nonsense",
    [
        "Crawl-delay: \N{SUPERSCRIPT TWO}",
        "Crawl-delay: " + "9" * 5000,
        "Request-rate: \N{SUPERSCRIPT TWO}/\N{SUPERSCRIPT TWO}",
        "Disallow: http://[x",
        "\x00",
    ],
)
def test_a_line_without_sense_is_passed_over(nonsense: str) -> None:
    robots = Robots("\n".join([*LINES, nonsense, "Disallow: /more"]), "llm-kb")
    found = [robots.allows(f"http://e.org{path}") for path in ("/", "/secret/x", "/more")]
    assert (found, robots.delay) == ([True, False, False], 2)


@pytest.mark.parametrize("delay", ["60", "9" * 400])
def test_no_site_may_ask_for_more_than_the_limit(delay: str) -> None:
    assert Robots(f"User-agent: *\nCrawl-delay: {delay}", "llm-kb").delay == MAX_DELAY


def test_our_own_rules_count_before_those_for_all() -> None:
    robots = Robots("User-agent: *\nDisallow: /\n\nUser-agent: llm-kb\nDisallow: /x", "llm-kb")
    assert [robots.allows(f"http://e.org{path}") for path in ("/", "/x")] == [True, False]


@given(
    st.lists(st.sampled_from(["User-agent", "Disallow", "Crawl-delay", "Sitemap", "x"])), st.text()
)
def test_no_text_raises(keys: list[str], value: str) -> None:
    robots = Robots("\n".join(f"{key}: {value}" for key in keys), "llm-kb")
    assert robots.allows("http://e.org/") in {True, False}
    assert 0 <= robots.delay <= MAX_DELAY
