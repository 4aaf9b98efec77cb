"""Subjects as resources, as a client requests them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from llm_kb.mcp import resources
from tests.mcp_client import talk

CONFIG = """
[kb.topic.project]
subjects = "project"
disabled = ["secret"]

[kb.topic.skills]
subjects = "skills"
layout = "skills"

[kb.topic.more]
subjects = "more"
layout = "skills"
"""

SKILL = (
    "---\nname: {name}\ndescription: Fill in {name} forms. Use when asked.\n---\nSee FORMS.md.\n"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Subjects of every kind, two skills of one name, and one with a file of its own."""
    files = {
        "project/review.md": "# How we review\n\nTwo eyes.\n",
        "project/a b/größe.md": "# Size\n",
        "project/.notes.md": "Hidden.\n",
        "project/secret.md": "Secret.\n",
        "skills/pdf/SKILL.md": SKILL.format(name="pdf"),
        "skills/pdf/FORMS.md": "# Forms\n",
        "more/pdf/SKILL.md": SKILL.format(name="other pdf"),
        "llm-kb.toml": CONFIG,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_resources_are_the_listed_subjects_with_their_summaries(workspace: Path) -> None:
    async def conversation(client: Client) -> Any:
        return (await client.list_resources()).resources

    listed = talk(conversation, workspace)
    assert [(r.uri, r.name, r.description) for r in listed] == [
        ("kb://project/a%20b/gr%C3%B6%C3%9Fe", "project/a b/größe", "Size"),
        ("kb://project/review", "project/review", "How we review"),
        ("kb://skills/pdf", "skills/pdf", "Fill in pdf forms. Use when asked."),
        ("kb://more/pdf", "more/pdf", "Fill in other pdf forms. Use when asked."),
    ]


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("kb://project/review", "# How we review\n\nTwo eyes.\n"),
        ("kb://PROJECT/review.md", "# How we review\n\nTwo eyes.\n"),
        ("kb://project/a%20b/gr%C3%B6%C3%9Fe", "# Size\n"),
        ("kb://project/notes", "Hidden.\n"),
        ("kb://skills/pdf/FORMS", "# Forms\n"),
    ],
)
def test_a_resource_is_read_by_its_address(workspace: Path, uri: str, text: str) -> None:
    async def conversation(client: Client) -> Any:
        return (await client.read_resource(uri)).contents

    (content,) = talk(conversation, workspace)
    assert (content.uri, content.mime_type, content.text) == (uri, "text/markdown", text)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("plain.txt", "text/plain", "1\n"),
        ("LICENSE", "text/plain", "1\n"),
        ("code.py", "text/markdown", "```python\n1\n```"),
        ("page.rst", "text/markdown", "```rst\n1\n```"),
    ],
)
def test_the_type_of_a_resource_is_that_of_the_text_it_is_read_as(
    workspace: Path, name: str, kind: str, text: str
) -> None:
    (workspace / "project" / name).write_text("1\n")
    uri = f"kb://project/{name}"

    async def conversation(client: Client) -> Any:
        listed = (await client.list_resources()).resources
        return listed, (await client.read_resource(uri)).contents

    listed, (content,) = talk(conversation, workspace)
    assert [r.mime_type for r in listed if r.name == f"project/{Path(name).stem}"] == [kind]
    assert (content.mime_type, content.text) == (kind, text)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("kb://project/secret", "no subject of topic 'project' matches 'secret'"),
        ("kb://project/reviews", "no subject of topic 'project' matches 'reviews'; did you mean"),
        ("kb://project/../llm-kb.toml", "no subject of topic 'project' matches"),
        ("kb://project/%2e%2e/llm-kb.toml", "no subject of topic 'project' matches"),
        ("kb://project/**", "no subject of topic 'project' matches '**'"),
        ("kb://nope/review", "unknown topic 'nope'"),
        ("kb://project", "'kb://project' is not the address of a subject"),
        ("file:///etc/passwd", "'file:///etc/passwd' is not the address of a subject"),
    ],
)
def test_no_other_address_is_read(workspace: Path, uri: str, message: str) -> None:
    async def conversation(client: Client) -> Any:
        with pytest.raises(MCPError) as raised:
            await client.read_resource(uri)
        return raised.value

    error = talk(conversation, workspace)
    assert error.code == types.INVALID_PARAMS
    assert error.message.startswith(message)


def test_so_many_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MOST_OFFERED", 5)
    for topic in "ab":
        (tmp_path / topic).mkdir()
        for number in range(3):
            (tmp_path / topic / f"s{number}.md").touch()
    (tmp_path / "llm-kb.toml").write_text('[kb.topic]\na.subjects = "a"\nb.subjects = "b"\n')

    async def conversation(client: Client) -> Any:
        return [resource.name for resource in (await client.list_resources()).resources]

    assert talk(conversation, tmp_path) == ["a/s0", "a/s1", "a/s2", "b/s0", "b/s1"]


def test_the_template_has_the_addresses(workspace: Path) -> None:
    async def conversation(client: Client) -> Any:
        (template,) = (await client.list_resource_templates()).resource_templates
        return template.uri_template

    assert talk(conversation, workspace) == "kb://{topic}/{+slug}"
