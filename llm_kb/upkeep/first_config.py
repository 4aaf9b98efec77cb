"""Renders a first configuration for a workspace or for the user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import wrap

from llm_kb.subjects.topics import Layout
from llm_kb.upkeep.first_topics import Proposal

_WIDTH = 100


def render_workspace(proposals: Sequence[Proposal]) -> str:
    """Return a workspace's first configuration, with comments on other settings."""
    tables = "\n".join(map(_render_proposal, proposals))
    return _WORKSPACE_HEAD + (tables or _EXAMPLE)


def render_user() -> str:
    """Return the user's first configuration, which has only comments."""
    return _USER


def list_fields(proposal: Proposal) -> dict[str, str | list[str]]:
    """Return the keys of a topic with their values, without those that are not needed."""
    fields: dict[str, str | list[str]] = {
        "title": proposal.title,
        "introduction": proposal.introduction,
        "subjects": proposal.subjects,
        "description": proposal.description,
        "ignore": list(proposal.ignore),
        "layout": "" if proposal.layout is Layout.FILES else proposal.layout.value,
    }
    return {name: value for name, value in fields.items() if value}


def _render_proposal(proposal: Proposal) -> str:
    lines = [f"{key} = {_render_value(key, value)}" for key, value in list_fields(proposal).items()]
    return "\n".join([f"[kb.topic.{proposal.id}]", *lines, ""])


def _render_value(key: str, value: str | list[str]) -> str:
    """Return a string, a list on one line, or a long list in lines that fit the width."""
    if isinstance(value, str):
        return _quote(value)
    items = [_quote(item) for item in value]
    whole = f"[{', '.join(items)}]"
    if len(f"{key} = {whole}") <= _WIDTH:
        return whole
    text = ", ".join(item.replace(" ", "\0") for item in items)
    filled = wrap(text, _WIDTH - 5, break_on_hyphens=False, break_long_words=False)
    lines = (f"    {line.rstrip(',')},".replace("\0", " ") for line in filled)
    return "\n".join(["[", *lines, "]"])


def _quote(text: str) -> str:
    """Return a string in TOML; it is the one in JSON, with codes for unprintable characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in quoted)


_WORKSPACE_HEAD = """\
# The knowledge that models can learn in this directory and below it.
#
#   llm kb list                      what there is
#   llm kb prompt                    what a model sees
#   llm -T learn "your question"     let it read what it needs

[kb]
# menu = "subjects"        # list every subject with a summary, not the topics alone
# menu_budget = 1200       # tokens the menu may take
# auto = true              # as if every prompt had -T learn; counts after `llm kb trust`

# A topic is a directory of text files. More about one:
#   description = "Shown when it is listed, and above what is pre-loaded of it."
#   learned = ["code-quality", "maintainers/*"]     # in every section that is sent
#   disabled = ["drafts/**"]                        # never shown to a model
#   ignore = ["*.log"]                              # no subjects, as in .gitignore

"""

_EXAMPLE = """\
# [kb.topic.project]
# title = "General Project Knowledge"
# introduction = "How this project is built, and by whom."
# subjects = "kb/project"
"""

_USER = """\
# Your own settings and topics, for every directory. A workspace's llm-kb.toml adds
# to them.

[kb]
# auto = true                      # as if every prompt had -T learn
# menu = "subjects"                # list every subject with a summary
# allow_links_to = ["~/shared"]    # links in topics may lead there

# [kb.topic.notes]
# title = "My Notes"
# introduction = "What I want to remember across projects."
# subjects = "~/notes"             # anywhere; a relative one is beside this file

# [kb.references]
# allow_hosts = ["wiki.corp"]      # private addresses that may be fetched from
# allow_protocols = ["file"]       # git over file:// URLs
# max_files = 50_000               # per fetch
# max_bytes = 500_000_000
"""
