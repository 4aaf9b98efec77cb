"""The `kb:` and `kb-search:` fragments, and the `kb:` templates."""

from __future__ import annotations

import llm

from llm_kb.api import KnowledgeBase
from llm_kb.config.fragments import split_knowledge
from llm_kb.host.request import SECTION, current_request
from llm_kb.rendering.passages import render_passages


def load_fragments(reference: str) -> list[llm.Fragment]:
    """Return one fragment a subject, with the source `kb:topic/slug`."""
    request = current_request()
    if request is not None and request.is_muted:
        return []
    if reference.startswith("@"):
        return _load_section(reference)
    kb = KnowledgeBase.discover(knowledge=[reference])
    topic, pattern = split_knowledge(reference)
    found = kb.select(topic, pattern)
    return [
        llm.Fragment(presented.text, f"kb:{topic}/{presented.name}")
        for presented in kb.present(kb.find_topic(topic), found)
    ]


def load_passages(reference: str) -> llm.Fragment:
    """Return the passages of `TOPIC:QUESTION`, or `:QUESTION` for all topics, as a fragment."""
    request = current_request()
    if request is not None and request.is_muted:
        return llm.Fragment("", f"kb-search:{reference}")
    topic, colon, question = reference.partition(":")
    if not colon:
        raise ValueError(
            "a search is kb-search:TOPIC:QUESTION, or kb-search::QUESTION for all topics"
        )
    found = KnowledgeBase.discover().find_passages(question, [topic] if topic else [])
    return llm.Fragment(render_passages(found), f"kb-search:{reference}")


def load_template(reference: str) -> llm.Template:
    """Return a template that offers `learn` and the section of one topic."""
    request = current_request()
    kb = KnowledgeBase.discover()
    topic = kb.find_topic(reference).topic
    # Two of these templates in one request would name the tool twice.
    names_tool = request is None or request.is_first_template()
    return llm.Template(
        name=f"kb:{reference}",
        tools=["learn"] if names_tool else None,
        system_fragments=[f"{SECTION}{topic.id}"],
    )


def _load_section(reference: str) -> list[llm.Fragment]:
    """Return the section: the request's, or outside one that of the reference alone."""
    request = current_request()
    spec = reference.removeprefix("@")
    if request is not None and not spec:
        return [llm.Fragment(text, source) for text, source in request.take_texts()]
    if request is not None and spec in request.specs:
        return []  # the request's one section has taken it up
    kb = KnowledgeBase.discover(
        knowledge=[spec] if "/" in spec else [],
        only=[spec] if spec and "/" not in spec else [],
    )
    section = kb.section(learn="/" not in spec)
    return [llm.Fragment(section, f"kb:{reference}")] if section else []
