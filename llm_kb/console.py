"""The console script `llm-kb`, which ends quietly on Ctrl-C, also while modules are imported."""

from __future__ import annotations

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells report it."""


def main() -> None:
    """Run `llm-kb`."""
    try:
        from llm_kb.plugin import main as run  # noqa: PLC0415 - may be interrupted

        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
