"""HTML to Markdown: kept elements, omitted elements, and hostile pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from llm_kb.texts.html.to_markdown import html_to_markdown
from llm_kb.texts.html.tree import GROUPING_DEPTH, parse_html
from tests.cost import at_most
from tests.texts.html.pages import URL, convert


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        pytest.param("<h2>A <em>b</em></h2><p>c", "## A b\n\nc", id="heading"),
        pytest.param("<h1>A<a class=headerlink href=#a>¶</a></h1>", "# A", id="permalink"),
        pytest.param(
            "<h4>fn <a href=#n>new</a>(<a href=/T>T</a>)</h4>", "#### fn new(T)", id="signature"
        ),
        pytest.param("<h2><a href=#use>Use</a></h2>", "## Use", id="heading that leads to itself"),
        pytest.param("<h2><a href=b><b>B</b></a></h2>", "## B", id="card"),
        pytest.param("<p>f <a class=src href=f.rs>Source</a></p>", "f", id="source"),
        pytest.param("<p>f <a href=f.html>[source]</a></p>", "f", id="source of Sphinx"),
        pytest.param(
            "<ul><li><h2>A</h2>a<li><h2>B</h2>b</ul>", "## A\n\na\n\n## B\n\nb", id="sections"
        ),
        pytest.param("a <strong>b </strong>c", "a **b** c", id="strong keeps blanks outside"),
        pytest.param("<a href=b.html>x</a>", "[x](https://e.org/docs/b.html)", id="link"),
        pytest.param("<base href=/v2/><a href=b>x</a>", "[x](https://e.org/v2/b)", id="base"),
        pytest.param("<a href='javascript:alert(1)'>x</a>", "x", id="no script link"),
        pytest.param("<a href='data:text/html,x'>x</a>", "x", id="no data link"),
        pytest.param("<img alt='A  cat' src=x.png>", "[A cat]", id="image"),
        pytest.param("a<br>b", "a\nb", id="break"),
        pytest.param("<code>a`b</code>", "`` a`b ``", id="code with a backtick"),
        pytest.param("<p>a\n  b\t c</p>", "a b c", id="blanks"),
        pytest.param("<p># no heading</p>", "\\# no heading", id="escaped heading"),
        pytest.param("<p>a<p>b", "a\n\nb", id="unclosed paragraphs"),
        pytest.param("<p>x &lt;b&gt; &amp;amp; &nbsp;y</p>", "x <b> &amp; \xa0y", id="entities"),
        pytest.param("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c", id="nested list"),
        pytest.param(
            "<ol><li>a</li><li><p>b</p><p>c</p></li></ol>", "1. a\n\n2. b\n\n   c", id="ol"
        ),
        pytest.param("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b", id="quote"),
        pytest.param(
            "<pre><code class=language-rust>fn  a() {\n\n    b&lt;c&gt;\n}\n</code></pre>",
            "```rust\nfn  a() {\n\n    b<c>\n}\n```",
            id="code verbatim",
        ),
        pytest.param(
            "<div class=highlight-python><div><pre>a\n```\nb</pre></div></div>",
            "````python\na\n```\nb\n````",
            id="fence longer than what it holds",
        ),
        pytest.param(
            "<table><thead><tr><th>a<th>b</thead><tr><td>1|2<td>x<br>y</table>",
            "| a | b |\n| --- | --- |\n| 1\\|2 | x y |",
            id="table",
        ),
        pytest.param(
            "<table><tr><td class=linenos><pre>1</pre></td><td><pre>code</pre></td></table>",
            "```\ncode\n```",
            id="line numbers",
        ),
        pytest.param(
            "<h2>M</h2><dl><dt id=m.f>f(<em>a</em>)</dt><dd><p>Does.</p></dd></dl>",
            "## M\n\n### f(a)\n\nDoes.",
            id="signature",
        ),
        pytest.param(
            "<nav>n</nav><header>h</header><main><p>m</main><footer>f</footer>", "m", id="main"
        ),
        pytest.param("<article><p>short</article><main></main>", "short", id="empty main"),
        pytest.param(
            "<p>a</p><script>x</script><style>y</style><p hidden>z</p><!-- c -->"
            "<template>t</template>"
            "<p style='display: none'>q</p><p aria-hidden=true>r</p>",
            "a",
            id="invisible",
        ),
        pytest.param(
            "<article><h2>A</h2></article><article><h2>B</h2></article><nav>n</nav>",
            "## A\n\n## B",
            id="several articles",
        ),
        pytest.param(
            "<div role=tablist><button role=tab>Unix</button><button role=tab>Windows</button>"
            "</div><div role=tabpanel><pre>a</pre></div><div role=tabpanel hidden><pre>b</pre>"
            "</div><label>C</label><div class=tabbed-block>c</div>",
            "**Unix**\n\n```\na\n```\n\n**Windows**\n\n```\nb\n```\n\nc",
            id="every panel of tabs",
        ),
        pytest.param("<div hidden=until-found><p>a</div>", "a", id="accordion"),
        pytest.param(
            "<div class='admonition warning'><p class=admonition-title>Warning</p><p>a</p>"
            "<pre>b</pre></div><p>c",
            "> **Warning**\n>\n> a\n>\n> ```\n> b\n> ```\n\nc",
            id="admonition",
        ),
        pytest.param(
            "<div class='hint-container tip'><p class=hint-container-title>Tip</p><p>a</p></div>",
            "> **Tip**\n>\n> a",
            id="admonition of VuePress",
        ),
        pytest.param(
            "<div class='admonitionblock note'><table><tr><td><div class=title>Note</div>"
            "<td class=content>a</table></div>",
            "> **Note**\n>\n> a",
            id="admonition of Asciidoctor",
        ),
        pytest.param(
            "<div class='admonitionblock tip'><table><tr><td><i class=fa title=Tip></i>"
            "<td class=content>a</table></div>",
            "> *Tip*\n>\n> a",
            id="admonition of Antora",
        ),
        pytest.param(
            "<details class='custom-block'><summary>More</summary><p>a</p></details>",
            "> **More**\n>\n> a",
            id="admonition that folds",
        ),
        pytest.param(
            "<dl><dt>a</dt><dt>b</dt><dd>c</dd><div><dt>d</dt><dd><p>e</p><p>f</p></dd></div></dl>",
            "- **a**\n\n  **b**\n\n  c\n\n- **d**\n\n  e\n\n  f",
            id="definitions",
        ),
        pytest.param(
            "<h2>M</h2><dl><dt class=sig id=C>class C(<em>*a</em>)<a class=headerlink>¶</a>"
            "</dt><dd><p>x</p><dl><dt class=sig id=C.f>f()</dt><dd>y</dd></dl></dd>"
            "<dt class=sig id=D>D</dt></dl>",
            "## M\n\n### class C(*a)\n\nx\n\n#### f()\n\ny\n\n### D",
            id="a method below its class",
        ),
        pytest.param(
            "<div class=highlight-default><pre>a</pre></div>", "```\na\n```", id="no language"
        ),
        pytest.param("<title>T &amp; U</title><p>a", "# T & U\n\na", id="title"),
        pytest.param("<title>T</title><h1>H</h1>", "# H", id="title beside a heading"),
        pytest.param("plain text", "plain text", id="no markup"),
        pytest.param("1 < 2 <3 <b>x</b>", "1 < 2 <3 **x**", id="stray less-than"),
        pytest.param("", "", id="empty"),
        pytest.param(
            "<main><nav><ul><li>a<ul><li></li>b</li></li></ul></li></ul></nav><p>c</main>",
            "c",
            id="stray ends of items",
        ),
    ],
)
def test_conversion(html: str, markdown: str) -> None:
    assert convert(html) == markdown


@pytest.mark.parametrize(
    "piece",
    [
        "<!--", "<a ", '<a b="', "<a b='x", "<", "</", "<div>", "<script>", "<p>", "<li>", "&amp",
        "<table><tr><td>", "<a x =   ", "</p>", "<b><p>", "<a b=", "<![CDATA[", "<blockquote>",
        pytest.param("<ul><li>", marks=pytest.mark.slow),
        "`", "<code>`", "<pre>`", "<dl><dt id=x>", "<a href=x>", "<title>",
    ],
)  # fmt: skip
def test_hostile_pages_take_linear_time(piece: str) -> None:
    with at_most(1.5):
        html_to_markdown(piece * 8_000, URL)


def test_deep_pages_keep_their_text() -> None:
    text = convert("<div>" * 5_000 + "deep" + "</div>" * 5_000)
    assert text == "deep"
    assert len(list(parse_html("<b>" * 5_000).find("html", "b"))) == GROUPING_DEPTH


def test_pages_of_too_many_elements_keep_their_text() -> None:
    root = parse_html("<br>" * 1_005 + "<b>end</b>", most=1_000)
    assert len(list(root.find("html", "br", "b"))) == 1_001
    assert root.text() == "end"


@given(st.text(st.sampled_from("<>/ab=\"'!-`#*|&;\n []()pre"), max_size=80))
def test_anything_is_a_page(html: str) -> None:
    html_to_markdown(html, URL)


@given(st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), max_size=60))
def test_preformatted_text_is_kept_to_the_byte(code: str) -> None:
    """A CommonMark parser finds one fence, and in it the code."""
    escaped = code.replace("&", "&amp;").replace("<", "&lt;")
    markdown = convert(f"<pre>{escaped}</pre>")
    if not code.strip():
        assert markdown == ""
        return
    tokens = MarkdownIt().parse(markdown)
    assert [(token.type, token.content) for token in tokens] == [("fence", code.strip("\n") + "\n")]
