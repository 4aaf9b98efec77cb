"""Run the test suite of `llm` itself, once without this plugin and once with it.

    python tests/run_llm_suite.py [--with REQUIREMENT] PATH-TO-LLM-CHECKOUT [PYTEST-ARGUMENT…]

The checkout is copied and installed, with what its tests need and this project, into
an environment that is thrown away. `LLM_LOAD_PLUGINS` makes `llm` load this plugin
even under its own tests. Every test must end as it does without, but for a few that list
whatever is registered and expect nothing: exit code 1 when another does not, and the list.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parent.parent

NOT_FOR_TESTS = ("black", "build", "furo", "mypy", "myst", "ruff", "sphinx", "types-")
"""How the names of development tools begin that no test of `llm` imports."""

LISTS_EVERYTHING = {
    "tests.test_plugins::test_plugins_command",
    "tests.test_plugins::test_register_fragment_loaders",
    "tests.test_plugins::test_register_template_loaders",
    "tests.test_plugins::test_register_toolbox",
    "tests.test_plugins::test_register_tools",
}
"""Tests that compare a whole list of plugins, loaders or tools, and so fail with any plugin."""


def main() -> int:
    """Compare the two runs; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="directory of a checkout of llm")
    parser.add_argument(
        "--with",
        dest="requirements",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="also install this, such as openai<3 for a checkout older than that release",
    )
    parser.add_argument("pytest_arguments", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if not (arguments.checkout / "tests" / "conftest.py").is_file():
        parser.error(f"{str(arguments.checkout)!r} holds no tests/conftest.py of llm")
    with tempfile.TemporaryDirectory(prefix="llm-suite-") as scratch:
        copy = Path(scratch) / "llm"
        ignored = shutil.ignore_patterns(".git", ".venv", "*.egg-info")
        shutil.copytree(arguments.checkout, copy, ignore=ignored)
        python = make_environment(Path(scratch) / "venv", copy, arguments.requirements)
        return compare(Path(scratch), python, copy, arguments.pytest_arguments)


def compare(scratch: Path, python: Path, copy: Path, pytest_arguments: Sequence[str]) -> int:
    """Run the suite both ways and print how the outcomes differ."""
    without = run_suite(python, copy, "", scratch / "without.xml", pytest_arguments)
    with_us = run_suite(python, copy, "llm-kb", scratch / "with.xml", pytest_arguments)
    differences = find_differences(without, with_us)
    print(f"without llm-kb: {summarize(without)}")
    print(f"with llm-kb:    {summarize(with_us)}")
    for name, difference in differences.items():
        print(f"{'as expected' if name in LISTS_EVERYTHING else 'differs'}: {difference}")
    if not without:
        print("no test ran; see the output above")
    return 1 if differences.keys() - LISTS_EVERYTHING or not without else 0


def make_environment(directory: Path, checkout: Path, requirements: Sequence[str]) -> Path:
    """Install the checkout, what its tests need, and this project; return its Python."""
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    group = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [
        requirement
        for requirement in group["dependency-groups"]["dev"]
        if isinstance(requirement, str) and not requirement.startswith(NOT_FOR_TESTS)
    ]
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*install, "--editable", str(checkout), *needed, *requirements, str(PROJECT)], check=True
    )
    return python


def run_suite(
    python: Path, checkout: Path, plugins: str, report: Path, pytest_arguments: Sequence[str]
) -> Mapping[str, str]:
    """Run pytest with these plugins of `llm` loaded; return test id to outcome."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("LLM_")},
        "LLM_LOAD_PLUGINS": plugins,
        "LLM_USER_PATH": str(report.with_suffix("")),
        "OPENAI_API_KEY": "",
    }
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    subprocess.run(
        [*command, *(pytest_arguments or ["tests"])], cwd=checkout, env=environment, check=False
    )
    return read_report(report)


def read_report(report: Path) -> Mapping[str, str]:
    """Return test id to outcome from a JUnit file; empty when pytest wrote none."""
    if not report.exists():
        return {}
    outcomes = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = sorted({child.tag for child in case} & {"failure", "error", "skipped"})
        name = f"{case.get('classname')}::{case.get('name')}"
        outcomes[name] = " and ".join(kinds) or "passed"
    return outcomes


def find_differences(without: Mapping[str, str], with_us: Mapping[str, str]) -> dict[str, str]:
    """Return what to say of each test that ended differently or ran in one run alone."""
    return {
        name: f"{name}: {without.get(name, 'not run')} without, {with_us.get(name, 'not run')} with"
        for name in sorted(without.keys() | with_us.keys())
        if without.get(name) != with_us.get(name)
    }


def summarize(outcomes: Mapping[str, str]) -> str:
    """Return how many tests ended in each way."""
    counts = {kind: list(outcomes.values()).count(kind) for kind in sorted(set(outcomes.values()))}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing ran"


if __name__ == "__main__":
    sys.exit(main())
