"""The wheel contains only the package, and `llm install` of it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import llm_kb
from tests.console import PROJECT

SITE = Path(sysconfig.get_path("purelib"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: a build leaves its traces in the sources."""
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "source"
    shutil.copytree(
        PROJECT / "llm_kb", source / "llm_kb", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(PROJECT / name, source)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run([*command, "--outdir", str(directory), str(source)], check=True)
    (built,) = directory.glob("*.whl")
    return built


def test_it_holds_the_package_alone(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "llm_kb",
        f"llm_kb-{llm_kb.__version__}.dist-info",
    }
    assert {"llm_kb/py.typed", "llm_kb/plugin.py", "llm_kb/commands/__init__.py"} <= set(names)
    shipped = {f"llm_kb/{path.relative_to(PROJECT / 'llm_kb')}" for path in find_package_data()}
    assert shipped - set(names) == set()


def find_package_data() -> list[Path]:
    """Return the files of the package that are no modules."""
    return [
        path
        for path in (PROJECT / "llm_kb").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]


@pytest.mark.slow
def test_llm_install_of_it_into_a_fresh_environment_works(wheel: Path, tmp_path: Path) -> None:
    """Offline: what it depends on is lent by this environment, this package is not."""
    lent = tmp_path / "lent"
    lent.mkdir()
    for entry in SITE.iterdir():
        if "llm_kb" not in entry.name and not entry.name.startswith(("pip", "distutils")):
            (lent / entry.name).symlink_to(entry)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, stdout=subprocess.PIPE, encoding="utf-8",
    ).stdout.strip()  # fmt: skip
    Path(site, "lent.pth").write_text(f"{lent}\n", encoding="utf-8")
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-m", "llm", *arguments],
            cwd=tmp_path, env=environment, check=False, capture_output=True, encoding="utf-8",
        )  # fmt: skip

    assert "llm-kb" not in run("plugins").stdout
    installed = run("install", str(wheel))
    assert installed.returncode == 0, installed.stderr
    assert '"name": "llm-kb"' in run("plugins").stdout
    shown = run("kb", "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "learn" in shown.stdout
    script = subprocess.run(
        [python.with_name("llm-kb"), "--version"], check=True, stdout=subprocess.PIPE
    )
    assert script.stdout == f"llm-kb, version {llm_kb.__version__}\n".encode()
