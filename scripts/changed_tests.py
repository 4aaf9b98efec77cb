"""Run the tests of the rooms that differ from a revision: `changed_tests.py main`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent


def main() -> int:
    """Run pytest on what was changed since the revision that is named; return its status."""
    tests = sorted({test for path in find_changed(sys.argv[1]) for test in find_tests(path)})
    if not tests:
        sys.stdout.write("no test belongs to what was changed\n")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", "auto", *tests]
    return subprocess.run(command, cwd=PROJECT, check=False).returncode


def find_changed(revision: str) -> list[str]:
    """Return the paths that differ from where this branch left `revision`, new files included."""
    return [
        *_git("diff", "--name-only", "--diff-filter=d", "--merge-base", revision),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]


def find_tests(path: str) -> list[str]:
    """Return a changed test itself, or for a module the tests of its room."""
    parts = Path(path).parts
    if parts[0] == "tests":
        return [path] if parts[-1].startswith("test_") and path.endswith(".py") else []
    if parts[0] == "llm_kb":
        room = Path("tests", *parts[1:2])
        return ["tests/test_architecture.py", *([str(room)] if (PROJECT / room).is_dir() else [])]
    if parts[0] == "sample_kb":
        return ["tests/test_sample_kb.py"]
    if path in {"README.md", "CHANGELOG.md"} or parts[0] == "docs":
        return ["tests/test_docs.py", "tests/test_configuration_docs.py"]
    return []


def _git(*arguments: str) -> list[str]:
    command = ["git", "-C", str(PROJECT), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
