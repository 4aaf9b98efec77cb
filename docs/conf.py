"""Sphinx: the documentation site, built by `make site`."""

from __future__ import annotations

import shutil
from pathlib import Path

import llm_kb

project = "llm-kb"
author = "The llm-kb authors"
copyright = "the llm-kb authors"  # noqa: A001 - Sphinx's name for it
version = release = llm_kb.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["examples"]
html_theme = "furo"
html_title = "llm-kb"
html_theme_options = {
    "source_repository": "https://github.com/llm-kb/llm-kb/",
    "source_branch": "main",
    "source_directory": "docs/",
}
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["misc.highlighting_failure"]  # of shell transcripts
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
autodoc_typehints = "description"
add_module_names = False
default_role = "code"


def write_for_models(app, error) -> None:
    """Write each page as Markdown beside it, and `llms.txt` with a line for each."""
    if error or app.builder.name != "html":
        return
    here, target = Path(app.srcdir), Path(app.outdir)
    lines = [f"# {project}", "", "> Knowledge in plain files for the `llm` CLI.", ""]
    pages = app.env.collect_relations()  # in the order of the table of contents
    for name in pages:
        source = here / f"{name}.md"
        (target / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target / f"{name}.md")
        lines.append(f"- [{app.env.titles[name].astext()}]({name}.md)")
    (target / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app) -> None:
    """Connect what is ours; Sphinx calls this."""
    app.connect("build-finished", write_for_models)
