"""robots.txt as sites write it, valid or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.sources.crawl import MAX_DELAY, MAX_ROBOTS, Robots
from llm_kb.references.sources.web import PRODUCT, USER_AGENT

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


@pytest.mark.parametrize("delay", ["60", "9" * 300])
def test_no_site_may_ask_for_more_than_the_limit(delay: str) -> None:
    assert Robots(f"User-agent: *\nCrawl-delay: {delay}", "llm-kb").delay == MAX_DELAY


def test_our_own_rules_count_before_those_for_all() -> None:
    robots = Robots("User-agent: *\nDisallow: /\n\nUser-agent: llm-kb\nDisallow: /x", "llm-kb")
    assert [robots.allows(f"http://e.org{path}") for path in ("/", "/x")] == [True, False]


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("Allow: /\nDisallow: /private/", "/private/x.html", False),
        ("Allow: /\nDisallow: /private/", "/public/x.html", True),
        ("Disallow: /\nAllow: /docs/", "/docs/a", True),
        ("Disallow: /\nAllow: /docs/", "/blog/a", False),
        ("Disallow: /*/private", "/a/private/b", False),
        ("Disallow: /*/private", "/private", True),
        ("Disallow: /*.pdf$", "/a/b.pdf", False),
        ("Disallow: /*.pdf$", "/a/b.pdf.html", True),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Disallow: /%7Ejoe", "/~joe/x", False),
        ("Disallow:", "/x", True),
        ("Disallow: /x # why", "/x", False),
        ("disallow: /x", "/x", False),
    ],
)
def test_the_longest_rule_decides_and_stars_match(rules: str, path: str, allowed: bool) -> None:
    robots = Robots(f"User-agent: *\n{rules}", "llm-kb")
    assert robots.allows(f"http://e.org{path}") == allowed


def test_the_address_in_our_user_agent_is_not_our_name() -> None:
    robots = Robots("User-agent: pypi\nDisallow: /\n\nUser-agent: LLM-KB\nAllow: /", PRODUCT)
    assert robots.allows("http://e.org/x")
    assert USER_AGENT.startswith(f"{PRODUCT} ")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_what_is_beyond_the_limit_does_not_count_nor_the_line_it_cuts(end: str) -> None:
    head = f"User-agent: *{end}Disallow: /{end}Allow: /x{end}"
    fill = "#" * (MAX_ROBOTS - len(head) - len(end) - len("Allow: /")) + end
    robots = Robots(f"{head}{fill}Allow: /y{end}", "llm-kb")  # cut, it would be `Allow: /`
    allowed = [robots.allows(f"http://e.org{path}") for path in ("/x", "/y", "/z")]
    assert allowed == [True, False, False]


@given(
    st.lists(st.sampled_from(["User-agent", "Disallow", "Crawl-delay", "Sitemap", "x"])), st.text()
)
def test_no_text_raises(keys: list[str], value: str) -> None:
    robots = Robots("\n".join(f"{key}: {value}" for key in keys), "llm-kb")
    assert robots.allows("http://e.org/") in {True, False}
    assert 0 <= robots.delay <= MAX_DELAY
