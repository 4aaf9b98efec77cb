"""Every topic there is, configured, fetched, captured or shipped, with its catalog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llm_kb.capture.catalog import repo_knowledge
from llm_kb.directory import DirectoryCatalog
from llm_kb.references.catalog import reference_catalogs
from llm_kb.topics import Catalog, Config, Topic

SHIPPED = Topic(
    id="llm-kb",
    title="Using llm-kb",
    introduction="How to gather references and to capture what a repository teaches.",
    root=Path(__file__).parent / "skills",
)
"""The subjects that come with the package, for models that gather or capture knowledge."""


def open_catalogs(
    config: Config, cwd: Path | None, user_dir: Path, *, shipped: Topic | None = None
) -> list[tuple[Topic, Catalog]]:
    """Pair every topic with its catalog, in the order of the menu.

    Configured topics come first, as written; an id they use is theirs. `shipped`
    comes last.
    """
    pairs: list[tuple[Topic, Catalog]] = [
        (topic, DirectoryCatalog(topic)) for topic in config.topics
    ]
    captured = repo_knowledge(cwd) if cwd else None
    if captured:
        pairs.append(captured)
    pairs += reference_catalogs(config, user_dir)
    if shipped:
        pairs.append((shipped, DirectoryCatalog(shipped)))
    adjustments = {topic.id: topic for topic in config.adjustments}
    first: dict[str, tuple[Topic, Catalog]] = {}
    for topic, catalog in pairs:
        first.setdefault(topic.id, (_adjust(topic, adjustments.get(topic.id)), catalog))
    return list(first.values())


def _adjust(topic: Topic, adjustment: Topic | None) -> Topic:
    """Return a topic with what the configuration says of it, where it says something."""
    if adjustment is None:
        return topic
    return replace(
        topic,
        title=adjustment.title or topic.title,
        introduction=adjustment.introduction or topic.introduction,
        description=adjustment.description or topic.description,
        enable=adjustment.enable,
        learned=adjustment.learned,
    )
