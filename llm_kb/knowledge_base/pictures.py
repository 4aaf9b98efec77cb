"""Pictures among the subjects: never listed, and attached to an answer if their name is given."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from llm_kb.errors import UnreadableError
from llm_kb.files.directory_topic import START_BYTES
from llm_kb.knowledge_base.open_topic import OpenTopic
from llm_kb.rendering.plain_text import count
from llm_kb.rendering.presentation import Picture, Presented, present_notice
from llm_kb.subjects.topics import Subject
from llm_kb.texts.decoding import is_binary
from llm_kb.texts.pictures import find_media_type


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRules:
    """Which pictures an answer may have."""

    takes: Callable[[str], bool] = lambda _: False
    """Tells whether the model, or the client, takes a media type."""
    most: int = 4
    most_bytes: int = 3_000_000
    attached: int = 0
    """The number of pictures that the answer has already."""

    def after(self, pictures: Collection[object]) -> PictureRules:
        """Return the rules once these pictures were attached."""
        return replace(self, attached=self.attached + len(pictures))


NO_PICTURES = PictureRules()
"""For text alone."""


def present_picture(opened: OpenTopic, subject: Subject, rules: PictureRules) -> Presented | None:
    """Return a picture with its note: attached, or skipped and why; None for anything else."""
    try:
        start = opened.topic.read(subject, START_BYTES)
        if not is_binary(start.data) or not find_media_type(start.data):
            return None
        content = opened.topic.read(subject, rules.most_bytes)
    except UnreadableError:
        return None
    media_type = find_media_type(content.data)
    size = count(content.size, "byte")
    if not media_type:
        return None
    if content.size > len(content.data):
        reason = f"pictures of over {rules.most_bytes:,} bytes are not attached"
    elif not rules.takes(media_type):
        reason = f"{media_type} is not taken here"
    elif rules.attached >= rules.most:
        reason = f"{rules.most} pictures are attached already; load it with another call"
    else:
        picture = Picture(media_type, content.data)
        noted = present_notice(subject, f"{media_type}, {size}, attached")
        return noted._replace(picture=picture)
    return present_notice(subject, f"binary file, {size}, skipped: {reason}")
