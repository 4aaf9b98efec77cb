"""How many files of the package a question and a `learn` go through, warm, in a small project."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import pytest

import llm_kb
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.scripted import Script

PACKAGE = Path(llm_kb.__file__).parent

NOT_COUNTED = {"hookspecs.py", "addons.py", "addon.py"}

MOST_FILES = {"search": 38, "learn": 31}
"""The most files that each enters; lowered with each step, at last to 30 and 25."""

PROJECT = {
    "llm-kb.toml": '[kb.topic.docs]\nsubjects = "docs"\nintroduction = "How to deploy."\n',
    "docs/proxy.md": "# Proxy\n\nSet the proxy in the settings.\n",
    "docs/deploy.md": "# Deploy\n\nPush to main.\n",
}


def trace(run: Callable[[], object]) -> dict[str, set[str]]:
    """Return the functions that a run enters by their file; bodies of modules and classes aside."""
    entered: defaultdict[str, set[str]] = defaultdict(set)
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or code in seen:
            return
        seen.add(code)
        path = Path(code.co_filename)
        # A body of a class or a module has no local variables of its own.
        is_function = bool(code.co_flags & 0x02)
        if is_function and path.is_relative_to(PACKAGE) and path.name not in NOT_COUNTED:
            entered[path.relative_to(PACKAGE).as_posix()].add(code.co_name)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return dict(entered)


@pytest.fixture
def runs(run_llm: RunLlm, script: Script, tmp_path: Path) -> dict[str, Callable[[], object]]:
    """The commands that are traced, by the name of their limit."""
    write_files(tmp_path, PROJECT)
    time.sleep(0.1)  # a file that was written just now is read again by the next search

    def search() -> None:
        result = run_llm(["kb", "search", "proxy"])
        assert (result.exit_code, "Set the proxy" in result.output) == (0, True)

    def learn() -> None:
        script.call("learn", topic="docs", subjects=["proxy"]).say("Done.")
        result = run_llm(["-m", "scripted", "-T", "learn", "How?"])
        assert (result.exit_code, script.last.outputs) == (0, (PROJECT["docs/proxy.md"],))

    return {"search": search, "learn": learn}


@pytest.mark.parametrize("name", MOST_FILES)
def test_what_is_asked_goes_through_few_files(
    name: str, runs: dict[str, Callable[[], object]]
) -> None:
    runs[name]()
    entered = trace(runs[name])
    assert len(entered) <= MOST_FILES[name], "\n".join(sorted(entered))
