"""Sphinx: the documentation site, built by `make site`."""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path

import llm_kb

project = "llm-kb"
author = "The llm-kb authors"
copyright = "the llm-kb authors"  # noqa: A001 - Sphinx's name for it
version = release = llm_kb.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["examples"]
html_theme = "furo"
html_title = f"llm-kb {version}"
html_favicon = "favicon.svg"
html_static_path = ["_static"]
html_css_files = ["pictures.css"]
html_theme_options = {
    "source_repository": "https://github.com/llm-kb/llm-kb/",
    "source_branch": "main",
    "source_directory": "docs/",
}
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["misc.highlighting_failure"]  # of shell transcripts
copybutton_prompt_text = "$ "  # of a transcript only the commands are copied,
copybutton_only_copy_prompt_lines = True  # not what they print
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
autodoc_typehints = "description"
add_module_names = False
default_role = "code"

_COG = re.compile(r"(?ms)^<!-- \[\[\[cog\n.*?\]\]\] -->\n|^<!-- \[\[\[end\]\]\] -->\n")
_DIRECTIVE = re.compile(r"(?ms)^(```+|:::+)\{(?:eval-rst|toctree)\}.*?^\1\n")
_INCLUDE = re.compile(r"(?m)^```\{include\} (\S+)")
_METHOD = re.compile(r"(?m)^ *\.\. automethod:: (\w+)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_MARKUP = re.compile(r"\[([^\]]+)\]\([^)]*\)|\*\*|`")


def write_for_models(app, error) -> None:
    """Write each page as Markdown beside it, and `llms.txt` with a sentence about each.

    The copies are complete for a reader of text: no code that generates parts of a page, no
    directives of Sphinx (signatures are written out) and the text of a picture in its place.
    """
    if error or app.builder.name != "html":
        return
    here, target = Path(app.srcdir), Path(app.outdir)
    lines = [f"# {project}", "", "> Knowledge in plain files for the `llm` CLI.", ""]
    pages = app.env.collect_relations()  # in the order of the table of contents
    for name in pages:
        text = make_copy(here / f"{name}.md")
        (target / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
        (target / f"{name}.md").write_text(text, encoding="utf-8")
        title = app.env.titles[name].astext()
        lines.append(f"- [{title}]({name}.md): {find_first_sentence(text)}")
    (target / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for picture in here.glob("*.svg"):
        shutil.copyfile(picture, target / picture.name)


def make_copy(page: Path) -> str:
    """Return the Markdown of a page as a model should read it."""
    text = page.read_text(encoding="utf-8")
    if included := _INCLUDE.search(text):
        return (page.parent / included[1]).read_text(encoding="utf-8")
    signatures = "\n".join(map(describe_method, _METHOD.findall(text)))
    text = _DIRECTIVE.sub("", _COG.sub("", text)) + signatures
    return _PICTURE.sub(r"(Picture: \1)", text)


def describe_method(name: str) -> str:
    """Return a public method as a section with its signature and docstring."""
    method = getattr(llm_kb.KnowledgeBase, name)
    signature = str(inspect.signature(method)).replace("'", "")
    return f"### `KnowledgeBase.{name}{signature}`\n\n{inspect.getdoc(method)}\n"


def find_first_sentence(text: str) -> str:
    """Return the first sentence below a page's title, without markup."""
    for paragraph in re.split(r"\n\s*\n", text):
        plain = " ".join(_MARKUP.sub(r"\1", paragraph).split())
        if plain and not plain.startswith(("#", "(Picture", "```", "|", "- ", "<!--")):
            plain = plain.removeprefix("Question. ")  # of a decision
            return re.split(r"(?<=[.!?])\s", plain)[0]
    return ""


def setup(app) -> None:
    """Connect what is ours; Sphinx calls this."""
    app.connect("build-finished", write_for_models)
