"""How well the pages of real generators become Markdown: ours beside two libraries.

    python bench/generators.py WORK [GENERATOR...]

One document is written in the markup of each generator, which makes a page of it below WORK. What
the page must say is taken from the document, never from a reader of HTML: its headings as
headings, its lines of code in fences, the cells of its table each under its column, the labels of
its tabs, and its words. A generator that is not there is left out and named. The libraries are
handed the main part that ours has to find. WORK/venv, WORK/NAME/node_modules and the path are
looked through for the generators; see `bench/RESULTS.md` for their packages. Needs
`pip install beautifulsoup4 markdownify html-to-markdown`.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
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
    disk size graze eat grass slowly herd several llamas third step fourth step
    """.split()  # noqa: SIM905 - as a list, nobody would read it

HTML_TABLE = """<table><thead><tr><th>Kind</th><th>Name</th><th>Value</th></tr></thead>
<tbody><tr><td rowspan="2">net</td><td>port</td><td>80</td></tr>
<tr><td>host</td><td>zebra</td></tr>
<tr><td>disk</td><td>size</td><td>7</td></tr></tbody></table>"""

MARKDOWN = """# Llama guide

Alpacas hum softly.

## Install it

Install the package first.

```python
{0}
```

{note}

## Feed it

Choose your system.

{tabs}

3. third step
4. fourth step

## Limits

A hoof holds many toes; see the table.

{table}

## Terms

{terms}
"""
PLAIN_TERMS = "Graze: eat grass slowly.\n\nHerd: several llamas."
DEFINITIONS = "Graze\n:   eat grass slowly\n\nHerd\n:   several llamas\n"


def indent(text: str, by: str = "    ") -> str:
    return "\n".join(by + line if line else "" for line in text.split("\n"))


def fenced(code: str, language: str, title: str = "") -> str:
    return f"```{language}{title}\n{code}\n```"


def markdown(note: str, tabs: str, table: str = HTML_TABLE, terms: str = PLAIN_TERMS) -> str:
    return MARKDOWN.format(CODE[0], note=note, tabs=tabs, table=table, terms=terms)


@dataclass(frozen=True)
class Site:
    """A place to build in, and the tools that are there."""

    work: Path
    root: Path

    def write(self, name: str, text: str) -> None:
        """Write a file of the source."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *command: str) -> None:
        """Run a generator. Raises OSError or subprocess.SubprocessError."""
        environ = {**os.environ, "ASTRO_TELEMETRY_DISABLED": "1", "CI": "1"}
        environ["PATH"] = (
            f"{self.work / 'venv/bin'}:{self.root / 'node_modules/.bin'}:{environ['PATH']}"
        )
        subprocess.run(
            command, cwd=self.root, env=environ, check=True, capture_output=True, timeout=400
        )

    def read(self, pattern: str) -> str:
        """Return the longest page that a pattern finds and that has the document."""
        bodies = [path.read_bytes() for path in sorted(self.root.glob(pattern))]
        # DocBook's own style sheets write Latin-1.
        pages = [b.decode("latin-1" if b"charset=ISO-8859-1" in b else "utf-8") for b in bodies]
        return max((page for page in pages if "zebra" in page), key=len)


def rst(tabs: str) -> str:
    table = """.. list-table is without spans: a grid table has them

