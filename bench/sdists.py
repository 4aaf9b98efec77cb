"""Source distributions from the package index, downloaded once by pip into a cache.

The cache is outside of the repository (`LLM_KB_BENCH_CACHE`, else the temporary directory).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("LLM_KB_BENCH_CACHE") or Path(tempfile.gettempdir(), "llm-kb-bench"))


def fetch(requirement: str) -> Path:
    """Download and unpack an sdist, once."""
    name, _, version = requirement.partition("==")
    target = CACHE / f"{name}-{version}"
    if not target.exists():
        archives = CACHE / "sdists"
        archives.mkdir(parents=True, exist_ok=True)
        pattern = f"{name.replace('-', '[-_]')}-{version}.tar.gz"
        if not list(archives.glob(pattern)):
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name,
                 "-d", archives, requirement],
                check=True,
            )  # fmt: skip
        with tarfile.open(next(archives.glob(pattern))) as archive:
            archive.extractall(CACHE, filter="data")
    return target
