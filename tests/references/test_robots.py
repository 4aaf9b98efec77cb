"""robots.txt as sites write it, valid or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from llm_kb.references.sources.site import MAX_ROBOTS, parse_robots
from llm_kb.references.sources.web import PRODUCT, USER_AGENT


def allows(robots: Protego, path: str) -> bool:
    """Tell whether we may fetch a page."""
    return robots.can_fetch(f"http://e.org{path}", PRODUCT)


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
    robots = parse_robots("\n".join([*LINES, nonsense, "Disallow: /more"]))
    found = [allows(robots, path) for path in ("/", "/secret/x", "/more")]
    assert (found, robots.crawl_delay("llm-kb")) == ([True, False, False], 2)


def test_our_own_rules_count_before_those_for_all() -> None:
    robots = parse_robots("User-agent: *\nDisallow: /\n\nUser-agent: llm-kb\nDisallow: /x")
    assert [allows(robots, path) for path in ("/", "/x")] == [True, False]


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
    robots = parse_robots(f"User-agent: *\n{rules}")
    assert allows(robots, path) == allowed


def test_the_address_in_our_user_agent_is_not_our_name() -> None:
    robots = parse_robots("User-agent: pypi\nDisallow: /\n\nUser-agent: LLM-KB\nAllow: /")
    assert allows(robots, "/x")
    assert USER_AGENT.startswith(f"{PRODUCT} ")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_what_is_beyond_the_limit_does_not_count_nor_the_line_it_cuts(end: str) -> None:
    head = f"User-agent: *{end}Disallow: /{end}Allow: /x{end}"
    most = MAX_ROBOTS
    fill = "#" * (most - len(head) - len(end) - len("Allow: /")) + end
    robots = parse_robots(f"{head}{fill}Allow: /y{end}")  # cut, it would be `Allow: /`
    allowed = [allows(robots, path) for path in ("/x", "/y", "/z")]
    assert allowed == [True, False, False]


OTHERS = "User-agent: foo\nDisallow: /\n"


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("User-agent: foo\nUser-agent: llm-kb\nDisallow: /x", [False, True]),
        ("User-agent: llm-kb\nUser-agent: foo\nDisallow: /x", [False, True]),
        ("User-agent: foo\nDisallow: /y\nUser-agent: *\nDisallow: /x", [False, True]),
        ("User-agent: *\nDisallow: /x\nUser-agent: foo\nDisallow: /y", [False, True]),
        (f"User-agent: *\nDisallow: /x\n{OTHERS}User-agent: *\nDisallow: /y", [False, False]),
        ("User-agent: *\nDisallow: /\nUser-agent: llm-kb", [True, True]),
        (f"User-agent: *\nDisallow: /x\nUser-agent: llm-kb\n\n{OTHERS}", [False, False]),
        ("useragent llm-kb\ndissallow /x", [False, True]),
        ("User-agent: LLM-KB/1.0\nSitemap: /s\nDisallow: /x", [False, True]),
        ("User-agent: llm\nDisallow: /", [True, True]),
        ("Disallow: /\n", [True, True]),
    ],
)
def test_only_the_groups_for_us_and_for_all_count(text: str, allowed: list[bool]) -> None:
    robots = parse_robots(text)
    assert [allows(robots, path) for path in ("/x", "/y")] == allowed


@given(
    st.lists(st.sampled_from(["User-agent", "Disallow", "Crawl-delay", "Sitemap", "x"])), st.text()
)
def test_no_text_raises(keys: list[str], value: str) -> None:
    robots = parse_robots("\n".join(f"{key}: {value}" for key in keys))
    assert allows(robots, "/") in {True, False}
    assert (robots.crawl_delay(PRODUCT) or 0) >= 0
