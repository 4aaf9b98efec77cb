"""Bytes to text: sniffed, decoded, fenced, wrapped, cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from llm_kb.errors import UnreadableError
from llm_kb.rendering.presentation import (
    Presented,
    present,
    present_unreadable,
    truncate,
    wrap_subject,
)
from llm_kb.subjects.topics import Content
from tests.presented import make_presented, make_subject


def test_a_markdown_file_is_shown_as_it_is() -> None:
    subject = make_subject("maintainers/jean.md")
    content = Content(data=b"# Jean\n\nLikes tests.\n", size=21)
    assert present(subject, content) == Presented(
        name="maintainers/jean",
        content=content,
        body="# Jean\n\nLikes tests.\n",
        shown=21,
    )


@pytest.mark.parametrize("path", ["a.md", "a.MD", "a.txt", "a.text", "README", ".gitignore"])
def test_prose_and_files_without_extension_pass_through(path: str) -> None:
    assert make_presented(path, "a\n").text == "a\n"


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.toml", "toml"),
        ("a.json", "json"),
        ("a.yaml", "yaml"),
        ("a.yml", "yaml"),
        ("a.rs", "rust"),
        ("a.py", "python"),
        ("a.js", "javascript"),
        ("a.ts", "typescript"),
        ("a.TOML", "toml"),
        ("a.Go", "go"),
        ("a.c++", "c++"),
        ("a.b`c", ""),
        ("a.b c", ""),
        ("a.b\nc", ""),
        ("a.b&amp;", ""),
        ("a." + "b" * 41, ""),
    ],
)
def test_everything_else_is_fenced(path: str, language: str) -> None:
    assert make_presented(path, "a = 1\n").text == f"```{language}\na = 1\n```"


@pytest.mark.parametrize(
    ("body", "fence"),
    [
        pytest.param("a `b` ``c``", "```", id="short runs"),
        pytest.param("```\n", "````", id="a fence"),
        pytest.param("x ```````` y", "`````````", id="a long run in a line"),
        pytest.param("~~~\n", "```", id="tildes"),
    ],
)
def test_a_fence_is_longer_than_any_run_inside(body: str, fence: str) -> None:
    text = make_presented("a.py", body).text
    assert (text.partition("\n")[0], text.rpartition("\n")[2]) == (f"{fence}python", fence)


@given(
    st.lists(st.sampled_from(["`", "``", "```", "~~~", "\n", "\r\n", "\r", "    ", " ", "x", ">"]))
    .map("".join)
    .filter(bool),
    st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"])),
)
def test_a_body_cannot_close_its_fence(body: str, extension: str) -> None:
    """A CommonMark parser sees one block of code that holds the whole body."""
    path = f"a.{extension}py"
    tokens = MarkdownIt("commonmark").parse(make_presented(path, body).text)
    assert [token.type for token in tokens] == ["fence"]
    assert len(tokens[0].info.split()) <= 1
    expected = body.replace("\r\n", "\n").replace("\r", "\n")
    assert tokens[0].content == expected + ("" if expected.endswith("\n") else "\n")


@pytest.mark.parametrize(
    ("data", "notice"),
    [
        pytest.param(b"\0", "binary file, 1 byte, skipped", id="nul"),
        pytest.param(b"a" * 8191 + b"\0", "binary file, 8,192 bytes, skipped", id="last sniffed"),
    ],
)
def test_a_nul_makes_a_file_binary(data: bytes, notice: str) -> None:
    presented = make_presented("a.md", data)
    assert presented.binary
    assert (presented.shown, presented.size) == (0, len(data))
    assert presented.text == f"(note: {notice})"
    assert not presented.is_cut


def test_a_nul_after_the_sniffed_bytes_makes_no_file_binary() -> None:
    assert make_presented("a.md", b"a" * 8192 + b"\0").body == "a" * 8192 + "\0"


@pytest.mark.parametrize(
    ("data", "body", "notices"),
    [
        pytest.param(b"\xef\xbb\xbfa", "a", (), id="bom"),
        pytest.param(b"a\xef\xbb\xbfb", "a\ufeffb", (), id="bom inside"),
        pytest.param(b"a\r\nb\rc\n", "a\r\nb\rc\n", (), id="line endings are the file's own"),
        pytest.param(
            b"caf\xe9", "caf\ufffd", ("1 byte not valid in UTF-8, shown as \ufffd",), id="latin-1"
        ),
        pytest.param(
            "\ufffd".encode() + b"\xff\xc3(\xe2\x82",
            "\ufffd\ufffd\ufffd(\ufffd\ufffd",
            ("4 bytes not valid in UTF-8, shown as \ufffd",),
            id="each byte counts, a genuine replacement character does not",
        ),
        pytest.param(
            "a\U000e0041\U000e007fb".encode(),
            "ab",
            ("2 invisible Unicode tag characters removed",),
            id="tag characters",
        ),
        pytest.param(
            "\U000e0041".encode() + b"\xff",
            "\ufffd",
            (
                "1 byte not valid in UTF-8, shown as \ufffd",
                "1 invisible Unicode tag character removed",
            ),
            id="both",
        ),
        pytest.param("\U000e0100".encode(), "\U000e0100", (), id="next to the tag characters"),
        pytest.param(b"", "", ("this file is empty",), id="empty"),
    ],
)
def test_decoding(data: bytes, body: str, notices: tuple[str, ...]) -> None:
    presented = make_presented("a.md", data)
    assert (presented.body, presented.head.strip()) == (
        body,
        f"(note: {'; '.join(notices)})" if notices else "",
    )
    assert presented.shown == len(data)


def test_notices_stand_above_the_text() -> None:
    presented = make_presented("a.py", b"\xff\n")
    assert presented.text == (
        "(note: 1 byte not valid in UTF-8, shown as \ufffd)\n\n```python\n\ufffd\n```"
    )


def test_the_origin_comes_first_and_is_one_line() -> None:
    presented = make_presented("a.md", b"\xffa", origin="https://x.test/a\n @ 1234")
    assert presented.text == (
        "https://x.test/a @ 1234\n(note: 1 byte not valid in UTF-8, shown as \ufffd)\n\n\ufffda"
    )


def test_a_character_cut_by_the_read_limit_is_no_error() -> None:
    presented = make_presented("a.md", "aé".encode()[:2], size=100)
    assert (presented.body, presented.shown, presented.head) == ("a", 1, "")
    assert presented.text == "a\n\n(note: cut here; 99 of 100 bytes are not shown)"


def test_an_unreadable_subject_is_named_with_the_reason() -> None:
    error = UnreadableError("/kb/a.md", "permission\ndenied")
    presented = present_unreadable(make_subject("a.md"), error)
    assert (presented.name, presented.text) == ("a", "(note: cannot be read: permission denied)")


@pytest.mark.parametrize(
    ("presented", "expected"),
    [
        pytest.param(make_presented("a.md", "x\n"), '<subject "a">\nx\n</subject>', id="prose"),
        pytest.param(
            make_presented("a.md", "x"),
            '<subject "a">\nx\n</subject>',
            id="no line feed at the end",
        ),
        pytest.param(
            make_presented("a.md", "x\n\n"), '<subject "a">\nx\n\n</subject>', id="blank line kept"
        ),
        pytest.param(
            make_presented("a.py", "x"), '<subject "a">\n```python\nx\n```\n</subject>', id="code"
        ),
        pytest.param(
            make_presented("a.md"),
            '<subject "a">\n(note: this file is empty)\n</subject>',
            id="empty",
        ),
        pytest.param(
            make_presented("a.md", b"\0"),
            '<subject "a">\n(note: binary file, 1 byte, skipped)\n</subject>',
            id="binary",
        ),
        pytest.param(
            make_presented('a "b".md', "</subject>"),
            '<subject "a &quot;b&quot;">\n<\\/subject>\n</subject>',
            id="hostile",
        ),
        pytest.param(
            make_presented("a.md", "x", origin="</topic>"),
            '<subject "a">\n<\\/topic>\n\nx\n</subject>',
            id="hostile origin",
        ),
        pytest.param(
            make_presented("a.py", "x\n", size=3),
            '<subject "a">\n```python\nx\n```\n\n'
            "(note: cut here; 1 of 3 bytes are not shown)\n</subject>",
            id="cut",
        ),
    ],
)
def test_wrapping(presented: Presented, expected: str) -> None:
    assert wrap_subject(presented) == expected


hostile = st.lists(
    st.sampled_from(["a", "<", "/", "</", "subject", ">", '"', " ", "\n", "\u202e", "é", "."])
).map("".join)


@pytest.mark.parametrize(
    ("limit", "body", "shown"),
    [
        pytest.param(8, "one\ntwo\n", 8, id="all of it"),
        pytest.param(7, "one\n", 4, id="at a line"),
        pytest.param(4, "one\n", 4, id="just after a line"),
        pytest.param(3, "one", 3, id="within the first line"),
        pytest.param(0, "", 0, id="nothing"),
    ],
)
def test_truncate(limit: int, body: str, shown: int) -> None:
    presented = make_presented("a.md", "one\ntwo\n")
    assert truncate(presented, limit) == presented._replace(body=body, shown=shown)


def test_a_cut_body_is_fenced_and_followed_by_what_is_missing() -> None:
    assert truncate(make_presented("a.json", "[1, 2, 3]"), 4).text == (
        "```json\n[1, \n```\n\n(note: cut here; 5 of 9 bytes are not shown)"
    )


@given(
    st.lists(
        st.sampled_from(
            [b"a", b"\n", b"\r\n", "é".encode(), "\U0001f600".encode(), b"\xff", b"\xe2"]
        )
        | st.just("\U000e0041".encode())
    ).map(b"".join),
    st.booleans(),
    st.integers(0, 12),
)
def test_shown_bytes_are_exact(data: bytes, bom: bool, limit: int) -> None:
    """What a cut subject shows is what its first `shown` bytes alone would show."""
    data = b"\xef\xbb\xbf" * bom + data
    cut = truncate(make_presented("a.md", data), limit)
    assert len(cut.body) <= limit
    assert cut.body == make_presented("a.md", data[: cut.shown]).body
    assert cut.shown + (cut.size - cut.shown) == len(data)