+------+------+-------+
| Kind | Name | Value |
+======+======+=======+
| net  | port | 80    |
|      +------+-------+
|      | host | zebra |
+------+------+-------+
| disk | size | 7     |
+------+------+-------+
"""
    code = f".. code-block:: python\n   :linenos:\n\n{indent(CODE[0])}\n"
    parts = (
            "Llama guide\n===========", "Alpacas hum softly.", "Install it\n----------",
            "Install the package first.", code, ".. attention::\n\n   Never feed chocolate.",
            "Feed it\n-------", "Choose your system.", tabs, "3. third step\n4. fourth step",
            "Limits\n------", "A hoof holds many toes; see the table.", table, "Terms\n-----",
            "Graze\n   eat grass slowly\n\nHerd\n   several llamas\n",
    )  # fmt: skip
    return "\n\n".join(parts)


def build_sphinx(theme: str) -> Callable[[Site], str]:
    def build(site: Site) -> str:
        tabs = ".. tab-set::\n" + "".join(
            f"\n   .. tab-item:: {name}\n\n      .. code-block:: sh\n\n         {code}\n"
            for name, code in zip(TABS, CODE[1:], strict=True)
        )
        site.write("conf.py", f"extensions = ['sphinx_design']\nhtml_theme = {theme!r}\n")
        site.write("index.rst", rst(tabs))
        site.run("sphinx-build", "-q", "-E", ".", "out")
        return site.read("out/index.html")

    return build


def build_mkdocs(site: Site) -> str:
    tabs = "\n\n".join(
        f'=== "{name}"\n\n{indent(fenced(code, "sh"))}'
        for name, code in zip(TABS, CODE[1:], strict=True)
    )
    note = "!!! attention\n    Never feed chocolate."
    site.write("docs/index.md", markdown(note, tabs, terms=DEFINITIONS))
    site.write(
        "mkdocs.yml",
        "site_name: x\ntheme: {name: material}\nmarkdown_extensions:\n- admonition\n- def_list\n"
        "- toc: {permalink: true}\n- pymdownx.superfences\n- pymdownx.highlight: "
        "{linenums: true}\n- pymdownx.tabbed: {alternate_style: true}\n",
    )
    site.run("mkdocs", "build", "-q")
    return site.read("site/index.html")


def build_vitepress(site: Site) -> str:
    tabs = "::: code-group\n\n" + "\n\n".join(
        fenced(code, "sh", f" [{name}]") for name, code in zip(TABS, CODE[1:], strict=True)
    ) + "\n\n:::"  # fmt: skip
    site.write("index.md", markdown("::: warning Attention\nNever feed chocolate.\n:::", tabs))
    site.write(
        ".vitepress/config.mjs", "export default { title: 'x', markdown: { lineNumbers: true } }"
    )
    site.run("npx", "vitepress", "build")
    return site.read(".vitepress/dist/index.html")


def build_starlight(site: Site) -> str:
    tabs = "<Tabs>\n" + "\n".join(
        f'<TabItem label="{name}">\n\n{fenced(code, "sh")}\n\n</TabItem>'
        for name, code in zip(TABS, CODE[1:], strict=True)
    ) + "\n</Tabs>"  # fmt: skip
    text = markdown(":::caution[Attention]\nNever feed chocolate.\n:::", tabs)
    imports = "import { Tabs, TabItem } from '@astrojs/starlight/components';"
    text = text.replace("# Llama guide", f"---\ntitle: Llama guide\n---\n\n{imports}", 1)
    site.write("src/content/docs/index.mdx", text)
    site.write(
        "src/content.config.ts",
        "import { defineCollection } from 'astro:content';\n"
        "import { docsLoader } from '@astrojs/starlight/loaders';\n"
        "import { docsSchema } from '@astrojs/starlight/schema';\n"
        "export const collections = { docs: defineCollection({ loader: docsLoader(), "
        "schema: docsSchema() }) };\n",
    )
    site.write(
        "astro.config.mjs",
        "import { defineConfig } from 'astro/config';\n"
        "import starlight from '@astrojs/starlight';\n"
        "export default defineConfig({ integrations: [starlight({ title: 'x', pagefind: false })] "
        "});\n",
    )
    site.run("npx", "astro", "build")
    return site.read("dist/**/index.html")


def build_docusaurus(site: Site) -> str:
    tabs = "<Tabs>\n" + "\n".join(
        f'<TabItem value="{name}">\n\n{fenced(code, "sh")}\n\n</TabItem>'
        for name, code in zip(TABS, CODE[1:], strict=True)
    ) + "\n</Tabs>"  # fmt: skip
    text = markdown(":::warning[Attention]\nNever feed chocolate.\n:::", tabs)
    text = text.replace("```python", "```python showLineNumbers", 1)
    imports = "import Tabs from '@theme/Tabs';\nimport TabItem from '@theme/TabItem';\n\n"
    site.write("docs/index.mdx", "---\nslug: /\n---\n\n" + imports + text)
    site.write(
        "docusaurus.config.js",
        "module.exports = { title: 'x', url: 'https://e.org', baseUrl: '/', presets: [['classic', "
        "{ docs: { routeBasePath: '/' }, blog: false, pages: false, theme: {} }]] };\n",
    )
    site.run("npx", "docusaurus", "build")
    return site.read("build/index.html")


def build_hugo(site: Site) -> str:
    """Hugo has no theme of its own: a layout as small as can be."""
    tabs = "\n\n".join(
        f"**{name}**\n\n{fenced(code, 'sh')}" for name, code in zip(TABS, CODE[1:], strict=True)
    )
    text = markdown("> Attention: Never feed chocolate.", tabs, terms=DEFINITIONS)
    site.write("content/guide.md", f"---\ntitle: x\n---\n\n{text}")
    site.write(
        "layouts/_default/single.html", "<html><body><main>{{ .Content }}</main></body></html>"
    )
    site.write(
        "config.toml",
        "[markup.highlight]\nlineNos = true\nlineNumbersInTable = true\n"
        "[markup.goldmark.renderer]\nunsafe = true\n",
    )
    site.run("hugo", "--quiet")
    return site.read("public/guide/index.html")


def build_doxygen(site: Site) -> str:
    tabs = "\n\n".join(
        f"**{name}**\n\n{fenced(code, '{.sh}')}" for name, code in zip(TABS, CODE[1:], strict=True)
    )
    table = re.sub("</?(?:thead|tbody)>", "", HTML_TABLE)  # which it shows as text
    text = markdown("@attention Never feed chocolate.", tabs, table)
    site.write("guide.md", text.replace("```python", "```{.py}"))
    site.write(
        "Doxyfile",
        "INPUT = guide.md\nUSE_MDFILE_AS_MAINPAGE = guide.md\nQUIET = YES\nGENERATE_LATEX = NO\n"
        "TOC_INCLUDE_HEADINGS = 0\n",
    )
    site.run("doxygen")
    return site.read("html/index.html")


def build_docbook(site: Site) -> str:
    code = [f"<programlisting>{c}</programlisting>" for c in CODE]
    rows = [
        "<entry morerows='1'>net</entry><entry>port</entry><entry>80</entry>",
        "<entry>host</entry><entry>zebra</entry>",
        "<entry>disk</entry><entry>size</entry><entry>7</entry>",
    ]
    table = (
        "<informaltable><tgroup cols='3'><thead><row><entry>Kind</entry><entry>Name</entry>"
        "<entry>Value</entry></row></thead><tbody>"
        + "".join(f"<row>{row}</row>" for row in rows)
        + "</tbody></tgroup></informaltable>"
    )
    body = (
        "<para>Alpacas hum softly.</para><section><title>Install it</title><para>Install the "
        f"package first.</para>{code[0]}<caution><title>Attention</title><para>Never feed "
        "chocolate.</para></caution></section><section><title>Feed it</title><para>Choose your "
        f"system.</para><formalpara><title>Unix</title><para>{code[1]}</para></formalpara>"
        f"<formalpara><title>Windows</title><para>{code[2]}</para></formalpara>"
        "<orderedlist><listitem override='3'><para>third step</para></listitem><listitem><para>"
        "fourth step</para></listitem></orderedlist></section><section><title>Limits</title><para>"
        f"A hoof holds many toes; see the table.</para>{table}</section><section><title>Terms"
        "</title><variablelist><varlistentry><term>Graze</term><listitem><para>eat grass slowly"
        "</para></listitem></varlistentry><varlistentry><term>Herd</term><listitem><para>several "
        "llamas</para></listitem></varlistentry></variablelist></section>"
    )
    site.write("guide.xml", f"<article><title>Llama guide</title>{body}</article>")
    sheet = "/usr/share/xml/docbook/stylesheet/docbook-xsl/html/docbook.xsl"
    site.run("xsltproc", "--nonet", "-o", "guide.html", sheet, "guide.xml")
    return site.read("guide.html")


def build_javadoc(site: Site) -> str:
    code = [f"<pre>{{@code\n{c}}}</pre>" for c in CODE]
    text = (
        "A guide.\n<h2>Llama guide</h2>\nAlpacas hum softly.\n<h2>Install it</h2>\nInstall the "
        f"package first.\n{code[0]}\n"
        "<p>Attention: Never feed chocolate.\n<h2>Feed it</h2>\nChoose your system.\n"
        f"<p>Unix\n{code[1]}\n<p>Windows\n{code[2]}\n<ol start=3><li>third step<li>fourth step"
        f"</ol>\n<h2>Limits</h2>\nA hoof holds many toes; see the table.\n{HTML_TABLE}\n"
        "<h2>Terms</h2>\n<dl><dt>Graze<dd>eat grass slowly<dt>Herd<dd>several llamas</dl>"
    )
    comment = "\n".join(f" * {line}".rstrip() for line in text.split("\n"))
    site.write("llama/package-info.java", f"/**\n{comment}\n */\npackage llama;\n")
    site.write("llama/Guide.java", "package llama;\n/** A guide. */\npublic class Guide {}\n")
    site.run("javadoc", "-quiet", "-Xdoclint:none", "-d", "out", "llama/Guide.java",
             "llama/package-info.java")  # fmt: skip
    return site.read("out/llama/package-summary.html")


def build_rustdoc(site: Site) -> str:
    tabs = "\n\n".join(
        f"**{name}**\n\n{fenced(code, 'sh')}" for name, code in zip(TABS, CODE[1:], strict=True)
    )
    text = markdown("Attention: Never feed chocolate.", tabs)
    site.write("guide.rs", "".join(f"//! {line}".rstrip() + "\n" for line in text.split("\n")))
    site.run("rustdoc", "-o", "out", "guide.rs")
    return site.read("out/guide/index.html")


def build_texinfo(site: Site) -> str:
    code = [f"@example\n{c.replace('{', '@{').replace('}', '@}')}\n@end example" for c in CODE]
    site.write(
        "guide.texi",
        "\\input texinfo\n@settitle x\n@node Top\n@top Llama guide\nAlpacas hum softly.\n"
        f"@node Install it\n@chapter Install it\nInstall the package first.\n\n{code[0]}\n\n"
        "Attention: Never feed chocolate.\n@node Feed it\n@chapter Feed it\nChoose your system.\n\n"
        f"Unix\n{code[1]}\n\nWindows\n{code[2]}\n@enumerate 3\n@item third step\n@item fourth step"
        "\n@end enumerate\n@node Limits\n@chapter Limits\nA hoof holds many toes; see the table.\n"
        "@multitable @columnfractions .3 .3 .3\n@headitem Kind @tab Name @tab Value\n@item net "
        "@tab port @tab 80\n@item net @tab host @tab zebra\n@item disk @tab size @tab 7\n@end "
        "multitable\n@node Terms\n@chapter Terms\n@table @asis\n@item Graze\neat grass slowly\n"
        "@item Herd\nseveral llamas\n@end table\n@bye\n",
    )
    site.run("makeinfo", "--html", "--no-split", "--no-number-sections", "guide.texi")
    return site.read("guide.html")


def build_asciidoctor(site: Site) -> str:
    code = [f"[source,sh]\n----\n{c}\n----" for c in CODE]
    tabs = "\n\n".join(f".{name}\n{c}" for name, c in zip(TABS, code[1:], strict=True))
    site.write(
        "guide.adoc",
        f"= Llama guide\n:sectanchors:\n:source-highlighter: none\n\nAlpacas hum softly.\n\n== "
        f"Install it\n\nInstall the package first.\n\n{code[0]}\n\nCAUTION: Attention. Never feed "
        f"chocolate.\n\n== Feed it\n\nChoose your system.\n\n{tabs}\n\n[start=3]\n. third step\n"
        ". fourth step\n\n== Limits\n\nA hoof holds many toes; see the table.\n\n[%header,cols=3*]"
        "\n|===\n|Kind |Name |Value\n.2+|net |port |80\n|host |zebra\n|disk |size |7\n|===\n\n"
        "== Terms\n\nGraze:: eat grass slowly\nHerd:: several llamas\n",
    )
    site.run("npx", "asciidoctor", "guide.adoc")
    return site.read("guide.html")


def build_typedoc(site: Site) -> str:
    tabs = "\n\n".join(
        f"**{name}**\n\n{fenced(code, 'sh')}" for name, code in zip(TABS, CODE[1:], strict=True)
    )
    site.write("README.md", markdown("> Attention: Never feed chocolate.", tabs))
    site.write("index.ts", "/** A llama. */\nexport const llama = 1;\n")
    site.write("tsconfig.json", '{"files": ["index.ts"]}')
    site.run("npx", "typedoc", "--out", "out", "index.ts")
    return site.read("out/index.html")


GENERATORS: dict[str, Callable[[Site], str]] = {
    "sphinx-furo": build_sphinx("furo"),
    "sphinx-rtd": build_sphinx("sphinx_rtd_theme"),
    "sphinx-pydata": build_sphinx("pydata_sphinx_theme"),
    "mkdocs-material": build_mkdocs,
    "vitepress": build_vitepress,
    "starlight": build_starlight,
    "docusaurus": build_docusaurus,
    "doxygen": build_doxygen,
    "docbook": build_docbook,
    "javadoc": build_javadoc,
    "rustdoc": build_rustdoc,
    "hugo": build_hugo,
    "texinfo": build_texinfo,
    "asciidoctor": build_asciidoctor,
    "typedoc": build_typedoc,
}


def measure(text: str) -> list[float]:
    """Return per cent of headings, lines of code, cells, labels and words that Markdown keeps."""
    lines = [re.sub(r"^(?:> ?| {2,3}(?=\S))+", "", line).rstrip() for line in text.split("\n")]
    titles = [line.lstrip("# ") for line in lines if line.startswith("#")]
    found = re.findall(r"(?ms)^[ >]*(`{3,})[^\n]*\n(.*?)^[ >]*\1", text)
    fences = "\n" + "".join(_without_margin(body) for _, body in found)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    code = [f"\n{block}\n" in fences for block in CODE for _ in block.split("\n")]
    cells = [list(row) in rows or ["", *row[1:]] in rows for row in TABLE for _ in row]
    labels = [_is_above(text, name, code) for name, code in zip(TABS, CODE[1:], strict=True)]
    words = re.findall(r"\w+", text.lower())
    return [
        100 * statistics.fmean(values)
        for values in (
            [heading in titles for heading in HEADINGS],
            code,
            cells,
            labels,
            [word.lower() in words for word in WORDS],
        )
    ]


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
    print("headings / lines of code / cells / labels of tabs / words kept, in per cent")
    for name in sys.argv[2:] or GENERATORS:
        root = work / name
        page = root / "page.html"
        if not page.exists():
            try:
                root.mkdir(parents=True, exist_ok=True)
                page.write_text(GENERATORS[name](Site(work, root)))
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                said = getattr(error, "stderr", b"") or b""
                print(f"{name}: left out, {error}", said.decode()[-600:], file=sys.stderr)
                continue
        html = page.read_text()
        row = [" / ".join(f"{x:.0f}" for x in measure(f(html))) for f in CONVERTERS.values()]
        print(f"| {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
