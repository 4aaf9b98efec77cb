"""Headings of every markup, and what only looks like one."""

from __future__ import annotations

import pytest

from llm_kb.texts.formats import FORMATS, Kind, find_format
from llm_kb.texts.outlines.outline import read_document


def headings(path: str, text: str) -> list[tuple[int, str, str]]:
    return [(part.depth, part.title, part.anchor) for part in read_document(path, text).sections]


ONE_AND_TWO = [(1, "One", "one"), (2, "Two words", "two-words")]

TEXTS = {
    "a.pod": "=head1 One\n\nText.\n\n=begin html\n\n=head1 no\n\n=end html\n\n  =head1 no\n\n"
    "=head2 Two C<words>\n",
    "a.tex": "% \\section{no}\n\\section{One}\\label{s}\n\\begin{verbatim}\n\\section{no}\n"
    "\\end{verbatim}\n\\subsection[short]{Two \\emph{words}}\n",
    "a.mediawiki": "= One =\n<pre>\n= no =\n</pre>\n<nowiki>= no =</nowiki>\n<!--\n= no =\n-->\n"
    "= no\n== [[target|Two]] ''words'' ==\n",
    "a.wiki": "= One =\n== Two words ==\n",
    "x.1": '.TH X 1\n.ss \\n[.ss] 0\n.SH One\n.nf\n SH no\n.fi\n.ig\n.SH no\n..\n'
    '.SS "Two \\fBwords\\fP"\n',
    "x.8": ".Dd today\n.Sh One\n.Ss Two words\n",
    "a.asc": "= One\n\n----\n= no\n----\n\n== Two words\n",
    "a.Rd": "% no\n\\name{no}\n\\title{One}\n\\section{Two words}{\nText.\n}\n",
    "a.rmd": "# One\n\n```{r}\n# no\n```\n\n## Two words\n",
    "a.mdown": "# One\n\n## Two words\n",
    "a.livemd": "# One\n\n## Two words\n",
    "a.org": "* One :tag:\n#+BEGIN_SRC sh\n* no\n#+END_SRC\n** Two words\n",
    "a.texi": "@chapter One\n@example\n@chapter no\n@end example\n@section Two @code{words}\n",
}  # fmt: skip


def test_the_fixed_sections_of_r_are_headings() -> None:
    text = "\\title{One}\n\\usage{\nf(x)\n}\n\\description{Text.}\n"
    assert [title for _, title, _ in headings("a.Rd", text)] == ["One", "usage", "description"]


def test_each_markup_of_documentation_has_a_text() -> None:
    known = {row.markup for row in FORMATS if row.kind is Kind.PROSE and row.markup}
    found = {row.markup for path in TEXTS if (row := find_format(path, TEXTS[path]))}
    assert known - found == {"rst"}, "write a text of it into TEXTS"  # which has tests of its own


@pytest.mark.parametrize("path", TEXTS)
def test_headings_outside_of_code_and_comments(path: str) -> None:
    assert headings(path, TEXTS[path]) == ONE_AND_TWO
    assert headings(path, TEXTS[path].replace("\n", "\r\n")) == ONE_AND_TWO


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("a.tex", "\\section{" + "{" * 600, id="a brace that is not closed"),
        pytest.param("a.mediawiki", "= no\n", id="a wiki's heading that is not closed"),
        pytest.param("a.md", "<div>\n# no\n</div>\n", id="a block of HTML"),
        pytest.param("a.md", "<![CDATA[\n\n# no\n\n]]>\n", id="CDATA"),
        pytest.param("a.mdx", "{/*\n\n# no\n\n*/}\n", id="a comment of MDX"),
        pytest.param("a.mdx", "export const a = `\n\n# no\n\n`\n", id="a template literal"),
        pytest.param("a.mdx", "<Code code={`\n\n# no\n\n`} />\n", id="one of an attribute"),
        pytest.param("a.md", "| a | b |\n|---|---|\n| 1 | 2 |\n---\n", id="a rule below a table"),
        pytest.param("a.md", "a | b\n--|--\n1 | 2\n---\n", id="a table without outer bars"),
    ],
)
def test_no_phantom(path: str, text: str) -> None:
    assert headings(path, text) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.mediawiki", "<pre>\n= One =\n== Two words ==\n"),
        ("a.pod", "=begin html\n\n=head1 One\n\n=head2 Two words\n"),
        ("a.md", "<div>\n<h1>One</h1>\n</div>\n\n## Two words\n"),
        ("a.md", "It's {`a\n\n# One\n\n## Two words\n"),
        ("a.tex", "\\begin{verbatim}\n\\section{One}\n\\subsection{Two words}\n"),
    ],
)
def test_what_is_never_closed_hides_nothing(path: str, text: str) -> None:
    assert headings(path, text) == ONE_AND_TWO


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "## H {#id}\n"),
        ("a.mdx", "## H {/* #id */}\n"),
    ],
)
def test_an_anchor_of_the_text(path: str, text: str) -> None:
    assert headings(path, text) == [(1, "H", "id")]
