"""Describes the settings of a workspace that need trust."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from llm_kb.config.layers import LayerConfig, topic_key
from llm_kb.config.report import render_plain
from llm_kb.errors import show_place
from llm_kb.subjects.topics import Config, Layer


def render_request(
    place: str, workspace: LayerConfig, below: LayerConfig, withheld: Sequence[str]
) -> str:
    """Render the settings of a workspace layer that need trust, with their effects."""
    lines = [f"{show_place(place)} asks for:", ""]
    for key in withheld:
        lines.append(f"  {key} = {render_plain(workspace.settings[key].value)}")
        lines.append(f"      {_meaning(key, below)}")
    topics = list(_iter_topics(workspace)) if "kb.auto" in withheld else []
    if topics:
        lines += ["", "Its topics:", "", *topics]
    return "\n".join(lines)


def render_withheld(config: Config) -> str:
    """Return the line about the skipped settings of an untrusted workspace."""
    return render_skipped(
        config.workspace_file, config.withheld, has_lost_trust=config.has_lost_trust
    )


def render_skipped(place: Path | None, keys: Sequence[str], *, has_lost_trust: bool = False) -> str:
    """Return the line about skipped settings, with the command that trusts them."""
    reason = "has changed since you trusted it" if has_lost_trust else "is not trusted"
    return (
        f"skipped from {show_place(place)}: {', '.join(keys)}. This"
        f" workspace {reason}: look at it with 'llm kb config', then run 'llm kb trust'."
    )


def render_replaced(config: Config) -> str | None:
    """Return the line about the user's topics whose directory the workspace replaces."""
    replaced = [
        topic.id
        for topic in config.topics
        if {Layer.USER, Layer.WORKSPACE}
        <= {origin.layer for origin in config.origins[topic_key(topic.id, "subjects")]}
    ]
    if not replaced:
        return None
    return (
        f"{', '.join(replaced)}: here with the subjects of {show_place(config.workspace_file)}, "
        "not your own"
    )


def _meaning(key: str, below: LayerConfig) -> str:
    if key == "kb.auto":
        return "send its section, and offer learn, on every prompt and chat here"
    if key == "kb.capture.offer":
        return "offer emit_knowledge, which writes to this repository's notes, beside learn"
    directory = below.settings[f"{key.rpartition('.')[0]}.subjects"].value
    return f"change what a model sees of your own topic in {render_plain(directory)}"


def _iter_topics(workspace: LayerConfig) -> Iterator[str]:
    for id_ in workspace.topics:
        directory = workspace.settings.get(topic_key(id_, "subjects"))
        if directory is None:
            continue
        found = workspace.settings.get(topic_key(id_, "learned"))
        learned = found.value if found else None
        patterns = f" (pre-loads {render_plain(learned)})" if learned else ""
        yield f"  {id_}: {render_plain(directory.value)}{patterns}"
