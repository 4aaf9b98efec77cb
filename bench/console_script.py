"""How long `llm-kb` takes, compared with the same command as `llm kb`.

Both run in sample_kb, in processes of their own that take turns, and are compared pair by
pair. Printed are the medians of the ratios: of the time that passes, and of processor time.

    python bench/console_script.py [PAIRS]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent
SAMPLE = Path(__file__).parent.parent / "sample_kb"
COMMANDS = (
    *("list", "check", "search review", "show project/architecture", "learn project", "prompt"),
    *("path", "mcp --help"),
)


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command; return the seconds that passed, and those of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=SAMPLE, env=environment, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "LLM_USER_PATH": directory}
        for command in COMMANDS:
            ratios = []
            for _ in range(pairs):
                host = measure([str(BIN / "llm"), "kb", *command.split()], environment)
                script = measure([str(BIN / "llm-kb"), *command.split()], environment)
                ratios.append([ours / theirs for ours, theirs in zip(script, host, strict=True)])
            wall, processor = map(statistics.median, zip(*ratios, strict=True))
            print(f"{command}: {wall:.2f} of the time, {processor:.2f} of the processor time")


if __name__ == "__main__":
    main()
