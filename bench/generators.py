"""How well the pages of real generators become Markdown: ours beside two libraries.

    python bench/generators.py WORK [GENERATOR...]

One document is written in the markup of each generator, which makes a page of it below WORK. What
the page must say is taken from the document, never from a reader of HTML: its headings as
headings, its lines of code in fences, the cells of its table each under its column, the labels of
its tabs, its words, and its formula, once. A generator that is not there is left out and named.
GitHub and pkg.go.dev, which run elsewhere, have a page written by hand in their shape. The
libraries are handed the main part that ours has to find. WORK/venv, WORK/NAME/node_modules and the
path are looked through for the generators; see `bench/RESULTS.md` for their packages. Needs
`pip install beautifulsoup4 markdownify html-to-markdown`.
"""

from __future__ import annotations

import os
import re
import shlex
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import html_to_markdown as other_library
from pages import find_main, with_markdownify, with_ours

HEADINGS = ("Llama guide", "Install it", "Feed it", "Limits", "Terms")
CODE = (
    "class Rock:\n\n    def roll(self):\n        return {1: 2}\n\n\nprint(Rock())",
    "./feed.sh --all",
    "feed.bat /all",
)
TABS = ("Unix", "Windows")
TABLE = (
    ("Kind", "Name", "Value"),
    ("net", "port", "80"),
    ("net", "host", "zebra"),
    ("disk", "size", "7"),
)
WORDS = """
    Alpacas hum softly install the package first attention never feed chocolate unix windows
    choose your system a hoof holds many toes see the table kind name value net port host zebra
    disk size a llama spits at metres only when cross graze eat grass slowly herd several llamas
    third step fourth step
    """.split()  # noqa: SIM905 - as a list, nobody would read it
FORMULA = "x^2"

# Markdown

HTML_TABLE = """<table><thead><tr><th>Kind</th><th>Name</th><th>Value</th></tr></thead>
<tbody><tr><td rowspan="2">net</td><td>port</td><td>80</td></tr>
<tr><td>host</td><td>zebra</td></tr>
<tr><td>disk</td><td>size</td><td>7</td></tr></tbody></table>"""

PLAIN_TERMS = "Graze: eat grass slowly.\n\nHerd: several llamas."
DEFINITIONS = "Graze\n:   eat grass slowly\n\nHerd\n:   several llamas\n"
HTML_TERMS = "<dl><dt>Graze<dd>eat grass slowly<dt>Herd<dd>several llamas</dl>"


def tabs(one: str = "**{}**\n\n```sh\n{}\n```", around: str = "{}") -> str:
    """Return the commands, each in a tab of a markup, or below its label."""
    each = [one.format(name, code) for name, code in zip(TABS, CODE[1:], strict=True)]
    return around.format("\n\n".join(each))


def markdown(  # noqa: PLR0913 - the pieces in which the dialects differ
    note: str = "> Attention: Never feed chocolate.",
    commands: str = tabs(),
    *,
    table: str = HTML_TABLE,
    terms: str = PLAIN_TERMS,
    formula: str = "x<sup>2</sup>",
    title: str = "# Llama guide",
    language: str = "python",
) -> str:
    """Return the document in a dialect of Markdown."""
    return f"""{title}

Alpacas hum softly.

## Install it

Install the package first.

```{language}
{CODE[0]}
```

{note}

## Feed it

Choose your system.

{commands}

3. third step
4. fourth step

## Limits

A hoof holds many toes; see the table. A llama spits at {formula} metres.[^1]

[^1]: Only when cross.

{table}

## Terms

{terms}
"""


# Other markups


def indent(text: str, by: str = "    ") -> str:
    return textwrap.indent(text, by)


RST_TABS = tabs("   .. tab-item:: {}\n\n      .. code-block:: sh\n\n         {}")
RST = f"""Llama guide
===========

Alpacas hum softly.

Install it
----------

Install the package first.

.. code-block:: python
   :linenos:

{indent(CODE[0])}

.. attention::

   Never feed chocolate.

Feed it
-------

Choose your system.

.. tab-set::

{RST_TABS}

3. third step
4. fourth step

Limits
------

A hoof holds many toes; see the table. A llama spits at :math:`x^2` metres. [#f]_

+------+------+-------+
| Kind | Name | Value |
+======+======+=======+
| net  | port | 80    |
|      +------+-------+
|      | host | zebra |
+------+------+-------+
| disk | size | 7     |
+------+------+-------+

.. [#f] Only when cross.

Terms
-----

Graze
   eat grass slowly

Herd
   several llamas
"""

