"""Any call of a tool is answered, or refused with a short KbError."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from llm_kb.capture.emission import EMIT_SCHEMA, parse_emission
from llm_kb.config.settings import Config
from llm_kb.errors import KbError
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.tool_text import ToolText, read_arguments
from llm_kb.references.calls import ALL
from llm_kb.subjects.topics import TopicConfig
from tests.console import SAMPLE
from tests.memory import make_topics

MAX_ERROR = 20_000

Answer = Callable[[Mapping[str, Any]], object]


def fuzz(data: bytes) -> None:
    """Take the first byte for the tool and the rest, in turn, for names and values."""
    tools = _tools()
    names, answer = tools[data[0] % len(tools)] if data else tools[0]
    arguments = {}
    for number, piece in enumerate(data[1:].split(b"\n")):
        text = piece.decode("utf-8", "surrogateescape")
        name = text if number % 8 == 7 else names[len(text) % len(names)]
        arguments[name] = _read_value(text, number)
    refusal = ""
    try:
        answer(arguments)
    except KbError as error:
        refusal = str(error)
    assert len(refusal) <= MAX_ERROR, "an error too long to be read"


def _read_value(text: str, number: int) -> object:
    """Return what a model may have meant by a text: JSON, a list, or the text itself."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return [text, text[::-1]] if number % 3 == 2 else text


@cache
def _tools() -> list[tuple[list[str], Answer]]:
    """Return the names of each tool's arguments, and what answers a call."""
    topic = TopicConfig(id="project", title="Project", root=SAMPLE / "project")
    kb = KnowledgeBase(Config(), make_topics((topic, DirectoryTopic(topic))))
    return [
        (["topic", "subjects"], lambda arguments: kb.answer_call(**arguments)),
        ([*EMIT_SCHEMA["properties"]], parse_emission),
        *((list(text.schema["properties"]), _check(text)) for text in ALL),
    ]


def _check(text: ToolText) -> Answer:
    return lambda arguments: read_arguments(text, arguments)
