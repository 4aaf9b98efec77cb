"""The one-line summary of a subject."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.rendering.summaries import find_label, summarize


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        pytest.param("---\ndescription: D\nsummary: S\n---\n# H", "D", id="description"),
        pytest.param("---\nsummary: S\n---\n# H", "S", id="summary"),
        pytest.param("---\ndescription: ''\nsummary: S\n---", "S", id="empty description"),
        pytest.param("---\ntitle: T\n---\n\n# H\n", "T", id="title of front matter"),
        pytest.param('+++\ndescription = """\nD\nE"""\n+++\n# H', "D E", id="toml"),
        pytest.param("\ufeff# H", "H", id="bom"),
        pytest.param("Words.\n\n## H ##\n", "H", id="heading below words"),
        pytest.param("#\n##\n# H", "H", id="empty headings"),
        pytest.param("# C#\n", "C#", id="hash that is no closing"),
        pytest.param("#hashtag\n", "#hashtag", id="no heading without a space"),
        pytest.param("Title\n=====\n\n# H", "Title", id="underlined"),
        pytest.param("Title\n---\n\n# H", "Title", id="underlined with dashes"),
        pytest.param("---\n\n# H", "H", id="rule"),
        pytest.param("```sh\n# no heading\n```\n# H", "H", id="code before the heading"),
        pytest.param("~~~~\n~~~\n# no\n~~~~ \nWords", "Words", id="code alone"),
        pytest.param("<!-- # no\n -->\n# H", "H", id="comment"),
        pytest.param("<!-- open\n# no", "", id="comment that is cut"),
        pytest.param("\n***\n\nFirst  words\nmore", "First words", id="first line"),
        pytest.param("", "", id="empty"),
        pytest.param("\n \n---\n", "", id="nothing said"),
        pytest.param("# a\x1b[31m\u202eb\U000e0041", "a[31mb", id="controls"),
        pytest.param("x" * 101, "x" * 99 + "…", id="too long"),
        pytest.param("x" * 100, "x" * 100, id="just short enough"),
    ],
)
def test_prose(text: str, summary: str) -> None:
    assert summarize(text.encode(), "README") == summary
    assert summarize(text.encode(), "a.md") == summary


@pytest.mark.parametrize(
    ("path", "text", "summary"),
    [
        pytest.param(
            "a.1", ".TH A 1\n.SH NAME\na \\- count \\fIwords\\fP\nof files\n.SH B\nx - y\n",
            "count words of files", id="man",
        ),
        pytest.param(
            "a.1", '.TH A 1\n.SH "NAME"\n.B a\n\\[em] count words\n', "count words", id="bold name",
        ),
        pytest.param(
            "a.1", ".Dd 1\n.Sh NAME\n.Nm a\n.Nd count words\n.\n.Sh B\n", "count words", id="mdoc",
        ),
        pytest.param(
            "a.1", ".TH A 1\n.SH NAME\na\n.SH B\nx - y\n", "NAME", id="no sentence",
        ),
        pytest.param(
            "a.pod", "=head1 NAME\n\nB - The C<x> of\nL<Perl|https://e.org>\n\n=head1 D\n\nx - y\n",
            "The x of Perl", id="pod",
        ),
    ],
)  # fmt: skip
def test_a_manual_page_says_its_purpose_after_its_name(path: str, text: str, summary: str) -> None:
    assert summarize(text.encode(), path, "a") == summary


@pytest.mark.parametrize(
    ("extension", "text", "summary"),
    [
        ("py", '#!/usr/bin/env python\n"""Say what it does."""\n', "Say what it does."),
        ("py", "import os\nfrom a import (b)\n# why\n", "why"),
        ("py", "# Copyright 2020 A. Body\n# SPDX-License-Identifier: MIT\n# Why.\n", "Why."),
        ("js", "'use strict';\nconst a = require('a');\nimport b from 'b';\n// Why.\n", "Why."),
        ("json", '{"a": 1}\n', ""),
        ("csv", "a,b\n1,2\n", ""),
        ("toml", "\n# How we lint.\n[tool]\n", "How we lint."),
        ("rs", "//! The crate.\n", "The crate."),
        ("c", "/* A file. */\n", "A file."),
        ("lua", "-- A file.\n", "A file."),
        ("html", "<!-- A file. -->\n", "A file."),
        ("json", "{\n}\n", ""),
    ],
)
def test_code(extension: str, text: str, summary: str) -> None:
    assert summarize(text.encode(), f"a.{extension}") == summary


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        pytest.param("# Install\n\nHow to install it.\n", "How to install it.", id="heading"),
        pytest.param("# In stall!\n\n## More\n\nWords.\n", "Words.", id="and a second heading"),
        pytest.param("---\ntitle: install\n---\n# The heading\n", "The heading", id="title"),
        pytest.param("# Install\n", "Install", id="nothing else"),
        pytest.param(
            "import X from 'x'\n[![ci](a.svg)](b)\n<p align='center'>\n\n# Install\n\n"
            "<b>Bold</b> and [linked](x).\n",
            "Bold and linked.",
            id="imports, badges, tags and links",
        ),
        pytest.param("<h1>Tool</h1>\n\nWords.\n", "Tool", id="a heading in HTML"),
        pytest.param("Copyright 2020\n\nWords.\n", "Words.", id="copyright"),
        pytest.param('{"a": "b"}', "", id="JSON"),
    ],
)
def test_what_says_nothing_is_passed_over(text: str, summary: str) -> None:
    assert summarize(text.encode(), "a.mdx", "guide/install") == summary


def test_a_title_that_repeats_the_slug_is_passed_over_in_restructured_text() -> None:
    text = b"Install\n=======\n\nHow to install it.\n"
    assert summarize(text, "a.rst", "install") == "How to install it."


def test_a_binary_file_says_nothing() -> None:
    assert summarize(b"# H\0", "a.md") == ""


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        pytest.param(".. _foo:\n\nTitle\n=====\n\nWords.", "Title", id="label"),
        pytest.param("====\nTop\n====\n\nSub\n---\n", "Top", id="overlined"),
        pytest.param("======\n  Top\n======\n", "Top", id="overlined and indented"),
        pytest.param("Title\n~~~~~\n", "Title", id="any underline"),
        pytest.param("Words first.\n\nTitle\n-----\n", "Title", id="words before the title"),
        pytest.param(
            ".. Copyright\n   somebody\n\n.. module:: os\n   :synopsis: S\n\nos\n==\n",
            "os",
            id="comment and directive",
        ),
        pytest.param(":orphan:\n\n.. toctree::\n\n   a\n   b\n\nWords.\n", "Words.", id="no title"),
        pytest.param(".. note::\n\n   Indented\n   --------\n\nT\n==\n", "T", id="indented rule"),
        pytest.param(":mod:`!json` --- JSON\n==================\n", "json --- JSON", id="role"),
        pytest.param("Words...\n\n....\n\nTitle\n=====\n", "Title", id="transition"),
        pytest.param("\ufeff.. _x:\r\n\r\nTitle\r\n=====\r\n", "Title", id="bom and CRLF"),
        pytest.param(".. _only:\n.. comment\n", "", id="markup alone"),
        pytest.param("..\n   a comment\n\nT\n==\n", "T", id="nameless comment"),
        pytest.param("", "", id="empty"),
        pytest.param("x" * 101 + "\n" + "=" * 101, "x" * 99 + "…", id="too long"),
    ],
)
@pytest.mark.parametrize("extension", ["rst", "rest"])
def test_restructured_text(extension: str, text: str, summary: str) -> None:
    assert summarize(text.encode(), f"a.{extension}") == summary


@given(st.binary(max_size=200), st.sampled_from(["md", "py", "rst"]))
def test_a_summary_is_a_short_line(data: bytes, extension: str) -> None:
    summary = summarize(data, f"a.{extension}")
    assert len(summary) <= 100
    assert len(summary.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "path", "label"),
    [
        ("# Transaction Signature\n", "bip-0143.md", "Transaction Signature"),
        ("---\nsummary: How it is stored\n---\n# S\n", "st.md", "How it is stored"),
        ("---\ntitle: The Store\n---\n# S\n", "st.md", "The Store"),
        ("# Code Quality!\n\nMore.\n", "code-quality.md", ""),
        ("# Sub: Page\n", "sub/page.md", ""),
        ("Only a sentence.\n", "a.md", ""),
        ("# A comment\n", "a.py", ""),
        ("A page\n======\n", "a.rst", "A page"),
        ("# A page", "README", "A page"),
        ("A page\n======", "a.txt", "A page"),
        ("# A page " + "long " * 300, "a.txt", "A page " + "long " * 14 + "lo…"),
        (f"{'More. ' * 200}\n\nA part\n------\n", "a.txt", ""),
        ("# x </subject> y\n", "a.md", "x y"),
        ("# " + "long " * 40, "a.md", "long " * 15 + "long…"),
    ],
)
def test_the_text_beside_a_subject_in_a_listing(text: str, path: str, label: str) -> None:
    assert find_label(text.encode(), path, path.rpartition(".")[0]) == label
