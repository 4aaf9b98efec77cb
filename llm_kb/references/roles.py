"""What a file is good for, by its source's word or its own name: docs rank above code. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from llm_kb.references.provenance import Provenance
from llm_kb.references.search import Hit
from llm_kb.references.sources import CrawlSource, Role, WebSource
from llm_kb.references.topic_file import TopicFile

DOCS_WEIGHT = 1.02
"""What a hit in documentation counts: it passes code that is one place better.

Chosen by bench/roles.py: more takes from questions about code far more than it gives
to others, as what BM25 and its reranking put above documentation mostly answers.
"""

_DOCS = frozenset(
    {"adoc", "asciidoc", "htm", "html", "markdown", "md", "mdx", "org", "qmd", "rst", "tex", "txt"}
)


def infer_role(path: str) -> Role:
    """Tell documentation from code by the name of a file."""
    name = path.rpartition("/")[2].lower()
    stem, dot, extension = name.rpartition(".")
    is_named = (stem or name) in {"readme", "changelog", "contributing", "license"}
    return Role.DOCS if (dot and extension in _DOCS) or is_named else Role.CODE


def find_role(path: str, topic: TopicFile, provenance: Provenance) -> Role:
    """Return the role of a fetched file: its source's, where that has one."""
    record = provenance.files.get(path)
    source = topic.sources[record.source] if record and record.source < len(topic.sources) else None
    if source and source.role:
        return source.role
    return Role.DOCS if isinstance(source, WebSource | CrawlSource) else infer_role(path)


def rank_by_role(hits: Sequence[Hit], role_of: Callable[[Hit], Role]) -> list[Hit]:
    """Weigh hits by their roles, best first; their scores stay at most 1."""
    weighed = [
        replace(hit, score=round(hit.score * weight / DOCS_WEIGHT, 4))
        for hit in hits
        if (weight := DOCS_WEIGHT if role_of(hit) is Role.DOCS else 1.0)
    ]
    return sorted(weighed, key=lambda hit: -hit.score)
