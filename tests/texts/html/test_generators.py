"""Pages in the shape that generators give them: what a reader sees is kept, once, in its place."""

from __future__ import annotations

import pytest

from tests.texts.html.pages import convert, fence

LINES = ("a", "", "  b")
NOTED = "<annotation encoding='application/x-tex'>x^2</annotation>"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        pytest.param(
            "<h2 id=b><a class=header-anchor href=#b><span>Install it</span></a></h2><p>Run.",
            "## Install it\n\nRun.",
            id="VuePress",
        ),
        pytest.param(
            "<h2>A<a class=sl-anchor-link href=#a><span aria-hidden=true><svg></svg></span>"
            "<span class=sr-only>Section titled “A”</span></a></h2>",
            "## A",
            id="Starlight",
        ),
        pytest.param(
            "<h2>A<a class=hash-link href=#a title='Direct link to A'>\u200b</a></h2>",
            "## A",
            id="Docusaurus",
        ),
        pytest.param(
            "<h2><span class=permalink><a href=#a>\u25c6\xa0</a></span>foo()</h2>",
            "## foo()",
            id="Doxygen",
        ),
        pytest.param(
            "<h2>A<a class=headerlink href=#a>\uf0c1</a></h2>", "## A", id="an icon of a font"
        ),
        pytest.param("<h2>A <a href=#a>#</a></h2>", "## A", id="a sign without a class"),
        pytest.param(
            "<ol><li><p>n <a href=#r><b>\u21a9\ufe0e</b></a>", "1. n", id="a note's way back"
        ),
        pytest.param("<div class=header><div class=headertitle><div>A</div></div></div>",
                     "# A", id="a page of Doxygen"),
        pytest.param("<div role=heading aria-level=3>A</div>", "### A", id="a role"),
        pytest.param(
            "<h2>A<a class=headerlink href=#a title=Link>Link to this heading</a></h2>",
            "## A",
            id="a link in words",
        ),
        pytest.param("<h2><a href=#link title=t>Link</a></h2>", "## Link", id="a name like one"),
        pytest.param("<ul><li><a href=#l>Link</a>", "- [Link](https://e.org/docs/page.html#l)",
                     id="in a table of contents"),
        pytest.param(
            "Read <a class=permalink href=/q>the notes</a>",
            "Read [the notes](https://e.org/q)",
            id="a link with words",
        ),
        pytest.param(
            "<p>The <a href=/t>#</a> sign", "The [#](https://e.org/t) sign", id="a sign in a text"
        ),
    ],
)  # fmt: skip
def test_only_links_of_headings_to_themselves_are_left_out(html: str, markdown: str) -> None:
    assert convert(html) == markdown


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        pytest.param("<h2><button>How?</button></h2>", "## How?", id="a heading"),
        pytest.param("<h2><div><nav>How?</nav></div></h2>", "## How?", id="a heading in a nav"),
        pytest.param("<h2>Use foo <button>Copy</button></h2>", "## Use foo", id="beside a text"),
        pytest.param("<details><summary><button>S</button></summary>t", "S\n\nt", id="summary"),
        pytest.param("<dl><dt><button>D</button><dd>x", "- **D**\n\n  x", id="a term"),
        pytest.param(
            "<table><caption><label for=x>C</label></caption><tr><th><button>A</button><th>B"
            "<tr><td>1<td>2</table>",
            "C\n\n| A | B |\n| --- | --- |\n| 1 | 2 |",
            id="a caption and a header",
        ),
        pytest.param(
            "<ul><li><input type=checkbox id=c><label for=c>T</label>", "- [ ] T", id="task"
        ),
        pytest.param(
            "<ul><li><label><input type=checkbox> T</label> u", "- [ ] T u", id="task inside"
        ),
        pytest.param("<h1><img alt=Logo></h1>", "# [Logo]", id="a picture"),
        pytest.param("<blockquote><p>q<footer>By X", "> q\n>\n> By X", id="a quotation's footer"),
        pytest.param(
            "<article><p>a<footer><ol><li>Note</ol></footer></article><footer>f</footer>",
            "a\n\n1. Note",
            id="an article's footer",
        ),
        pytest.param(
            "<article><p>a<footer class=doc-footer>Edit this page</footer></article>",
            "a",
            id="controls below an article",
        ),
        pytest.param(
            "<title>T</title><form><h1>Doc</h1><p>All of the text</form>",
            "# Doc\n\nAll of the text",
            id="a form around a page",
        ),
        pytest.param("<p>A long text<form>Search: <input></form>", "A long text", id="a form"),
        pytest.param("<main hidden><p>a</main>", "a", id="a main part shown by a script"),
        pytest.param("<main><p>one</main><main><p>two</main>", "one\n\ntwo", id="two main parts"),
        pytest.param(
            "<aside><article>t1</article></aside><div><h1>D</h1><p>Text</div>",
            "t1\n\n# D\n\nText",
            id="a teaser beside a page",
        ),
    ],
)
def test_text_in_controls_and_wrappers_is_kept_where_there_is_no_other(
    html: str, markdown: str
) -> None:
    assert convert(html) == markdown


