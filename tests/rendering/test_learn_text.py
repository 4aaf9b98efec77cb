"""The answers of `learn`, to the byte, with every omitted byte accounted for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.errors import NoMatchError, UnreadableError
from llm_kb.rendering.learn_text import Answer, render_listing
from llm_kb.rendering.parts import Limit
from llm_kb.rendering.presentation import Presented, present_unreadable
from llm_kb.rendering.section import MenuSubject
from tests.golden_files import Golden
from tests.presented import BARE, PROJECT, SKILLS, make_presented, make_subject


def render_load(
    items: Sequence[Presented],
    *,
    wrap: bool,
    max_chars: int = 0,
    already: Sequence[str] = (),
    missing: Sequence[NoMatchError] = (),
) -> str:
    """Return the answer that holds these subjects, as far as they fit."""
    answer = Answer(wrap=wrap, limit=Limit(most=max_chars))
    for item in items:
        answer.add(item)
    return answer.render(already=already, missing=missing)


TOPIC = replace(SKILLS, description="[[optional topic description]]")


def named(*names: str) -> list[MenuSubject]:
    """Return subjects of which a listing says nothing but the name."""
    return [MenuSubject(name=name) for name in names]


def test_listing(golden: Golden) -> None:
    golden("listing.txt", render_listing(TOPIC, named("ast-grep")))


def test_listing_with_learned_subjects(golden: Golden) -> None:
    topic = replace(PROJECT, description="[[optional topic description]]\n")
    learned = ["maintainers/jean", "maintainers/ryan"]
    golden("listing_learned.txt", render_listing(topic, named("code-quality"), learned))


def test_listing_of_a_topic_learned_whole() -> None:
    assert render_listing(BARE, [], ["a", "b"]) == (
        "# Topic: bare\n\n## Already learned (in system prompt):\n\n- a\n- b"
    )


def test_listing_of_a_topic_without_subjects() -> None:
    assert render_listing(replace(BARE, title="A\nB"), []) == (
        "# Topic: A B (bare)\n\nThis topic lists no subjects."
    )


def test_a_listing_too_long_to_read_is_told_by_patterns(golden: Golden) -> None:
    names = [f"api/v{version}/call-{n:03}" for version in range(3) for n in range(90)]
    names += [f"notes/{letter}{n:03}" for letter in "ab" for n in range(150)]
    names += ["overview", "start"]
    assert len(names) > 500
    golden("listing_narrowed.txt", render_listing(TOPIC, named(*sorted(names)), ["learned"]))


def test_a_pattern_of_one_subject_says_so() -> None:
    names = [f"a{n:03}" for n in range(500)] + ["b/c"]
    assert "\n- `b/**`: 1 subject\n" in render_listing(BARE, named(*names))


def test_five_hundred_subjects_are_listed() -> None:
    assert render_listing(BARE, named("x") * 500).count("\n- x") == 500
    narrowed = render_listing(BARE, named(*(f"ref/x{n}" for n in range(502))))
    assert narrowed.count("\n- ref/x") == 500
    assert (
        "\n- and 2 more\n\nAppend `#` to a pattern to list its subjects, as `ref/x*#`;" in narrowed
    )


def test_one_exact_reference_is_shown_bare() -> None:
    assert render_load([make_presented("a.md", "</subject>\n")], wrap=False) == "</subject>\n"


def test_several_subjects_are_wrapped(golden: Golden) -> None:
    items = [
        make_presented("ast-grep.md", "...content...\n"),
        make_presented("ast-grep/.rules.toml", '[rules]\nno = "```"'),
        make_presented("empty.md"),
    ]
    golden("load_wrapped.txt", render_load(items, wrap=True))


def test_what_cannot_be_shown_is_named_with_the_reason(golden: Golden) -> None:
    text = render_load(
        [
            make_presented("logo.png", b"\x89PNG\0"),
            present_unreadable(make_subject("gone.md"), UnreadableError("gone.md", "no such file")),
            make_presented("latin.md", "Café\n".encode("latin-1")),
        ],
        wrap=True,
        already=["maintainers/jean"],
        missing=[NoMatchError("skills", "ast*grep", ["ast-grep"]), NoMatchError("skills", "x/**")],
    )
    golden("load_notices.txt", text)


def test_all_of_it_is_learned_already() -> None:
    assert render_load([], wrap=True, already=["a"]) == (
        "## Already learned (in system prompt):\n\n- a"
    )


def test_over_the_limit_whole_subjects_are_left_out(golden: Golden) -> None:
    items = [
        make_presented("one.md", "1\n"),
        make_presented("large.md", "2\n" * 500),
        make_presented("three.md", "3\n"),
    ]
    golden("load_left_out.txt", render_load(items, wrap=True, max_chars=100))


@pytest.mark.parametrize(
    ("max_chars", "expected"),
    [
        pytest.param(0, "1234\n" * 60, id="no limit"),
        pytest.param(300, "1234\n" * 60, id="just fits"),
        pytest.param(
            299,
            "1234\n" * 39 + "\n(note: cut here; 105 of 300 bytes are not shown)",
            id="cut at a line",
        ),
        pytest.param(1, "(note: cut here; 300 of 300 bytes are not shown)", id="no room"),
    ],
)
def test_a_single_larger_subject_is_cut(max_chars: int, expected: str) -> None:
    item = make_presented("a.md", "1234\n" * 60)
    assert render_load([item], wrap=False, max_chars=max_chars) == expected


def test_when_none_fits_the_first_is_cut() -> None:
    items = [make_presented("a.md", "1\n" * 200), make_presented("b.md", "2\n" * 200)]
    text = render_load(items, wrap=True, max_chars=200)
    assert text == (
        '<subject "a">\n' + "1\n" * 38 + "\n(note: cut here; 324 of 400 bytes are not shown)\n"
        "</subject>\n\n"
        "## Left out (over the limit of 200 characters):\n\n"
        "- b (400 bytes)\n\n"
        "1 left out, 400 bytes; load them with another call of the `learn` tool."
    )


def test_a_subject_that_was_not_read_whole_is_cut_or_left_out() -> None:
    part = make_presented("a.md", "abc\n", size=1000)
    assert render_load([part], wrap=False, max_chars=500) == (
        "abc\n\n(note: cut here; 996 of 1,000 bytes are not shown)"
    )
    text = render_load([make_presented("b.md", "b"), part], wrap=True, max_chars=500)
    assert "- a (1,000 bytes)" in text
    assert "abc" not in text


def test_no_more_is_to_be_read_than_finds_room() -> None:
    answer = Answer(wrap=False, limit=Limit(most=10))
    assert answer.read_limit == 40
    answer.add(make_presented("a.md", "é" * 4))
    assert answer.read_limit == 24
    answer.add(make_presented("b.md", "too long"))
    assert answer.read_limit == 24
    assert Answer(wrap=False).read_limit is None


def test_of_many_left_out_the_first_are_named() -> None:
    items = [make_presented(f"{letter}/{n}.md", b"x" * 9) for letter in "ab" for n in range(300)]
    text = render_load(items, wrap=True, max_chars=1)
    # The first is cut, so 599 are left out.
    assert len(text) < 10_000
    assert "\n- and 499 more\n\n599 left out, 5,391 bytes;" in text


def shown_bytes(text: str) -> int:
    """Count the bytes of bodies in an answer, whose lines all begin with a bar."""
    return sum(len(line.encode()) for line in text.splitlines(keepends=True) if line[0] == "|")


def unshown_bytes(text: str) -> int:
    """Add up the bytes an answer says it does not show."""
    patterns = [
        r"^\(note: cut here; ([\d,]+) of [\d,]+ bytes are not shown\)$",
        r"^\(note: binary file, ([\d,]+) bytes?, skipped\)$",
        r"^- \w+ \(([\d,]+) bytes\)$",
    ]
    found = (size for pattern in patterns for size in re.findall(pattern, text, re.MULTILINE))
    return sum(int(size.replace(",", "")) for size in found)


lines = st.lists(
    st.text("xé\U0001f600 <`", max_size=30).map("|{}\n".format), min_size=1, max_size=9
)
files = st.lists(lines.map("".join).map(str.encode) | st.just(b"|\0binary\n"), max_size=6)


@given(files, st.integers(0, 300), st.sampled_from(["md", "py"]), st.integers(0, 1))
def test_every_byte_left_out_is_accounted_for(
    files: list[bytes], max_chars: int, extension: str, unread: int
) -> None:
    items = [
        make_presented(f"s{number}.{extension}", data, size=len(data) + unread)
        for number, data in enumerate(files)
    ]
    text = render_load(items, wrap=True, max_chars=max_chars)
    assert render_load(items, wrap=True, max_chars=max_chars) == text
    # A line that is cut within is followed by a line feed that is not its own.
    is_within = re.search(r"^\|.*\n(`{3,}\n)?\n\(note: cut here", text, re.MULTILINE) is not None
    counted = shown_bytes(text) + unshown_bytes(text) - sum(item.size for item in items)
    assert counted == 0 or (counted == 1 and is_within)
