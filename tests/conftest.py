"""Isolation for every test, and the real `llm` to run commands in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import hypothesis
import pytest
import sqlite_utils
from click.testing import CliRunner, Result

# Fixtures and hooks of conftest, kept in modules of their own.
from tests.golden_files import golden as golden
from tests.golden_files import pytest_addoption as pytest_addoption
from tests.isolation import (
    environment,
    guard_home,
    isolated_environment,
    make_home,
    writes_to_home,
)
from tests.references.unreadable import read_only as read_only
from tests.references.unreadable import shut as shut

# `llm` decides at import which plugins it loads. Naming this one loads it through its
# real entry point, and keeps out whatever else the developer has installed.
os.environ["LLM_LOAD_PLUGINS"] = "llm-kb"

import llm.cli
from llm.migrations import migrate
from llm.plugins import pm

from llm_kb.texts.formats import has_package
from tests.scripted import Script, ScriptedModels

sys.addaudithook(guard_home)

# How fast an example runs says something about the machine, not about the code.
_SLOW_MACHINE = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("quick", _SLOW_MACHINE, max_examples=10)
hypothesis.settings.register_profile("normal", _SLOW_MACHINE, max_examples=25)
hypothesis.settings.register_profile("thorough", _SLOW_MACHINE, max_examples=200)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


class RunLlm(Protocol):
    """Runs `llm` in this process."""

    def __call__(self, args: Sequence[str], input: str | None = None) -> Result:
        """Run `llm ARGS…`, with `input` as its standard input."""


class RunLlmProcess(Protocol):
    """Runs the installed `llm` executable."""

    def __call__(
        self, args: Sequence[str], input: str | None = None, *, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `llm ARGS…` in a process of its own and return what it printed."""


@pytest.fixture(scope="session")
def session_directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The directory for those of all tests."""
    return str(tmp_path_factory.getbasetemp())


@pytest.fixture
def own_directory(session_directory: str) -> Iterator[Path]:
    """A directory for one test, and gone after it: pytest's own take time for each that is left."""
    with tempfile.TemporaryDirectory(
        dir=session_directory, ignore_cleanup_errors=True
    ) as directory:
        yield Path(directory)


@pytest.fixture
def tmp_path(own_directory: Path) -> Path:
    """An empty directory to work in."""
    path = own_directory / "work"
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def home(own_directory: Path, tmp_path: Path) -> Iterator[Path]:
    """An empty home with a git identity, and an empty directory to work in."""
    directory = own_directory / "home"
    make_home(directory)
    started_in = Path.cwd()
    os.chdir(tmp_path)
    writes_to_home.clear()
    with environment(isolated_environment(directory, os.environ)):
        yield directory
    os.chdir(started_in)
    assert writes_to_home == []


@pytest.fixture
def user_dir(home: Path) -> Path:
    """The user directory of `llm`, where the user layer's `kb.toml` goes."""
    return home / "llm"


@pytest.fixture
def without_documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installation without the extra `documents`."""
    for name in ("pypdf", "mammoth"):
        monkeypatch.setitem(sys.modules, name, None)
    has_package.cache_clear()
    yield
    has_package.cache_clear()


@pytest.fixture
def script() -> Iterator[Script]:
    """What the model `scripted` says next, and what it was sent.

    A test fails when its script was not played to the end.
    """
    script = Script()
    plugin = ScriptedModels(script)
    pm.register(plugin, name="scripted-models")
    yield script
    pm.unregister(plugin)
    assert script.turns == []


@pytest.fixture(scope="session")
def empty_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log as `llm` makes it. That takes longer than most tests: dozens of migrations."""
    path = tmp_path_factory.mktemp("log") / "logs.db"
    database = sqlite_utils.Database(path)
    migrate(database)
    database.close()
    return path


@pytest.fixture
def run_llm(user_dir: Path, empty_log: Path) -> RunLlm:
    """Run `llm` in this process, with this plugin loaded."""

    def run(args: Sequence[str], input: str | None = None) -> Result:
        if args[:1] != ["kb"] and not (user_dir / "logs.db").exists():
            shutil.copyfile(empty_log, user_dir / "logs.db")
        return CliRunner().invoke(llm.cli.cli, list(args), input=input)

    return run


@pytest.fixture
def run_llm_process() -> RunLlmProcess:
    """Run the installed `llm`, which finds this plugin by itself."""

    def run(
        args: Sequence[str], input: str | None = None, *, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("llm")), *args],
            input=input if input is not None else "",
            cwd=cwd,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run
