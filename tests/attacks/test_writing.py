"""Commands that write, in a clone whose links lead out of it: nothing outside is changed."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import llm_kb
from llm_kb.capture.commits import Journal
from llm_kb.files.atomic import (
    OutsideWriteError,
    WriteError,
    append_below,
    create_below,
    make_directory_below,
    replace_below,
)
from llm_kb.files.repository import Repository
from tests.conftest import RunLlm

CONFIG = '[kb.topic.p]\nsubjects = "kb"\n'

COMMANDS: dict[str, tuple[str, Sequence[str]]] = {
    "a topic": ("llm-kb.toml", ["add", "q", "kb"]),
    "a topic that goes": ("llm-kb.toml", ["remove", "p", "-y"]),
    "a pre-loaded subject": ("llm-kb.toml", ["preload", "p/a"]),
    "a disabled subject": ("llm-kb.toml", ["disable", "p/a"]),
    "a new subject": ("kb/n.md", ["new", "p/n"]),
    "a new subject below": ("kb/d/n.md", ["new", "p/d/n"]),
    "a subject": ("kb/b.md", ["edit", "p/b", "-y"]),
    "the first topic": ("kb", ["init"]),
    "the first configuration": ("llm-kb.toml", ["init"]),
    "captured entries": ("AGENTS.md", ["knowledge", "export", "--to", "AGENTS.md"]),
    "captured entries below": ("docs/x.md", ["knowledge", "export", "--to", "docs/x.md"]),
    "the rule for agents": ("AGENTS.md", ["connect", "agents", "-y"]),
    "the skill for agents": (
        ".agents/skills/project-knowledge/SKILL.md",
        ["connect", "agents", "-y"],
    ),
    **{
        f"the server for {client}": (file, ["connect", client, "--mcp", "-y"])
        for client, file in {
            "claude": ".mcp.json",
            "cursor": ".cursor/mcp.json",
            "gemini": ".gemini/settings.json",
            "opencode": "opencode.json",
            "qwen": ".qwen/settings.json",
            "vscode": ".vscode/mcp.json",
        }.items()
    },
}
"""A file that a command writes, and the command."""

WAYS = ("a link to a file", "a link to nothing", "a linked directory")
CASES = {
    f"{case}: {way}": (name, arguments, way)
    for case, (name, arguments) in COMMANDS.items()
    for way in WAYS
    if "/" in name or way != "a linked directory"
}


def _place_links(file: Path, outside: Path, way: str) -> None:
    """Make a file of the workspace lead outside."""
    target = outside / file.name
    if way == "a link to a file":
        text = (
            CONFIG if file.suffix == ".toml" else "{}" if file.suffix == ".json" else "# theirs\n"
        )
        target.write_text(text)
    if way == "a linked directory":
        if file.parent.is_dir():
            file.parent.rename(outside / "moved")
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        file.parent.symlink_to(outside)
        return
    if file.name == "kb":
        target.unlink(missing_ok=True)
        target.mkdir()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.symlink_to(target)


def _snapshot(directory: Path) -> dict[str, bytes]:
    """Return the content of every file, and the name of every directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else b""
        for path in directory.rglob("*")
    }


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A clone in the current directory, with a topic of two subjects."""
    (tmp_path / ".git").mkdir()
    for name in ("HEAD", "config"):
        (tmp_path / ".git" / name).touch()
    (tmp_path / "kb").mkdir()
    for name in "ab":
        (tmp_path / f"kb/{name}.md").write_text(f"# {name}\n")
    (tmp_path / "llm-kb.toml").write_text(CONFIG)
    return tmp_path


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_command_writes_through_a_link_of_a_clone(
    workspace: Path, run_llm: RunLlm, case: tuple[str, Sequence[str], str]
) -> None:
    name, arguments, way = case
    if arguments[0] == "init":
        (workspace / "llm-kb.toml").unlink()
    if name == "kb":
        for file in (workspace / "kb").iterdir():
            file.unlink()
        (workspace / "kb").rmdir()
    outside = workspace.parent / "outside"
    outside.mkdir()
    _place_links(workspace / name, outside, way)
    before = _snapshot(outside)

    result = run_llm(["kb", *arguments], input="text\n")

    assert _snapshot(outside) == before, result.output
    assert "Traceback" not in result.output


def test_links_within_a_directory_stay_links_and_are_followed(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/real.md").write_text("old")
    (tmp_path / "link.md").symlink_to("docs/real.md")
    (tmp_path / "d").symlink_to("docs")
    replace_below(tmp_path, "link.md", b"one")
    assert ((tmp_path / "link.md").is_symlink(), (tmp_path / "docs/real.md").read_bytes()) == (
        True,
        b"one",
    )
    replace_below(tmp_path, "d/real.md", b"two")
    append_below(tmp_path, "d/real.md", b" three")
    replace_below(tmp_path, tmp_path / "new/below.md", b"four")
    make_directory_below(tmp_path, "d/e/f")
    assert _snapshot(tmp_path) == {
        **dict.fromkeys(("d", "docs", "docs/e", "docs/e/f", "new"), b""),
        "link.md": b"two three",
        "docs/real.md": b"two three",
        "new/below.md": b"four",
    }


Write = Callable[[Path, str], object]

WRITERS: dict[str, Write] = {
    "append": lambda root, path: append_below(root, path, b"x"),
    "create": lambda root, path: create_below(root, path, b"x"),
    "directory": make_directory_below,
    "replace": lambda root, path: replace_below(root, path, b"x"),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("path", ["up/x", "up/x/y", "chain/x"])
def test_no_writer_leaves_its_directory(tmp_path: Path, write: Write, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "up").symlink_to("..")
    (root / "chain").symlink_to("up")
    with pytest.raises(OutsideWriteError, match="outside the directory that may be changed"):
        write(root, path)
    assert list(tmp_path.iterdir()) == [root]


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/tmp/llm-kb-x", "", "."])
def test_no_path_leaves_its_directory(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(OutsideWriteError):
        replace_below(root, path, b"x")
    assert list(tmp_path.iterdir()) == [root]


def test_a_link_swapped_in_between_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory was inside when its path was resolved, and leads outside when it is opened."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "d").mkdir(parents=True)
    outside.mkdir()
    resolve = os.path.realpath

    def swap(path: str | os.PathLike[str]) -> str:
        real = resolve(path)
        if real == str(root / "d/x"):
            (root / "d").rmdir()
            (root / "d").symlink_to(outside)
        return real

    monkeypatch.setattr(os.path, "realpath", swap)
    with pytest.raises(OutsideWriteError):
        replace_below(root, "d/x", b"x")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["llm-kb", "llm-kb/captured"])
def test_the_git_directory_of_an_archive_leads_nowhere(tmp_path: Path, name: str) -> None:
    git, outside = tmp_path / "root/.git", tmp_path / "profile"
    (git / name).parent.mkdir(parents=True)
    if name == "llm-kb":
        outside.mkdir()
    else:
        outside.write_text("theirs\n")
    (git / name).symlink_to(outside)
    with pytest.raises(WriteError):
        Journal(Repository(root=git.parent, git_dir=git, common_dir=git)).append("aaa")
    assert outside.is_dir() or outside.read_text() == "theirs\n"
    assert _snapshot(outside if outside.is_dir() else git / "none") == {}


WRITING = frozenset(
    {
        *("write_text", "write_bytes", "mkdir", "makedirs", "touch", "rename", "symlink_to"),
        *("hardlink_to", "symlink", "link", "copyfile", "copytree", "move"),
        *("replace_file", "rmtree"),
    }
)

OWN = {
    "capture/sync.py": ["open", "write_bytes"],  # a repository in a temporary directory
    "proposals/review.py": ["write_bytes"],  # a temporary file for the user's editor
    "config/changes.py": ["replace_file"],  # the user's own kb.toml
    "config/trust.py": ["replace_file"],  # the user's own record of trust
    "files/atomic.py": [
        "link",
        "mkdir",
        "mkdir",
        "rename",
    ],  # the functions that everything else uses
    "files/conversion.py": ["mkdir", "replace_file"],  # a cache in the user's directory
    "files/git.py": ["symlink_to"],  # a temporary directory
    "terminal/screen.py": ["open"],  # the user's terminal
    "proposals/inbox.py": ["replace_file"],  # what waits, in the user's directory
    "references/library.py": ["mkdir", "rename", "rmtree", "rmtree", "rmtree"],
    "references/topic/staging.py": ["link", "mkdir", "mkdir", "open"],
    "references/topic/topic_directory.py": ["open"],  # all four: the user's library
    "upkeep/agent_files.py": ["replace_file"],  # a client's file in the home directory
    "search/index/database.py": ["mkdir"],  # the index in the user's directory
}
"""All that writes without the functions that stay below a directory."""


def _find_writers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
        opens = name == "open" and any(set(str(mode)) & set("wax+") for mode in modes[-1:])
        # `replace` of a text has two arguments, and that of a record is not a method.
        is_method = isinstance(function, ast.Attribute)
        replaces = name == "replace" and is_method and len(node.args) == 1 and not node.keywords
        if name in WRITING or opens or replaces:
            yield name


def test_everything_that_writes_stays_below_a_directory_or_is_the_users_own() -> None:
    package = Path(llm_kb.__file__).parent
    found = {
        path.relative_to(package).as_posix(): sorted(_find_writers(ast.parse(path.read_text())))
        for path in package.rglob("*.py")
    }
    assert {path: names for path, names in found.items() if names} == OWN