@pytest.mark.parametrize(
    "html",
    [
        pytest.param("<pre><code><div>a</div><div></div><div>  b</div></code></pre>", id="div"),
        pytest.param("<pre><div>a\n</div><div>\n</div><div>  b\n</div></pre>", id="with ends"),
        pytest.param("<pre><ol>\n<li>a\n<li>\n<li>  b</ol></pre>", id="li"),
        pytest.param("<pre><p>a</p>\n<p></p>\n<p>  b</p></pre>", id="p"),
        pytest.param("<pre>a<br><br>  b</pre>", id="br"),
        pytest.param("<pre>a\n<div class=hl>\n</div>  b</pre>", id="a highlighted line"),
        pytest.param("<code style='display:block'><div>a</div><div><br></div><div>  b</div></code>",
                     id="code alone"),
        pytest.param(
            "<pre>" + "".join(f"<span style='display: block'>{x}</span>" for x in LINES),
            id="display",
        ),
        pytest.param(
            "<pre>" + "\n".join(f"<span class=line>{x}</span>" for x in LINES),
            id="Shiki",
        ),
        pytest.param(
            "<pre>" + "<br>".join(f"<span class=highlight-line>{x}</span>" for x in LINES),
            id="Eleventy",
        ),
        pytest.param(
            "<pre><code>"
            + "".join(
                f"<div class=ec-line><div class=gutter><div class=ln aria-hidden=true>{n}</div>"
                f"</div><div class=code>{x}</div></div>"
                for n, x in enumerate(("a", "\n", "  b"))
            )
            + "</code></pre><div class=copy><button>Copy</button></div>",
            id="Expressive Code",
        ),
        pytest.param(
            "<pre>" + "".join(
                f"<span class=token-line><span class=token>{x}</span><br></span>" for x in LINES
            ),
            id="Docusaurus",
        ),
        pytest.param(
            "<div class=fragment>"
            + "".join(f"<div class=line><span class=lineno>    1</span> {x}</div>" for x in LINES)
            + "</div>",
            id="Doxygen",
        ),
        pytest.param("<pre><span class=linenos>1</span>a\n<span class=linenos>2</span>\n"
                     "<span class=linenos>3</span>  b</pre>", id="Pygments, inline"),
        pytest.param("<table><tr><td class=linenos><pre>1\n2\n</pre><td><pre>a\n\n  b</table>",
                     id="Pygments, table"),
        pytest.param(
            "<pre><code>" + "".join(
                f"<span class=line><span class=ln>{n}</span><span class=cl>{x}\n</span></span>"
                for n, x in enumerate(LINES)
            ),
            id="Hugo, inline",
        ),
        pytest.param(
            "<table class=lntable><tr><td class=lntd><pre><code><span class=lnt>1\n</span>"
            "<span class=lnt>2\n</span></code></pre><td class=lntd><pre><code>a\n\n  b\n</table>",
            id="Hugo, table",
        ),
        pytest.param(
            "<table><tr><td><pre><code><span style='color:#7f7f7f;user-select:none'>1\n</span>"
            "<span style='user-select: none'>2\n</span></code></pre><td><pre><code>"
            "<span style='display:flex'><span>a\n</span></span><span style='display:flex'><span>\n"
            "</span></span><span style='display:flex'><span>  b\n</span></span></table>",
            id="Hugo, without classes",
        ),
        pytest.param(
            "<pre><code><table class=rouge-table><tr><td class='rouge-gutter gl'>"
            "<pre class=lineno>1\n2\n3\n</pre><td class=rouge-code><pre>a\n\n  b\n</pre></table>",
            id="Rouge",
        ),
        pytest.param(
            "<table class=hljs-ln>"
            + "".join(
                f"<tr><td class='hljs-ln-line hljs-ln-numbers' data-line-number={n}>"
                f"<td class='hljs-ln-line hljs-ln-code'>{x}"
                for n, x in enumerate(LINES)
            ),
            id="highlight.js and GitHub",
        ),
        pytest.param(
            "<pre>" + "\n".join(
                f"<span class=source-line-no>00{n}</span><span id=l{n}>{x}</span>"
                for n, x in enumerate(LINES)
            ),
            id="javadoc",
        ),
        pytest.param(
            "<pre><code><span class='linenumber react-syntax-highlighter-line-number'>1</span>"
            "<span>a\n</span><span class=linenumber>2</span>\n<span class=linenumber>3</span>  b",
            id="react-syntax-highlighter",
        ),
        pytest.param("<div><textarea class=code spellcheck=false>a\n\n  b\n</textarea></div>",
                     id="pkg.go.dev"),
        pytest.param("<pre>a\n\n  b<button>Copy</button><span class=copy>Copied!</span></pre>",
                     id="buttons"),
    ],
)  # fmt: skip
def test_code_is_lines_without_numbers(html: str) -> None:
    assert convert(html) == fence(*LINES)


