"""Capture decides in modules that touch nothing outside."""

from __future__ import annotations

import subprocess
import sys

PURE = (
    "emission",
    "entries",
    "rendering",
)

OUTSIDE = ("click", "llm", "llm_kb.files.git", "sqlite3", "subprocess")


def test_the_pure_modules_import_nothing_that_reaches_outside() -> None:
    code = (
        f"import sys, importlib\n"
        f"for name in {PURE!r}: importlib.import_module('llm_kb.capture.' + name)\n"
        f"print(sorted({set(OUTSIDE)!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
