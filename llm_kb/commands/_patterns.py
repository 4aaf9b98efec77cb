"""What `llm kb learned` and `llm kb disable` have in common."""

from __future__ import annotations

from collections.abc import Sequence

from llm_kb.commands._config import say
from llm_kb.commands._editing import edit_file, file_of_topic
from llm_kb.config_changes import extend_patterns, reduce_patterns
from llm_kb.patterns import parse_pattern


def edit_patterns(topic: str, name: str, patterns: Sequence[str], *, remove: bool) -> None:
    """Add patterns to a list of a topic, or take them out. Raises KbError."""
    wanted = [parse_pattern(pattern).text for pattern in patterns]
    file = file_of_topic(topic)
    decide = reduce_patterns if remove else extend_patterns
    edit_file(file, lambda document: decide(document, topic, name, wanted))
    key = f"kb.topic.{topic}.{name}"
    now = file.layer.settings[key].value
    held = ", ".join(now) if isinstance(now, tuple) and now else "nothing"
    say(f"{key} in {file.path} now holds: {held}")
