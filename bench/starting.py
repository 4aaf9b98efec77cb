"""What starting costs: of this plugin with `llm`, of `llm-kb`, and of the MCP server.

    python bench/starting.py [ROUNDS]

plugin: two directories are made as pip makes them, bytecode included: one with a plugin that does
nothing, one with this package. Each measurement is a process of its own that imports `llm.cli`
without plugins and then does what `llm` does for one plugin: find its distribution, load its entry
point, register it, call `register_commands`. Printed are the ratio of the medians and the modules
that are newly imported.
commands: `llm-kb` / the same command as `llm kb`, in sample_kb, both times.
mcp: `initialize` and `tools/list` answered / a bare Python that imports asyncio, json and click.

All are processes of their own that take turns; ratios are medians of pairs.
"""

from __future__ import annotations

import compileall
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from harness import BIN, SAMPLE, Cost, compare, report, run, use_new_user

import llm_kb

EMPTY = "from llm import hookimpl\n\n\n@hookimpl\ndef register_commands(cli):\n    pass\n"
PLUGINS = {"llm-empty": "llm_empty", "llm-kb": "llm_kb.plugin"}
"""Distribution to the module its entry point names."""

COMMANDS = (
    *("list", "check", "search review", "show project/architecture", "learn project", "prompt"),
    *("path", "mcp --help"),
)
CLIENT = {"capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
REQUESTS = (
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", **CLIENT}},
    {"id": 2, "method": "tools/list"},
)


def install(directory: Path) -> None:
    """Put both plugins below `directory`, each in a place of its own."""
    for distribution, module in PLUGINS.items():
        site = directory / distribution
        info = site / f"{distribution.replace('-', '_')}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: 1\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[llm]\nit = {module}\n", encoding="utf-8")
    (directory / "llm-empty" / "llm_empty.py").write_text(EMPTY, encoding="utf-8")
    shutil.copytree(Path(llm_kb.__file__).parent, directory / "llm-kb" / "llm_kb")
    compileall.compile_dir(directory, quiet=1)


def load(site: Path) -> tuple[float, int]:
    """Load the plugin below `site` into this process, as `llm.plugins` does: ms and modules."""
    # Imported here: the process that compares needs none of it.
    import llm.cli
    from llm.plugins import pm

    # What is known of other places, this plugin's editable installation first, is not ours to pay.
    for name in [name for name in sys.modules if name.partition(".")[0] == "llm_kb"]:
        del sys.modules[name]
    sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
    metadata.distribution("llm")
    sys.path.insert(0, str(site))
    gc.disable()
    before = set(sys.modules)
    start = time.perf_counter()
    for entry_point in metadata.distribution(site.name).entry_points:
        plugin = entry_point.load()
        pm.register(plugin, name=entry_point.name)
        plugin.register_commands(cli=llm.cli.cli)
    return (time.perf_counter() - start) * 1000, len(sys.modules.keys() - before)


def compare_plugins(rounds: int) -> None:
    environment = {**os.environ, "LLM_LOAD_PLUGINS": ""}
    results: dict[str, list[tuple[float, int]]] = {name: [] for name in PLUGINS}
    with tempfile.TemporaryDirectory() as directory:
        install(Path(directory))
        for _ in range(rounds):
            for name, measured in results.items():
                command = [sys.executable, __file__, "--load", Path(directory, name)]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                measured.append(json.loads(done.stdout))
    medians = {name: statistics.median(ms for ms, _ in found) for name, found in results.items()}
    for name, measured in results.items():
        print(f"{name}: {medians[name]:.3f} ms, {measured[0][1]} modules (median of {rounds})")
    report(
        "start-up with the plugin / with an empty one",
        medians["llm-kb"] / medians["llm-empty"],
        2.5,
    )


def compare_commands(rounds: int) -> None:
    for command in COMMANDS:
        ours = _runs(BIN / "llm-kb", *command.split())
        ratio = compare(ours, _runs(BIN / "llm", "kb", *command.split()), rounds)
        report(f"llm-kb {command} / llm kb, time", ratio.wall, 0.35)
        report("… processor time", ratio.seconds, 0.35)


def _runs(*command: str | Path) -> Callable[[], Cost]:
    return lambda: run(command)


def greet() -> Cost:
    """Return what it costs until the MCP server has answered both requests."""
    pipe, start = subprocess.PIPE, time.perf_counter()
    server = subprocess.Popen([BIN / "llm-kb", "mcp"], cwd=SAMPLE, stdin=pipe, stdout=pipe)
    assert server.stdin
    assert server.stdout
    for request in REQUESTS:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
        server.stdin.flush()
        assert b"result" in server.stdout.readline()
    wall = time.perf_counter() - start
    server.stdin.close()
    _, status, usage = os.wait4(server.pid, 0)
    server.returncode = os.waitstatus_to_exitcode(status)
    server.stdout.close()
    return Cost(wall, usage.ru_utime + usage.ru_stime)


def main(rounds: int = 15) -> None:
    use_new_user("starting")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compare_plugins(rounds)
    compare_commands(rounds)
    greet()  # writes the bytecode, which an installation has
    bare = _runs(sys.executable, "-c", "import asyncio, json, click")
    ratio = compare(greet, bare, rounds)
    report("mcp: greeted and told the tools / a bare Python, time", ratio.wall, 4)
    report("… processor time", ratio.seconds, 4)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        print(json.dumps(load(Path(sys.argv[2]))))
    else:
        main(*map(int, sys.argv[1:]))
