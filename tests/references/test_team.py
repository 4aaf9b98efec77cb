"""A library shared by a team, refreshed by the job in the documentation."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from llm_kb.references.fetch.create import create_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.records import GitSource, WebSource
from tests.console import PROJECT
from tests.references.remotes import Remote
from tests.references.requests import files_of, request, yes
from tests.references.sites import Site

PAGE = "<main><h1>Frob</h1><p>It is {} now.</p></main>"

REFRESH = "llm kb references refresh --stale --yes"
JOB = f"""
mkdir -p "$LLM_USER_PATH" && settings=$LLM_USER_PATH/kb.toml
printf '[kb.references]\\ndir = "%s"\\nallow_hosts = ["127.0.0.1"]\\n' "$PWD" > "$settings"
{REFRESH} || failed=$?
git config user.name refresh && git config user.email refresh@example.com
git add topic-* && git diff --cached --quiet || git commit -m "Refresh references"
git push
exit ${{failed:-0}}
"""
"""What a job does with the command of the documentation, for a site on loopback."""


def run_job(remote: Path, place: Path) -> int:
    """Check the repository out and run the job there as GitHub does; return its exit code."""
    subprocess.run(["git", "clone", "--quiet", str(remote), str(place)], check=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "LLM_USER_PATH": str(place.with_suffix(".user"))}
    done = subprocess.run(["bash", "-e", "-c", JOB], cwd=place, env=environment, check=False)
    return done.returncode


@pytest.fixture
def shared(tmp_path: Path, library: Library, site: Site) -> Remote:
    """A library in git: a topic of a page that is due, and one whose page is gone."""
    site.put("/frob", PAGE.format("old"))
    site.put("/gone", PAGE.format("there"))
    shared = Remote(tmp_path / "remotes" / "references", {".gitignore": "/.*/\n"})
    shared.write({".gitattributes": "* -text\n"})
    library = replace(
        library, root=shared.directory, clock=lambda: datetime(2020, 1, 1, tzinfo=timezone.utc)
    )
    for title in ("frob", "gone"):
        source = WebSource(url=f"{site.url}/{title}")
        create_topic(
            library, replace(request(source, title=title), id=f"topic-{title}", max_age_days=7), yes
        )
    shared.git("add", "--all")
    shared.git("commit", "--quiet", "-m", "topics")
    shared.git("config", "receive.denyCurrentBranch", "updateInstead")
    return shared


@pytest.mark.slow
def test_the_job_of_the_documentation_refreshes_and_pushes(
    tmp_path: Path, library: Library, site: Site, shared: Remote
) -> None:
    assert f"`{REFRESH}`" in (PROJECT / "docs" / "references.md").read_text(encoding="utf-8")
    before = shared.commit
    site.put("/frob", PAGE.format("new"))
    del site.answers["/gone"]

    assert run_job(shared.directory, tmp_path / "first") == 1  # what failed is not passed over
    assert shared.git("log", "--format=%s %an", f"{before}..") == "Refresh references refresh"
    create_topic(library, request(GitSource(url=shared.url, paths=("topic-frob",))), yes)
    (text,) = files_of(library).values()
    assert "It is new now." in text

    after = shared.commit
    site.put("/gone", PAGE.format("back"))
    assert run_job(shared.directory, tmp_path / "second") == 0
    # Neither what was refreshed before, nor indexes and locks.
    changed = shared.git("diff", "--name-only", after).split("\n")
    assert {name.partition("/")[0] for name in changed} == {"topic-gone"}
