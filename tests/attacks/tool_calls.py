"""The slowest calls of each tool found so far, each limited to two seconds of processor time.

    python -m tests.attacks.tool_calls    runs them where the workspace is the current directory

Prints a JSON object: for each call what ended it, and how long its answer was.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
from collections.abc import Callable, Iterator
from typing import Any

from llm_kb import addons
from llm_kb.errors import KbError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.references.toolbox import make_references
from tests.cost import measure_pace

SECONDS = 2

DEEP: Any = []
for _ in range(500):
    DEEP = [DEEP]

LONG = "word " * 200_000
MANY = [f"word{number}" for number in range(100_000)]

SOURCE = {"type": "web", "url": "https://example.org/"}

# Tool and arguments.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "learn: a topic of 1 MB": ("learn", {"topic": LONG}),
    "learn: a path for a topic": ("learn", {"topic": "a/" * 500_000}),
    "learn: a topic with a subject of 1 MB": ("learn", {"topic": "p/" + "a/" * 500_000}),
    "learn: 100,000 subjects": ("learn", {"topic": "p", "subjects": MANY}),
    "learn: 50 globs": ("learn", {"topic": "p", "subjects": [f"**/*{n}*" for n in range(50)]}),
    "learn: 50 globs of another topic": (
        "learn",
        {"topic": "p", "subjects": [f"p/**/*{n}*" for n in range(50)]},
    ),
    "learn: 50 names that are near": (
        "learn",
        {"topic": "p", "subjects": [f"d1/some-subject-00{n}x" for n in range(50)]},
    ),
    "learn: everything": ("learn", {"topic": "p", "subjects": "**"}),
    "learn: a list of 1 MB as JSON": (
        "learn",
        {"topic": "p", "subjects": '["' + '","'.join(MANY) + '"]'},
    ),
    "learn: open brackets": ("learn", {"topic": "p", "subjects": '["' + "[" * 1_000_000}),
    "learn: nested": ("learn", {"topic": "p", "subjects": DEEP}),
    "learn: 100,000 other arguments": ("learn", {"topic": "p", **dict.fromkeys(MANY, 1)}),
    "learn: parts": ("learn", {"topic": "p", "subjects": [f"long#{n}" for n in range(50)]}),
    "learn: hashes": ("learn", {"topic": "p", "subjects": "long" + "#a" * 4_000}),
    "search: 200,000 words": ("search_knowledge", {"question": LONG}),
    "search: as many different words": ("search_knowledge", {"question": " ".join(MANY)}),
    "search: one word of 1 MB": ("search_knowledge", {"question": "x" * 1_000_000}),
    "search: quotes and operators": (
        "search_knowledge",
        {"question": '" OR NEAR( * ^ AND NOT ' * 20_000},
    ),
    "search: all passages": ("search_knowledge", {"question": "subject", "limit": 10**18}),
    "search: of a topic of 1 MB": ("search_knowledge", {"question": "x", "topic": LONG}),
    "references: 200,000 words": ("reference_search", {"question": LONG}),
    "references: as many different words": ("reference_search", {"question": " ".join(MANY)}),
    "references: of a topic of 1 MB": ("reference_search", {"question": "x", "topic": LONG}),
    "topics: 200,000 words": ("reference_topic_search", {"query": LONG}),
    "topics: as many different words": ("reference_topic_search", {"query": " ".join(MANY)}),
    "list": ("reference_topic_list", {"include_obsolete": True}),
    "update: a body of 1 MB": (
        "reference_topic_update",
        {"topic_id": "topic-many", "body": LONG},
    ),
    "update: 100,000 tags": ("reference_topic_update", {"topic_id": "topic-many", "tags": MANY}),
    "update: a topic of 1 MB": ("reference_topic_update", {"topic_id": LONG, "body": "b"}),
    "create: 100,000 sources": (
        "reference_topic_create",
        {"title": "T", "body": "b", "sources": [{**SOURCE, "depth": -1}] * 100_000},
    ),
    "create: a title of 1 MB": (
        "reference_topic_create",
        {"title": LONG, "body": "b", "sources": [{"type": "web", "url": "x:"}]},
    ),
    "create: a URL of 1 MB": (
        "reference_topic_create",
        {"title": "T", "body": "b", "sources": [{"type": "web", "url": "https://" + LONG}]},
    ),
    "create: 100,000 paths": (
        "reference_topic_create",
        {
            "title": "T",
            "body": "b",
            "sources": [{"type": "git", "url": "https://e.org/x?", "paths": ["..", *MANY]}],
        },
    ),
    "create: nested": (
        "reference_topic_create",
        {"title": "T", "body": "b", "sources": [{**SOURCE, "url": DEEP}]},
    ),
    "emit: a rule of 1 MB": ("emit_knowledge", {"entry_type": "convention", "rule": LONG}),
    "emit: 100,000 arguments": (
        "emit_knowledge",
        {"entry_type": "convention", **dict.fromkeys(MANY, "x")},
    ),
    "emit: a scope of 1 MB": (
        "emit_knowledge",
        {"entry_type": "convention", "rule": "r", "scope": "a/" * 500_000},
    ),
}


def find_tools() -> dict[str, Callable[..., Any]]:
    """Return what answers a call of each tool, as it is in a request."""
    kb = KnowledgeBase.discover(tools={"References"})
    tools = [
        kb.learn_tool(),
        kb.search_tool(),
        *kb.added_tools(addons.find_tools()),
        *make_references().tools(),
    ]
    return {
        str(tool.name): tool.implementation
        for tool in tools
        if not isinstance(tool, type) and tool.implementation
    }


def answer(call: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Return what a model is answered, an error included."""
    try:
        found = call(**arguments)
    except KbError as error:
        return f"Error: {error}"
    return found if isinstance(found, str) else json.dumps(found)


def run_limited(call: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Answer a call in a child that is killed after two seconds of processor time.

    On a slower or busier machine it is given proportionally longer, as in `tests.cost`.
    """
    seconds = math.ceil(SECONDS * max(1.0, measure_pace()))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        text = answer(call, arguments)
        os.write(write, json.dumps({"length": len(text), "start": text[:300]}).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        result = json.loads(pipe.read() or "{}")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended = signal.Signals(-status).name if status < 0 else status
    return {"ended": ended, **result}


def run_all() -> Iterator[tuple[str, dict[str, Any]]]:
    """Run each call of the table."""
    tools = find_tools()
    answer(tools["search_knowledge"], {"question": "subject"})  # makes the index
    for name, (tool, arguments) in CALLS.items():
        yield name, run_limited(tools[tool], arguments)


if __name__ == "__main__":
    print(json.dumps(dict(run_all())))