def test_one_line_of_code_beside_its_number() -> None:
    html = "<table><tr><td><pre><span style='user-select:none'>1</span></pre><td><pre>a</table>"
    assert convert(html) == fence("a")


def test_several_blocks_of_code_in_one_element() -> None:
    assert (
        convert(
            "<pre><code class=language-mjs>a\nb\n</code><code class=language-cjs>c</code></pre>"
        )
        == f"{fence('a', 'b', language='mjs')}\n\n{fence('c', language='cjs')}"
    )
    assert convert("<pre><code>a</code>\n<code>b</code></pre>") == fence("a", "b")
    assert convert("<pre>run <code>a</code> <code>b</code></pre>") == fence("run a b")
    assert convert("<p>x <code>a<br>b</code>") == "x `a`\n`b`"
    assert convert(
        "<pre>ALTER <em><code>name</code></em> (\n  <em><code>x</code></em>\n)"
    ) == fence("ALTER name (", "  x", ")")
    assert convert("<pre>\n<code class=prompt>$ </code><b><code>a b</code></b>\n</pre>") == fence(
        "$ a b"
    )


@pytest.mark.parametrize(
    ("html", "lines"),
    [
        pytest.param(
            "<tr><th>A<th>B<th>C<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5",
            ["| A | B | C |", "| --- | --- | --- |", "| 1 | 2 | 3 |", "| 1 | 4 | 5 |"],
            id="rows",
        ),
        pytest.param(
            "<tr><th>A<th colspan=2>B<th>C<tr><td>1<td>2<td>3<td>4",
            ["| A | B | B | C |", "| --- | --- | --- | --- |", "| 1 | 2 | 3 | 4 |"],
            id="columns",
        ),
        pytest.param(
            "<tr><th>A<th>B<th>C<tbody><tr><td rowspan=0 colspan=2>1<td>2<tr><td>3"
            "<tbody><tr><td>4<td>5<td>6",
            ["| A | B | C |", "| --- | --- | --- |", "| 1 |  | 2 |", "| 1 | 1 | 3 |",
             "| 4 | 5 | 6 |"],
            id="to the end of a group",
        ),
        pytest.param(
            "<tr><th>A<td>1<tr><th>B<td>2",
            ["|  |  |", "| --- | --- |", "| A | 1 |", "| B | 2 |"],
            id="names of rows",
        ),
        pytest.param(
            "<tr><th>A<th>B<tr><td><pre>x</pre><td><p>p<ul><li>q",
            ["| A | B |", "| --- | --- |", "| `x` | p - q |"],
            id="blocks",
        ),
    ],
)  # fmt: skip
def test_cells_stand_under_their_headers(html: str, lines: list[str]) -> None:
    assert convert(f"<table>{html}</table>") == "\n".join(lines)


RADIO = "<input type=radio id=t1><input type=radio id=t2>"


@pytest.mark.parametrize(
    "html",
    [
        pytest.param(
            f"<div>{RADIO}<div><label for=t1>A</label><label for=t2>B</label></div>"
            "<div><div><p>a</div><div><p>b</div></div></div>",
            id="Material and VitePress",
        ),
        pytest.param(
            "<div><input type=radio id=t1><label for=t1>A</label><div>a</div>"
            "<input type=radio id=t2><label for=t2>B</label><div>b</div></div>",
            id="sphinx-design",
        ),
        pytest.param(
            f"<div>{RADIO}<label for=t1>A</label><label for=t2>B</label><p>a</p><p>b</p></div>",
            id="by style alone",
        ),
        pytest.param(
            "<div><div role=tablist><button role=tab aria-controls=v>A</button><button role=tab "
            "aria-controls=w>B</button></div><div id=v role=tabpanel><div class=t>A</div><p>a</p>"
            "</div><div id=w role=tabpanel><div class=t>B</div><p>b</p></div></div>",
            id="VuePress",
        ),
        pytest.param(
            "<div><ul role=tablist><li role=tab>A<li role=tab>B</ul>"
            "<div><div role=tabpanel>a</div><div role=tabpanel hidden>b</div></div></div>",
            id="Docusaurus",
        ),
        pytest.param(
            "<div><ul role=tablist><li role=presentation><a role=tab href=#q>B</a>"
            "<li><a role=tab href=#p>A</a></ul></div><section id=p>a</section>"
            "<section id=q hidden>b</section>",
            id="Starlight, by reference",
        ),
        pytest.param(
            "<nav role=tablist><button role=tab id=t>A</button><button role=tab id=u>B</button>"
            "</nav><div aria-labelledby=t>a</div><div aria-labelledby=u style='display:none'>b",
            id="panels refer to labels",
        ),
        pytest.param(
            "<ul><li><a data-toggle=tab href=#p>A</a><li><a data-toggle=tab href=#q>B</a></ul>"
            "<div><div id=p class=tab-pane>a</div><div id=q class=tab-pane hidden>b</div></div>",
            id="Bootstrap",
        ),
        pytest.param(
            "<div><button class=tablinks>A</button><button class=tablinks>B</button></div>"
            "<div class=content>a</div><div class=content style='display:none'>b</div>",
            id="by hand",
        ),
    ],
)
def test_labels_of_tabs_are_above_their_panels(html: str) -> None:
    assert convert(html) == "**A**\n\na\n\n**B**\n\nb"