ASCIIDOC_TABS = tabs(".{}\n[source,sh]\n----\n{}\n----")
ASCIIDOC = f"""= Llama guide
:sectanchors:
:source-highlighter: none

Alpacas hum softly.

== Install it

Install the package first.

[source,python]
----
{CODE[0]}
----

CAUTION: Attention. Never feed chocolate.

== Feed it

Choose your system.

{ASCIIDOC_TABS}

[start=3]
. third step
. fourth step

== Limits

A hoof holds many toes; see the table. A llama spits at x^2^ metres.footnote:[Only when cross.]

[%header,cols=3*]
|===
|Kind |Name |Value
.2+|net |port |80
|host |zebra
|disk |size |7
|===

== Terms

Graze:: eat grass slowly
Herd:: several llamas
"""

TEXINFO_CODE = CODE[0].replace("{", "@{").replace("}", "@}")
TEXINFO_TABS = tabs("{}\n@example\n{}\n@end example")
TEXINFO = f"""\\input texinfo
@settitle x
@node Top
@top Llama guide
Alpacas hum softly.
@node Install it
@chapter Install it
Install the package first.

@example
{TEXINFO_CODE}
@end example

Attention: Never feed chocolate.
@node Feed it
@chapter Feed it
Choose your system.

{TEXINFO_TABS}
@enumerate 3
@item third step
@item fourth step
@end enumerate
@node Limits
@chapter Limits
A hoof holds many toes; see the table. A llama spits at @math{{x^2}} metres.@footnote{{Only when
cross.}}
@multitable @columnfractions .3 .3 .3
@headitem Kind @tab Name @tab Value
@item net @tab port @tab 80
@item net @tab host @tab zebra
@item disk @tab size @tab 7
@end multitable
@node Terms
@chapter Terms
@table @asis
@item Graze
eat grass slowly
@item Herd
several llamas
@end table
@bye
"""

DOCBOOK_TABS = tabs(
    "<formalpara><title>{}</title><para><programlisting>{}</programlisting></para></formalpara>"
)
DOCBOOK = f"""<article><title>Llama guide</title><para>Alpacas hum softly.</para>
<section><title>Install it</title><para>Install the package first.</para>
<programlisting>{CODE[0]}</programlisting>
<caution><title>Attention</title><para>Never feed chocolate.</para></caution></section>
<section><title>Feed it</title><para>Choose your system.</para>
{DOCBOOK_TABS}
<orderedlist><listitem override='3'><para>third step</para></listitem>
<listitem><para>fourth step</para></listitem></orderedlist></section>
<section><title>Limits</title><para>A hoof holds many toes; see the table. A llama spits at
x<superscript>2</superscript> metres.<footnote><para>Only when cross.</para></footnote></para>
<informaltable><tgroup cols='3'>
<thead><row><entry>Kind</entry><entry>Name</entry><entry>Value</entry></row></thead><tbody>
<row><entry morerows='1'>net</entry><entry>port</entry><entry>80</entry></row>
<row><entry>host</entry><entry>zebra</entry></row>
<row><entry>disk</entry><entry>size</entry><entry>7</entry></row>
</tbody></tgroup></informaltable></section>
<section><title>Terms</title><variablelist>
<varlistentry><term>Graze</term><listitem><para>eat grass slowly</para></listitem></varlistentry>
<varlistentry><term>Herd</term><listitem><para>several llamas</para></listitem></varlistentry>
</variablelist></section></article>"""


def html(  # noqa: PLR0913 - the pieces in which pages differ
    heading: str = "<h2>{}</h2>",
    code: str = "<pre>{}</pre>",
    note: str = "<p>Attention: Never feed chocolate.</p>",
    *,
    title: str = "<h2>Llama guide</h2>",
    tab: str = "",
    formula: str = "x<sup>2</sup>",
    mark: str = "",
    end: str = "<p>Only when cross.</p>",
) -> str:
    """Return the document as HTML, for the source of a page or a page."""
    install, feed, limits, terms = map(heading.format, HEADINGS[1:])
    below = tabs(tab or "<p>{}</p>" + code)
    return f"""{title}
<p>Alpacas hum softly.</p>{install}<p>Install the package first.</p>
{code.format(CODE[0])}
{note}{feed}<p>Choose your system.</p>
{below}
<ol start="3"><li>third step</li><li>fourth step</li></ol>{limits}
<p>A hoof holds many toes; see the table. A llama spits at {formula} metres.{mark}</p>
{HTML_TABLE}{terms}{HTML_TERMS}{end}"""


