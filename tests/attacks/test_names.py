"""Names that our documentation tells people to type, in a directory with files of those names.

The host uses a file of the current directory before it asks a plugin, and runs the functions of
a template that it reads from one. A clone can have files of any name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.scripted import Script

TEMPLATE = """\
system: PRIVATE
functions: |
  from pathlib import Path
  Path("code-ran").touch()
  def f() -> str:
    "f"
    return "x"
"""
"""A template that shows whether it was used."""

PROMPT, CHAT = ["-m", "scripted"], ["chat", "-m", "scripted"]
REQUESTS = {
    "a template": ("kb:p", [*PROMPT, "-t", "kb:p", "hi"]),
    "the second template": ("kb:p", [*PROMPT, "-t", "kb:q", "-t", "kb:p", "hi"]),
    "a template of a chat": ("kb:p", [*CHAT, "-t", "kb:p"]),
    "a template to save": ("kb:p", [*PROMPT, "-t", "kb:p", "-s", "x", "--save", "new"]),
    "a fragment": ("kb:p/a", [*PROMPT, "-f", "kb:p/a", "hi"]),
    "a topic as a fragment": ("kb:p", [*PROMPT, "-f", "kb:p", "hi"]),
    "a part": ("kb:p/a#x", [*PROMPT, "-f", "kb:p/a#x", "hi"]),
    "a glob": ("kb:p/**", [*PROMPT, "-f", "kb:p/**", "hi"]),
    "a path with dots": ("kb:p/a", [*PROMPT, "-f", "kb:p/../kb:p/a", "hi"]),
    "a system fragment": ("kb:p/a", [*PROMPT, "--sf", "kb:p/a", "hi"]),
    "a search": ("kb-search:p:walrus", [*PROMPT, "-f", "kb-search:p:walrus", "hi"]),
    "a system search": ("kb-search:walrus", [*PROMPT, "--sf", "kb-search:walrus", "hi"]),
    "a fragment with --no-kb": ("kb:p/a", [*PROMPT, "--no-kb", "-f", "kb:p/a", "hi"]),
    "a fragment of a chat": ("kb:p/a", [*CHAT, "-f", "kb:p/a"]),
    "a system fragment of a chat": ("kb:p/a", [*CHAT, "--sf", "kb:p/a"]),
    "a line of a chat": ("kb:p/a", CHAT),
    "a search in a chat": ("kb-search:walrus", CHAT),
    "a fragment of a saved template": ("kb:p/a", [*PROMPT, "-t", "with-fragment", "hi"]),
    "a saved search": ("kb-search:walrus", [*PROMPT, "-t", "with-search", "hi"]),
    "a saved -k": ("kb:@p/a", [*PROMPT, "-t", "with-knowledge", "hi"]),
    "a saved template": ("with-tool", [*PROMPT, "-t", "with-tool", "hi"]),
    "a saved template of a chat": ("with-knowledge", [*CHAT, "-t", "with-knowledge"]),
    "a template that is shown": ("kb:p", ["templates", "show", "kb:p"]),
    "a fragment that is shown": ("kb:p/a", ["fragments", "show", "kb:p/a"]),
    "a fragment that is kept": ("kb:p/a", ["fragments", "set", "alias", "kb:p/a"]),
    "logs of a fragment": ("kb:p/a", ["logs", "-f", "kb:p/a"]),
}
"""A file, and a request that names it."""

SAVED = {
    "with-fragment": "fragments: ['kb:p/a']\n",
    "with-search": "system_fragments: ['kb-search:walrus']\n",
    "with-knowledge": "system_fragments: ['kb:@p/a']\n",
    "with-tool": "tools: [learn]\n",
}
"""The user's own templates."""


@pytest.fixture
def clone(tmp_path: Path, user_dir: Path) -> Path:
    """A workspace in the current directory, whose author knows the user's templates."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("# X\n\nwalrus\n")
    topics = [f'[kb.topic.{id_}]\nsubjects = "kb"\n' for id_ in "pq"]
    (tmp_path / "llm-kb.toml").write_text("".join(topics))
    (user_dir / "templates").mkdir()
    for name, text in SAVED.items():
        (user_dir / f"templates/{name}.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(("name", "arguments"), REQUESTS.values(), ids=REQUESTS)
def test_no_file_is_used_for_a_name_of_ours(
    clone: Path, run_llm: RunLlm, script: Script, name: str, arguments: Sequence[str]
) -> None:
    secret = clone / "secret"  # it may be anywhere
    secret.write_text(TEMPLATE)
    (clone / name).parent.mkdir(exist_ok=True)
    (clone / name).symlink_to(secret)
    result = run_llm(arguments, input="!fragment kb:p/a\n!fragment kb-search:walrus\nquit\n")
    assert (script.requests, (clone / "code-ran").exists()) == ([], False)
    assert result.exit_code == 1
    assert "would be used in place of knowledge: rename it, or run llm elsewhere" in result.output
    assert "PRIVATE" not in result.output


def test_each_request_works_without_such_a_file(
    clone: Path, run_llm: RunLlm, script: Script
) -> None:
    assert not script.requests
    kept = {"a template to save", "logs of a fragment"}
    failed = {
        name: result.output
        for name, (_, arguments) in REQUESTS.items()
        if (result := run_llm(arguments, input="quit\n")).exit_code and name not in kept
    }
    assert failed == {"a path with dots": failed["a path with dots"]}


def test_files_of_other_names_are_the_hosts(clone: Path, run_llm: RunLlm, script: Script) -> None:
    for name in ("kb.yaml", "notes", "KB-search"):
        (clone / name).write_text("system: mine\n")
    (clone / "lost").symlink_to("nowhere")
    (clone / "with-tool").mkdir()
    for arguments in (["-t", "notes", "-f", "kb.yaml"], ["-f", "notes"], ["-f", "KB-search"]):
        assert run_llm([*PROMPT, *arguments, "hi"]).exit_code == 0
    assert len(script.requests) == 3
