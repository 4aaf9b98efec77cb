"""An add-on of llm-kb: the manual pages of a project as a topic, and a tool that finds an option.

The pages are the files of `man/` beside `llm-kb.toml`. Everything comes through hooks of
`llm_kb.hookspecs`, each of which is explained there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from llm_kb.config.layers import Key
from llm_kb.errors import KbError
from llm_kb.files.containment import read_regular
from llm_kb.files.fields import read_flag
from llm_kb.files.text_topic import TextTopic
from llm_kb.hookspecs import ToolSet, hookimpl
from llm_kb.knowledge_base.tool_text import ToolText, object_schema, read_arguments, string
from llm_kb.subjects.topics import Kind, TopicConfig

KIND = Kind(ids="man", advice="a file such as man/tool.1 is one")
TOOL = ToolText(
    "man_option",
    "Find what an option does in the manual pages of this project.",
    object_schema(["option"], option=string("The option, such as --force.")),
)


@hookimpl
def kinds():
    """The pages are a topic: in menus, for `learn`, `-k` and every search."""
    return [(KIND, find)]


def find(config, cwd, user_dir) -> Iterator[TextTopic]:
    """Yield the topic, if the workspace has pages."""
    if pages := list_pages(config.workspace):
        topic = TopicConfig(id="man", kind=KIND, title="Manual pages", root=config.workspace)
        yield TextTopic(topic, partial(read_pages, pages))


def list_pages(workspace: Path | None) -> Sequence[Path]:
    return sorted(workspace.glob("man/*.[1-9]")) if workspace else ()


def read_pages(pages: Sequence[Path]) -> dict[str, str]:
    """Return the pages in Markdown, by the names of their subjects."""
    return {page.name: to_markdown(read_regular(page).decode(errors="replace")) for page in pages}


def to_markdown(page: str) -> str:
    """Return a page in Markdown: its sections, and its text without the rest of the markup."""
    page = re.sub(r'^\.SH "?(.*?)"?$', r"\n## \1\n", page, flags=re.MULTILINE)
    page = re.sub(r"^\.(?:B|I|BR) ", "", page, flags=re.MULTILINE)
    return re.sub(r"^[.'].*\n?|\\f.", "", page, flags=re.MULTILINE).replace("\\-", "-")


@hookimpl
def tools():
    """The tool comes with `learn`, in `llm` and over MCP, if the setting says so."""
    return [ToolSet(name=TOOL.name, open=open_tool, is_offered=is_offered)]


def is_offered(kb) -> bool:
    return kb.value("kb.man.offer") and bool(list_pages(kb.config.workspace))


def open_tool(kb):
    def answer(arguments, report) -> str:
        option = read_arguments(TOOL, arguments)["option"]
        for name, text in read_pages(list_pages(kb.config.workspace)).items():
            if (place := text.find(option)) >= 0:
                return f"{name}: {text[place : place + 300]}"
        raise KbError(f"no page has {option!r}")

    return [(TOOL, answer)]


@hookimpl
def settings():
    """A setting that offers a tool acts, so that of a workspace counts once it is trusted."""
    return [("kb.man.offer", Key(read_flag, default=False, acts="offer man_option beside learn"))]
