"""Kinds of pages that other converters were reported to get wrong."""

from __future__ import annotations

import pytest

from llm_kb.texts.html.to_markdown import html_to_markdown

STREAMED = (
    '<main><h1>T</h1><!--$?--><template id="B:0"></template><p>Loading…</p><!--/$--><p>End</main>'
    '<div hidden id="S:0"><p>Text</p><!--$?--><template id="B:1"></template>Wait<!--/$--></div>'
    '<div hidden id="S:1"><pre>code</pre></div><script>$RC("B:0","S:0")</script>'
)
DECLARATION = (
    "<table><tr><td>bool Rock::throwTo </td><td>(</td><td>const char *&#160;</td>"
    "<td><em>where</em>,</td></tr><tr><td><td><td>int&#160;<td>n<tr><td><td>)<td><td></table>"
)
DIVIDED = (
    "<table><tr><td colspan=2><h2>Types</h2></td></tr><tr><td>enum<td>Kind</tr>"
    "<tr><td>&#160;</td></tr><tr><td colspan=2><h2>Functions</h2></td></tr>"
    "<tr><td>int<td>f()</table>"
)
COLUMNS = "".join(
    f'<div class="col-{place} even">{text}</div>'
    for place, text in (
        ("first", "Type"),
        ("last", "Name"),
        ("constructor-name", "int"),
        ("last", "<div>MAX</div>"),
    )
)
ROLES = (
    "<div role=table><div role=rowgroup><div role=row><span role=columnheader>A</span>"
    "<span role=columnheader>B</span></div></div><div role=row><span role=cell>1</span>"
    "<span role=cell>2</span></div></div>"
)
FILTERS = (
    "<div role=tablist><button role=tab aria-controls=p>All</button><button role=tab"
    " aria-controls=p>Static</button></div><div id=p role=tabpanel><p>x</div>"
)
LINES = '<span class="line {0} remove">old()</span>\n<span class="line {0} add">new()</span>'


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        pytest.param(
            f"<main><pre><code>{LINES.format('diff')}</code></pre>",
            "```\nnew()\n```",
            id="a line that a change removes",
        ),
        pytest.param(
            "<pre><code><div class='ec-line highlight del'>old()</div>"
            "<div class='ec-line highlight ins'>new()</div></code></pre>",
            "```\nnew()\n```",
            id="such a block",
        ),
        pytest.param(
            "<pre><del>old()</del>\n<ins>new()</ins></pre>", "```\nnew()\n```", id="such an element"
        ),
        pytest.param(
            "<pre><span class='token deleted'>-old()</span>\n+new()</pre>",
            "```\n-old()\n+new()\n```",
            id="a change with its signs",
        ),
        pytest.param("<title>App</title><div id=root></div>", "", id="a page that a script draws"),
        pytest.param("<title>App</title><div>Loading ...</div>", "", id="one that says so"),
        pytest.param(
            "<p>Loading data is slow.</p>", "Loading data is slow.", id="a sentence on loading"
        ),
        pytest.param(STREAMED, "# T\n\nText\n\n```\ncode\n```\n\nEnd", id="a streamed page"),
        pytest.param(
            "<div class=fragment><div class=line>f();</div>"
            "<div class=ttc><div>f</div><div>Definition: f.h</div></div></div>",
            "```\nf();\n```",
            id="a tooltip in code",
        ),
        pytest.param(
            DECLARATION,
            "`bool Rock::throwTo(const char *where, int n)`",
            id="a declaration in cells",
        ),
        pytest.param(
            DIVIDED,
            "## Types\n\n| enum | Kind |\n| --- | --- |\n\n"
            "## Functions\n\n| int | f() |\n| --- | --- |",
            id="a table that headings divide",
        ),
        pytest.param(
            f"<div>{COLUMNS}</div>",
            "| Type | Name |\n| --- | --- |\n| int | MAX |",
            id="a table of columns",
        ),
        pytest.param(ROLES, "| A | B |\n| --- | --- |\n| 1 | 2 |", id="a table by role"),
        pytest.param(FILTERS, "x", id="filters of one list are not tabs"),
        pytest.param(
            "<h1><div>Part 1</div><div>Install</div></h1>",
            "# Part 1 Install",
            id="blocks in a heading",
        ),
        pytest.param(
            "<ul><li><input type=checkbox checked> done<li><input type=checkbox> open</ul>",
            "- [x] done\n- [ ] open",
            id="boxes to tick",
        ),
        pytest.param(
            "<table><tr><th>a<th>b<tr><td><input type=checkbox checked disabled><td>"
            "<svg aria-label=yes><title>y</title></svg></table>",
            "| a | b |\n| --- | --- |\n| [x] | [yes] |",
            id="signs in cells",
        ),
        pytest.param(
            "<table><tr><th>a<th>b<tr><td><h5>Work</h5><td>x</table>",
            "| a | b |\n| --- | --- |\n| Work | x |",
            id="a heading in a cell",
        ),
        pytest.param("<p>Hello<code> </code>world</p>", "Hello world", id="code of a blank"),
        pytest.param(
            "<p><a href=http://h/d>docs<span class=sr-only>(new tab)</span></a></p>",
            "[docs (new tab)](http://h/d)",
            id="a text for screen readers",
        ),
        pytest.param(
            "<my-doc><template shadowrootmode=open><h2>S</h2><p>In</p></template></my-doc>",
            "## S\n\nIn",
            id="a shadow root",
        ),
        pytest.param("<svg><title>Logo</title></svg><p>x</p>", "x", id="the title of a picture"),
        pytest.param(
            "<table>Text<tr><td>a<td>b<tr><td>c<td>d</table>",
            "Text\n\n| a | b |\n| --- | --- |\n| c | d |",
            id="text in a table",
        ),
        pytest.param(
            "<div class=warning><p>Hot.</p></div>", "> **Warning**\n>\n> Hot.", id="a bare warning"
        ),
        pytest.param(
            "<div class='alert alert-danger'>Danger: hot.</div>", "> Danger: hot.", id="it says so"
        ),
        pytest.param(
            "<main><h1>T</h1><div id=toc><p>Contents<ul><li><a href=#a>A</a></ul></div><p>x</p>"
            "<div id=footer>Last updated 2024</div>",
            "# T\n\nx",
            id="contents and footer by name",
        ),
        pytest.param(
            "<main><h1>T</h1><div class=toc><a href=b.html>B</a></div>",
            "# T\n\n[B](http://h/b.html)",
            id="contents of other pages",
        ),
    ],
)
def test_what_is_meant_is_kept(html: str, markdown: str) -> None:
    assert html_to_markdown(html, "http://h/a.html") == (f"{markdown}\n" if markdown else "")
