"""What having this plugin installed adds to every start of `llm`.

Two directories are made as pip makes them, bytecode included: one with a plugin that
does nothing, one with this package. Each measurement is a process of its own that
imports `llm.cli` without plugins and then does what `llm` does for one plugin: find its
distribution, load its entry point, register it, call `register_commands`. The two take
turns. Printed are medians, their ratio (at most 2.5), and the modules that are newly
imported (at most 3).

    python bench/startup.py [ROUNDS]
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
from importlib import metadata
from pathlib import Path

import llm_kb

EMPTY = """
from llm import hookimpl


@hookimpl
def register_commands(cli):
    pass
"""

PLUGINS = {"llm-empty": "llm_empty", "llm-kb": "llm_kb.plugin"}
"""Distribution to the module its entry point names."""


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


def measure(site: Path) -> tuple[float, int]:
    """Run a measurement in a process; return its milliseconds and the modules it added."""
    done = subprocess.run(
        [sys.executable, __file__, "--load", str(site)],
        env={**os.environ, "LLM_LOAD_PLUGINS": ""},
        stdout=subprocess.PIPE,
        check=True,
    )
    milliseconds, modules = json.loads(done.stdout)
    return milliseconds, modules


def load(site: Path) -> tuple[float, int]:
    """Load the plugin below `site` into this process, as `llm.plugins` does."""
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


def main() -> None:
    if sys.argv[1:2] == ["--load"]:
        print(json.dumps(load(Path(sys.argv[2]))))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    results: dict[str, list[tuple[float, int]]] = {name: [] for name in PLUGINS}
    with tempfile.TemporaryDirectory() as directory:
        install(Path(directory))
        for _ in range(rounds):
            for name, measured in results.items():
                measured.append(measure(Path(directory, name)))
    medians = {}
    for name, measured in results.items():
        medians[name] = statistics.median(milliseconds for milliseconds, _ in measured)
        print(f"{name}: {medians[name]:.3f} ms, {measured[0][1]} modules (median of {rounds})")
    print(f"ratio: {medians['llm-kb'] / medians['llm-empty']:.2f} (at most 2.5)")


if __name__ == "__main__":
    main()
