"""The example of the first design, with a repository and a site of our own in place of Dioxus'.

A model finds nothing, proposes too much, proposes less, searches and reads; later ones find it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.references.remotes import Remote
from tests.references.sites import serve_site
from tests.scripted import Script

HOOKS = "# Hooks\n\nA component calls `use_signal` once; `use_drop` runs when it is removed.\n"

FILES = {
    "README.md": "# Dioxus\n\nFullstack apps in Rust.\n",
    "docs/hooks.md": HOOKS,
    "examples/counter.rs": "fn app() -> Element {\n    let count = use_signal(|| 0);\n}\n",
    "packages/core/src/arena.rs": "pub struct ElementId(pub usize);\n",
}

TITLE = "Dioxus - Rust UI Framework"


@pytest.mark.slow
@pytest.mark.usefixtures("trusting")
def test_a_model_gathers_a_reference_once_and_every_conversation_has_it(
    run_llm: RunLlm, script: Script, tmp_path: Path
) -> None:
    def ask(prompt: str) -> tuple[str, ...]:
        """Ask the model; return the answers that its calls got."""
        before = len(script.requests)
        args = ["-m", "scripted", "-T", "References", "-T", "learn", "--cl", "9", prompt]
        assert run_llm(args).exit_code == 0
        return tuple(output for each in script.requests[before:] for output in each.outputs)

    def operate(*args: str) -> str:
        """Run a command as the operator; return what it prints."""
        result = run_llm(["kb", *args])
        assert result.exit_code == 0, result.output
        return result.stdout + result.stderr

    with serve_site() as site:
        remote = Remote(tmp_path / "remotes" / "dioxus", FILES)
        page = site.put("/learn/0.6/", "<h1>Learn</h1><p>RSX is the syntax of Dioxus.</p>")
        sources = [{"type": "git", "url": remote.url, "ref": "main"}, {"type": "web", "url": page}]
        less = [{**sources[0], "paths": ["README.md", "docs/", "examples/"]}, sources[1]]
        fields = {
            "title": TITLE,
            "body": "Dioxus is a portable framework for building user interfaces in Rust.",
            "tags": ["rust", "ui"],
            "max_age_days": 30,
            "trust_score": 8,
        }

        script.call("reference_topic_search", query="Rust UI framework dioxus")
        script.call("learn", topic="llm-kb", subjects=["reference-researcher"])
        script.call("reference_topic_create", sources=sources, **fields)
        nothing, skill, waits = ask("Write a counter in Dioxus")
        assert "Available Reference Topics" not in script.requests[0].system
        assert (nothing, "narrow it" in skill) == ("[]", True)
        (plan,) = json.loads(operate("review", "--json"))
        assert f"llm kb review --yes {plan['id']}" in waits
        assert site.requests == []
        assert "Rejected" in operate("review", "--no", plan["id"])

        script.call("reference_topic_create", sources=less, **fields)
        (waits,) = ask("The whole repository is too much")
        (plan,) = json.loads(operate("review", "--json"))
        assert "4 pages" in operate("review", "--yes", plan["id"])
        site.answers.clear()  # from here on, nothing is fetched

    script.call("reference_topic_create", sources=less, **fields)
    script.call("reference_search", topic="dioxus", question="component lifecycle hooks")
    script.call("learn", topic="topic-dioxus-rust-ui-framework", subjects=["docs/hooks.md"])
    created, found, read = ask("Go on")
    assert json.loads(created) == {
        "topic_id": "topic-dioxus-rust-ui-framework",
        "file_count": 4,
        "chunk_count": 4,
    }
    first = json.loads(found)["results"][0]
    assert (first["file"], first["text"].strip()) == ("docs/hooks.md", HOOKS.strip())
    assert HOOKS.strip() in read
    assert f"dioxus-rust-ui-framework (**{TITLE}**)" in script.last.system

    script.call("reference_topic_search", query="React-like GUI in Rust")
    (known,) = ask("Another conversation")
    assert [each["topic_id"] for each in json.loads(known)] == ["topic-dioxus-rust-ui-framework"]
