"""Plans that a client's model makes wait for the approval of the user."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.references.calls import current_library
from llm_kb.references.plan import PendingPlans
from tests.mcp_client import call
from tests.references.remotes import Remote

pytestmark = pytest.mark.usefixtures("trusting")


def serve(directory: Path) -> partial[KnowledgeBase]:
    """Return what finds the knowledge base of a server with the tools of references."""
    return partial(KnowledgeBase.discover, directory, tools=["References"])


def fields(remote: Remote) -> dict[str, Any]:
    """Return the arguments of a call of `reference_topic_create`."""
    source = {"type": "git", "url": remote.url, "ref": "main"}
    return {"title": "Frob", "body": "Frobnicates widgets.", "sources": [source]}


def test_a_plan_waits_and_once_approved_the_same_call_carries_it_out(
    remote: Remote, tmp_path: Path
) -> None:
    answer, is_error = call(
        tmp_path, "reference_topic_create", fields(remote), added=["References"]
    )
    (plan,) = PendingPlans(current_library()).read_all()[0]
    assert is_error
    assert f"llm kb review --yes {plan.id}" in answer
    assert "Tell the user so, go on without it, and do not try again" in answer
    assert current_library().topics()[0] == []
    PendingPlans(current_library()).approve(plan.id)
    answer, is_error = call(
        tmp_path, "reference_topic_create", fields(remote), added=["References"]
    )
    created = {"topic_id": "topic-frob", "file_count": 1, "chunk_count": 1}
    assert (json.loads(answer), is_error) == (created, False)
