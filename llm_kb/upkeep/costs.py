"""Estimates the tokens of a section by topic, and of sending all subjects instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_kb.errors import UnreadableError
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.rendering.menu import Menu
from llm_kb.rendering.presentation import Presented, present, present_unreadable
from llm_kb.rendering.section import render_section
from llm_kb.rendering.tokens import estimate_tokens
from llm_kb.subjects.topics import SNIFFED_BYTES, Catalog, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCost:
    """The tokens of a topic's pre-loaded subjects by slug, and of all its listed ones together."""

    id: str
    preloaded: Mapping[str, int]
    inlined: int

    @property
    def tokens(self) -> int:
        """The estimated tokens of the pre-loaded subjects together."""
        return sum(self.preloaded.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The estimated tokens of the whole section, its menu, and its topics."""

    section: int
    menu: int
    topics: tuple[TopicCost, ...]

    @property
    def inlined(self) -> int:
        """The tokens of a section with every listed subject of every topic, and no menu."""
        texts = sum(topic.tokens for topic in self.topics)
        tags = self.section - self.menu - texts
        return tags + sum(topic.inlined for topic in self.topics)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as `llm kb prompt --json` prints them."""
        return {
            "section": self.section,
            "menu": self.menu,
            "inlined": self.inlined,
            "topics": [
                {
                    "id": topic.id,
                    "tokens": topic.tokens,
                    "inlined": topic.inlined,
                    "subjects": [{"slug": s, "tokens": n} for s, n in topic.preloaded.items()],
                }
                for topic in self.topics
            ],
        }


def count_costs(kb: OpenTopics, *, learn: bool) -> Costs:
    """Return the estimated costs of a request; of subjects not sent only the start is read."""
    menu = kb.menu() if learn else Menu()
    preloaded = kb.preloaded
    sent = {topic.id: subjects for topic, subjects in preloaded}
    return Costs(
        section=estimate_tokens(render_section(preloaded, menu) or ""),
        menu=menu.tokens,
        topics=tuple(
            _count_topic(opened, sent.get(opened.topic.id, ()))
            for opened in kb.active
            if opened.topic.in_menu or opened.learned.subjects
        ),
    )


def _count_topic(opened: OpenTopic, sent: Sequence[Presented]) -> TopicCost:
    preloaded = {presented.name: estimate_tokens(presented.text) for presented in sent}
    left = sum(_estimate_length(opened.catalog, subject) for subject in opened.left)
    inlined = estimate_tokens(left) + sum(preloaded.values())
    return TopicCost(id=opened.topic.id, preloaded=preloaded, inlined=inlined)


def _estimate_length(catalog: Catalog, subject: Subject) -> int:
    """Return the estimated characters of a subject; exact for a short one.

    A longer one is assumed to have as many bytes per character as its start.
    """
    try:
        start = present(subject, catalog.read(subject, SNIFFED_BYTES))
    except UnreadableError as error:
        start = present_unreadable(subject, error)
    body = len(start.body) * start.size // max(start.shown, 1)
    return len(start.head) + body + len(start.tail)


def render_costs(costs: Costs) -> str:
    """Return a table that fits 80 columns; all figures are estimates."""
    rows = list(_iter_rows(costs))
    width = max([len(name) for name, _, _ in rows] + [7])
    lines = [f"{'':{width}}  {'sent':>9}  {'all of it':>9}   (estimated tokens)"]
    for name, sent, inlined in rows:
        all_of_it = f"{inlined:>9,}" if inlined is not None else ""
        lines.append(f"{name:{width}}  {sent:>9,}  {all_of_it}".rstrip())
    lines.append(f"{'total':{width}}  {costs.section:>9,}  {costs.inlined:>9,}")
    if costs.menu and costs.inlined < costs.section:
        lines.append("All of it costs less than the menu of it: pre-load it with -k, or `learned`.")
    return "\n".join(lines)


def _iter_rows(costs: Costs) -> Iterator[tuple[str, int, int | None]]:
    if costs.menu:
        yield "menu", costs.menu, None
    for topic in costs.topics:
        yield topic.id, topic.tokens, topic.inlined
        for slug, tokens in topic.preloaded.items():
            yield f"  {slug}", tokens, None
