"""Proposals through an MCP client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp.client import Client

from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.proposals.tool import open_inbox
from tests.conftest import RunLlm
from tests.host.mcp.test_calls import write_topic
from tests.mcp_client import call, talk

OFFER = "[kb.topic.t]\nproposals = true\n"
GIVEN = {"topic": "t", "subject": "b", "reason": "r", "new": "# B\n"}


def list_tools(workspace: Path) -> dict[str, Any]:
    async def conversation(client: Client) -> Any:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    found: dict[str, Any] = talk(conversation, workspace)
    return found


def test_what_a_client_proposes_waits(tmp_path: Path, user_dir: Path, run_llm: RunLlm) -> None:
    (user_dir / "kb.toml").write_text(OFFER)
    workspace = write_topic(tmp_path, {"a.md": "# A\n"})
    assert not list_tools(workspace)["propose_subject"].annotations.read_only_hint
    answer, is_error = call(workspace, "propose_subject", GIVEN)
    assert not is_error
    (proposal,) = open_inbox(KnowledgeBase.discover(workspace)).read_all()
    assert answer.startswith(f"proposed {proposal.id}: the new subject t/b. It waits")
    assert [path.name for path in (workspace / "kb").iterdir()] == ["a.md"]
    assert run_llm(["kb", "review", "--yes", proposal.id]).exit_code == 0
    assert (workspace / "kb/b.md").read_text() == "# B\n"


def test_a_workspace_offers_it_once_it_is_trusted(tmp_path: Path, run_llm: RunLlm) -> None:
    workspace = write_topic(tmp_path, {"a.md": "# A\n"})
    file = workspace / "llm-kb.toml"
    file.write_text(file.read_text().replace("[kb.topic.t]\n", OFFER))
    assert "propose_subject" not in list_tools(workspace)
    answer, is_error = call(workspace, "propose_subject", GIVEN)
    assert (is_error, "unknown tool" in answer) == (True, True)
    run_llm(["kb", "trust", "-y"])
    assert "propose_subject" in list_tools(workspace)