def test_titles_of_notes_and_frames_of_code() -> None:
    assert (
        convert(
            "<aside aria-label=Caution class=starlight-aside><p class=starlight-aside__title "
            "aria-hidden=true>Caution</p><div><p>a</p></div></aside>"
        )
        == "> **Caution**\n>\n> a"
    )
    assert convert(
        "<figure><figcaption><span class=title></span><span class=sr-only>Terminal window</span>"
        "</figcaption><pre>a</pre></figure>"
    ) == fence("a")


def test_panels_without_labels_and_labels_without_panels_are_kept() -> None:
    assert convert("<p class=p>a</p><p class=p hidden>b</p><p hidden>c</p>") == "a\n\nb"
    assert convert("<div role=tablist><button role=tab>A</button></div>") == "**A**"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        pytest.param("1 GB (2<sup>30</sup> - 1)", "1 GB (2^30 - 1)", id="power"),
        pytest.param("10<sup>-3</sup> x<sup>n+1</sup>", "10^-3 x^(n+1)", id="longer powers"),
        pytest.param("<i>x</i><sub>i</sub>", "*x*_i", id="index"),
        pytest.param("1<sup>st</sup> H<sub>2</sub>O", "1st H2O", id="no power and no index"),
        pytest.param("t<a href=#f><sup>1</sup></a>", "t[1](https://e.org/docs/page.html#f)",
                     id="a note"),
        pytest.param("t<sup><a href=#f>1</a></sup>", "t[1](https://e.org/docs/page.html#f)",
                     id="a note inside"),
        pytest.param("<h2>2<sup>8</sup></h2>", "## 2^8", id="in a heading"),
        pytest.param("<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>", "a/b", id="MathML"),
        pytest.param("<math><msup><mi>x</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup>",
                     "x^(n+1)", id="MathML power"),
        pytest.param(
            f"<span class=katex><span><math><semantics><mi>x</mi>{NOTED}</semantics></math></span>"
            "<span class=katex-html aria-hidden=true>x2</span></span>",
            "$x^2$",
            id="KaTeX",
        ),
        pytest.param(
            "<mjx-container class=MathJax><svg></svg><mjx-assistive-mml><math><msup><mi>x</mi>"
            "<mn>2</mn></msup></math></mjx-assistive-mml></mjx-container>",
            "x^2",
            id="MathJax 3 of VitePress",
        ),
        pytest.param(
            "<span class=m><span style='display:none'><math alttext='{\\displaystyle x^2}'>"
            "<mi>x</mi></math></span><img alt=x aria-hidden=true></span>",
            "$x^2$",
            id="MediaWiki",
        ),
        pytest.param(
            "<span class=MathJax_Preview>x</span><script type=math/tex>x^2</script>",
            "$x^2$",
            id="MathJax 2",
        ),
        pytest.param(
            "<p>a</p><script type='math/tex; mode=display'>x^2</script>", "a\n\n$$x^2$$",
            id="MathJax 2, apart",
        ),
        pytest.param("<ol start=3><li>a<li>b<li value=9>c", "3. a\n4. b\n9. c", id="start"),
        pytest.param(f"<ol start={'9' * 5000}><li>a", "1. a", id="no number"),
    ],
)  # fmt: skip
def test_formulas_and_numbers(html: str, markdown: str) -> None:
    assert convert(html) == markdown


@pytest.mark.parametrize("open_tags", ["<a name=x>", "<p><font>", "<div><a name=x>", "<span><b>"])
def test_elements_left_open_flatten_no_heading_and_no_code(open_tags: str) -> None:
    text = convert(f"{open_tags}x" * 300 + "<h2>H</h2><pre>a\n  b</pre>")
    assert text.endswith(f"\n\n## H\n\n{fence('a', '  b')}")