# Generators


@dataclass(frozen=True)
class Recipe:
    """The source of a page, the command that makes it, and where it is then."""

    source: str
    text: str
    command: str
    page: str
    files: Mapping[str, str] = field(default_factory=dict)

    def build(self, work: Path, root: Path) -> str:
        """Return the longest page with the document. Raises OSError, SubprocessError, ValueError.

        WORK/venv and the packages of npm below `root` come first on the path.
        """
        for name, text in {self.source: self.text, **self.files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        environ = {**os.environ, "ASTRO_TELEMETRY_DISABLED": "1", "CI": "1"}
        environ["PATH"] = f"{work / 'venv/bin'}:{root / 'node_modules/.bin'}:{environ['PATH']}"
        for command in filter(None, self.command.split(";")):
            subprocess.run(
                shlex.split(command), cwd=root, env=environ, check=True, capture_output=True,
                timeout=400,
            )  # fmt: skip
        bodies = [path.read_bytes() for path in sorted(root.glob(self.page))]
        # DocBook's own style sheets write Latin-1.
        pages = [b.decode("latin-1" if b"charset=ISO-8859-1" in b else "utf-8") for b in bodies]
        return max((page for page in pages if "zebra" in page), key=len)


def sphinx(theme: str) -> Recipe:
    conf = f"extensions = ['sphinx_design', 'sphinx.ext.mathjax']\nhtml_theme = {theme!r}\n"
    return Recipe("index.rst", RST, "sphinx-build -q -E . out", "out/index.html", {"conf.py": conf})


def comment(text: str, mark: str) -> str:
    """Return a text as a comment of source code."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in text.split("\n"))


GITHUB = html(
    '<div class="markdown-heading" dir="auto"><h2 tabindex="-1" class="heading-element">{0}</h2>'
    '<a id="user-content-x" class="anchor" aria-label="Permalink: {0}" href="#x"><svg '
    'class="octicon octicon-link"><path d="m7"></path></svg></a></div>',
    '<div class="highlight highlight-source-shell notranslate" dir="auto" '
    'data-snippet-clipboard-copy-content="x"><pre>{}</pre><div class="zeroclipboard-container">'
    '<clipboard-copy aria-label="Copy" value="x"><svg></svg></clipboard-copy></div></div>',
    '<div class="markdown-alert markdown-alert-caution" dir="auto"><p class="markdown-alert-title">'
    "<svg></svg>Attention</p><p>Never feed chocolate.</p></div>",
    title='<div class="markdown-heading"><h1 class="heading-element">Llama guide</h1></div>',
    formula='<math-renderer class="js-inline-math" style="display: inline-block">$x^2$'
    "</math-renderer>",
    mark='<sup><a href="#user-content-fn-1" id="user-content-fnref-1" data-footnote-ref="" '
    'aria-describedby="footnote-label">1</a></sup>',
    end='<section data-footnotes="" class="footnotes"><h2 id="footnote-label" class="sr-only">'
    'Footnotes</h2><ol><li id="user-content-fn-1"><p>Only when cross. <a '
    'href="#user-content-fnref-1" data-footnote-backref="" class="data-footnote-backref" '
    'aria-label="Back to reference 1"><g-emoji class="g-emoji">\u21a9</g-emoji></a></p></li></ol>'
    "</section>",
)
PKGSITE = html(
    '<h4 id="hdr-x">{0} <a class="Documentation-idLink" href="#hdr-x" title="Go to {0}" '
    'aria-label="Go to {0}">\u00b6</a></h4>',
    '<details id="example" class="Documentation-exampleDetails js-exampleContainer"><summary '
    'class="Documentation-exampleDetailsHeader">Example <a href="#example" '
    'aria-label="Go to Example">\u00b6</a></summary><div '
    'class="Documentation-exampleDetailsBody"><textarea class="Documentation-exampleCode code" '
    'spellcheck="false">{}</textarea></div><div class="Documentation-exampleButtonsContainer"><p '
    'role="alert"></p><button>Share</button><button>Run</button></div></details>',
    title='<h2 class="UnitDoc-title" id="section-documentation"><img alt=""> Llama guide <a '
    'class="UnitDoc-idLink" href="#section-documentation" title="Go to Documentation">\u00b6</a>'
    "</h2>",
    tab="<p>{}</p><pre>{}</pre>",
)
PAGE = """<html><body><header><a href="#content">Skip to content</a></header><nav>Menu</nav>
<main id="content"><article class="markdown-body">{}</article></main><footer>Terms</footer></body>
</html>"""
KATEX = {"formula": "$x^2$"}
JAVADOC = "A guide.\n" + html(code="<pre>{{@code\n{}}}</pre>")

GENERATORS = {
    "sphinx-furo": sphinx("furo"),
    "sphinx-rtd": sphinx("sphinx_rtd_theme"),
    "sphinx-pydata": sphinx("pydata_sphinx_theme"),
    "mkdocs-material": Recipe(
        "docs/index.md",
        markdown(
            "!!! attention\n    Never feed chocolate.",
            tabs('=== "{}"\n\n    ```sh\n    {}\n    ```'),
            terms=DEFINITIONS,
            **KATEX,
        ),
        "mkdocs build -q",
        "site/index.html",
        {
            "mkdocs.yml": "site_name: x\ntheme: {name: material}\nmarkdown_extensions:\n"
            "- admonition\n- def_list\n- footnotes\n- toc: {permalink: true}\n"
            "- pymdownx.superfences\n- pymdownx.arithmatex: {generic: true}\n"
            "- pymdownx.highlight: {linenums: true}\n- pymdownx.tabbed: {alternate_style: true}\n"
        },
    ),
    "vitepress": Recipe(
        "index.md",
        markdown(
            "::: warning Attention\nNever feed chocolate.\n:::",
            tabs("```sh [{}]\n{}\n```", "::: code-group\n\n{}\n\n:::"),
            **KATEX,
        ),
        "npx vitepress build",
        ".vitepress/dist/index.html",
        {
            ".vitepress/config.mjs": "import footnote from 'markdown-it-footnote'\nexport default "
            "{ title: 'x', markdown: { lineNumbers: true, math: true, config: md => "
            "md.use(footnote) } }"
        },
    ),
    "vuepress": Recipe(
        "docs/README.md",
        markdown(
            "::: warning Attention\nNever feed chocolate.\n:::",
            tabs("@tab {}\n\n```sh\n{}\n```", "::: code-tabs\n\n{}\n\n:::"),
            **KATEX,
        ),
        "npx vuepress build docs",
        "docs/.vuepress/dist/index.html",
        {
            "package.json": '{"private": true, "type": "module"}',
            "docs/.vuepress/config.js": "import { viteBundler } from '@vuepress/bundler-vite'\n"
            "import { defaultTheme } from '@vuepress/theme-default'\n"
            "import { markdownMathPlugin } from '@vuepress/plugin-markdown-math'\n"
            "import footnote from 'markdown-it-footnote'\n"
            "export default { bundler: viteBundler(), theme: defaultTheme({ themePlugins: { "
            "prismjs: { lineNumbers: 3 } } }), extendsMarkdown: md => md.use(footnote), "
            "plugins: [markdownMathPlugin({ type: 'katex' })] }\n",
        },
    ),
    "starlight": Recipe(
        "src/content/docs/index.mdx",
        markdown(
            ":::caution[Attention]\nNever feed chocolate.\n:::",
            tabs('<TabItem label="{}">\n\n```sh\n{}\n```\n\n</TabItem>', "<Tabs>\n{}\n</Tabs>"),
            title="---\ntitle: Llama guide\n---\n\n"
            "import { Tabs, TabItem } from '@astrojs/starlight/components';",
        ),
        "npx astro build",
        "dist/**/index.html",
        {
            "src/content.config.ts": "import { defineCollection } from 'astro:content';\n"
            "import { docsLoader } from '@astrojs/starlight/loaders';\n"
            "import { docsSchema } from '@astrojs/starlight/schema';\n"
            "export const collections = { docs: defineCollection({ loader: docsLoader(), "
            "schema: docsSchema() }) };\n",
            "astro.config.mjs": "import { defineConfig } from 'astro/config';\n"
            "import starlight from '@astrojs/starlight';\n"
            "export default defineConfig({ integrations: [starlight({ title: 'x', "
            "pagefind: false })] });\n",
        },
    ),
    "docusaurus": Recipe(
        "docs/index.mdx",
        markdown(
            ":::warning[Attention]\nNever feed chocolate.\n:::",
            tabs('<TabItem value="{}">\n\n```sh\n{}\n```\n\n</TabItem>', "<Tabs>\n{}\n</Tabs>"),
            title="---\nslug: /\n---\n\nimport Tabs from '@theme/Tabs';\n"
            "import TabItem from '@theme/TabItem';\n\n# Llama guide",
            language="python showLineNumbers",
            **KATEX,
        ),
        "npx docusaurus build",
        "build/index.html",
        {
            "docusaurus.config.mjs": "import math from 'remark-math';\n"
            "import katex from 'rehype-katex';\nexport default { title: 'x', url: 'https://e.org', "
            "baseUrl: '/', presets: [['classic', { docs: { routeBasePath: '/', "
            "remarkPlugins: [math], rehypePlugins: [katex] }, blog: false, pages: false, "
            "theme: {} }]] };\n"
        },
    ),
    "hugo": Recipe(  # it has no theme of its own: a layout as small as can be
        "content/guide.md",
        markdown(title="---\ntitle: x\n---\n\n# Llama guide", terms=DEFINITIONS),
        "hugo --quiet",
        "public/guide/index.html",
        {
            "layouts/_default/single.html": "<html><body><main>{{ .Content }}</main></body></html>",
            "config.toml": "[markup.highlight]\nlineNos = true\nlineNumbersInTable = true\n"
            "[markup.goldmark.renderer]\nunsafe = true\n",
        },
    ),
    "jekyll": Recipe(
        "index.md",
        markdown(
            "> Attention: Never feed chocolate.\n{: .note }",
            title="---\nlayout: x\n---\n\n# Llama guide",
            terms="Graze\n: eat grass slowly\n\nHerd\n: several llamas\n",
            formula="$$x^2$$",
        ),
        "jekyll build -q",
        "_site/index.html",
        {
            "_layouts/x.html": "<html><body><article>{{ content }}</article></body></html>",
            "_config.yml": "kramdown:\n  syntax_highlighter_opts:\n"
            "    block: {line_numbers: true}\nexclude: [page.html]\n",
        },
    ),
    "mdbook": Recipe(
        "src/guide.md",
        markdown(formula="\\\\(x^2\\\\)"),
        "mdbook build",
        "book/guide.html",
        {
            "book.toml": "[book]\ntitle = 'x'\n[output.html]\nmathjax-support = true\n",
            "src/SUMMARY.md": "# Summary\n\n- [Guide](guide.md)\n",
        },
    ),
    "antora": Recipe(
        "source/modules/ROOT/pages/index.adoc",
        ASCIIDOC,
        "git init -q source; git -C source add .; git -C source -c user.name=x -c user.email=x@x "
        "commit -q --allow-empty -m x; npx antora --ui-bundle-url ui playbook.yml",
        "build/site/**/index.html",
        {
            "source/antora.yml": "name: x\nversion: ~\nnav: []\n",
            "playbook.yml": "content:\n  sources:\n  - {url: ./source, branches: HEAD}\n",
            # The usual one is downloaded: this has its parts around the text.
            "ui/layouts/default.hbs": '<html><body class="article"><main class="article"><div '
            'class="content"><article class="doc"><h1 class="page">{{{page.title}}}</h1>'
            "{{{page.contents}}}</article></div></main></body></html>",
        },
    ),
    "asciidoctor": Recipe("guide.adoc", ASCIIDOC, "npx asciidoctor guide.adoc", "guide.html"),
    "doxygen": Recipe(
        "guide.md",
        markdown(
            "@attention Never feed chocolate.",
            tabs("**{}**\n\n```{{.sh}}\n{}\n```"),
            table=re.sub("</?(?:thead|tbody)>", "", HTML_TABLE),  # which it shows as text
            language="{.py}",
        ),
        "doxygen",
        "html/index.html",
        {
            "Doxyfile": "INPUT = guide.md\nUSE_MDFILE_AS_MAINPAGE = guide.md\nQUIET = YES\n"
            "GENERATE_LATEX = NO\nTOC_INCLUDE_HEADINGS = 0\n"
        },
    ),
    "docbook": Recipe(
        "guide.xml",
        DOCBOOK,
        "xsltproc --nonet -o guide.html "
        "/usr/share/xml/docbook/stylesheet/docbook-xsl/html/docbook.xsl guide.xml",
        "guide.html",
    ),
    "javadoc": Recipe(
        "llama/package-info.java",
        f"/**\n{comment(JAVADOC, ' *')} */\npackage llama;\n",
        "javadoc -quiet -Xdoclint:none -d out llama/Guide.java llama/package-info.java",
        "out/llama/package-summary.html",
        {"llama/Guide.java": "package llama;\n/** A guide. */\npublic class Guide {}\n"},
    ),
    "rustdoc": Recipe(
        "guide.rs", comment(markdown(), "//!"), "rustdoc -o out guide.rs", "out/guide/index.html"
    ),
    "texinfo": Recipe(
        "guide.texi",
        TEXINFO,
        "makeinfo --html --no-split --no-number-sections guide.texi",
        "guide.html",
    ),
    "typedoc": Recipe(
        "README.md",
        markdown(),
        "npx typedoc --readme README.md --out out index.ts",
        "out/index.html",
        {
            "index.ts": "/** A llama. */\nexport const llama = 1;\n",
            "tsconfig.json": '{"files": ["index.ts"]}',
        },
    ),
    "github": Recipe("github.html", PAGE.format(GITHUB), "", "github.html"),
    "pkgsite": Recipe("pkgsite.html", PAGE.format(PKGSITE), "", "pkgsite.html"),
}


def measure(text: str) -> list[float]:
    """Return per cent of headings, lines of code, cells, labels, words and formulas kept."""
    lines = [re.sub(r"^(?:> ?| {2,3}(?=\S))+", "", line).rstrip() for line in text.split("\n")]
    titles = [line.lstrip("# ") for line in lines if line.startswith("#")]
    found = re.findall(r"(?ms)^[ >]*(`{3,})[^\n]*\n(.*?)^[ >]*\1", text)
    fences = "\n" + "".join(_without_margin(body) for _, body in found)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    words = re.findall(r"\w+", text.lower())
    kept = (
        [heading in titles for heading in HEADINGS],
        [f"\n{block}\n" in fences for block in CODE for _ in block.split("\n")],
        [list(row) in rows or ["", *row[1:]] in rows for row in TABLE for _ in row],
        [_is_above(text, name, code) for name, code in zip(TABS, CODE[1:], strict=True)],
        [word.lower() in words for word in WORDS],
        [text.count(FORMULA) == 1],
    )
    return [100 * statistics.fmean(each) for each in kept]


def _without_margin(code: str) -> str:
    """Return code without what a list or a quotation around it puts before each line."""
    lines = [re.sub(r"^(?:> ?)+", "", line).rstrip() for line in code.split("\n")]
    return textwrap.dedent("\n".join(lines)) + "\n"


def _is_above(text: str, label: str, code: str) -> bool:
    """Tell whether the last line before some code, but for marks, is the label of its tab."""
    before = text.partition(code)[0].rsplit("```", 1)[0].strip().rsplit("\n", 1)[-1]
    return before.strip("*#-. ").casefold() == label.casefold()


def with_other(html: str) -> str:
    found = other_library.convert(str(find_main(html)))
    return found if isinstance(found, str) else str(getattr(found, "content", found))


CONVERTERS = {"ours": with_ours, "markdownify": with_markdownify, "html-to-markdown": with_other}


def main() -> None:
    work = Path(sys.argv[1]).resolve()
    print(
        "headings / lines of code / cells / labels of tabs / words / formulas kept, in per cent, ms"
    )
    for name in sys.argv[2:] or GENERATORS:
        page = work / name / "made.html"
        if not page.exists():
            try:
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(GENERATORS[name].build(work, page.parent))
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                said = getattr(error, "stderr", b"") or b""
                print(f"{name}: left out, {error}", said.decode()[-600:], file=sys.stderr)
                continue
        html = page.read_text()
        row = []
        for convert in CONVERTERS.values():
            started = time.perf_counter()
            text = convert(html)
            spent = 1000 * (time.perf_counter() - started)
            row.append(" / ".join(f"{x:.0f}" for x in [*measure(text), spent]))
        print(f"| {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
