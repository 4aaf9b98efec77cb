"""Real git repositories to fetch from, over `file://`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.git_templates import copy_empty_repository, copy_repository


class Remote:
    """A repository on this disk that plays the one of a server."""

    def __init__(self, directory: Path, files: Mapping[str, str] | None = None) -> None:
        """Make the repository, with these files committed where any are given."""
        self.directory = directory
        if files:
            copy_repository(directory, files)
        else:
            copy_empty_repository(directory)

    @classmethod
    def of(cls, directory: Path, user_dir: Path) -> Remote:
        """Make a repository of a directory's files, and let the user fetch it."""
        directory.mkdir(exist_ok=True)
        remote = cls(directory)
        remote.write({})
        user_dir.mkdir(parents=True, exist_ok=True)
        (user_dir / "kb.toml").write_text('[kb.references]\nallow_protocols = ["file"]\n')
        return remote

    @property
    def url(self) -> str:
        """Where it is fetched from."""
        return self.directory.as_uri()

    @property
    def commit(self) -> str:
        """The commit of its HEAD."""
        return self.git("rev-parse", "HEAD")

    def git(self, *args: str) -> str:
        """Run git in it, as its owner."""
        done = subprocess.run(
            ["git", *args], cwd=self.directory, capture_output=True, encoding="utf-8", check=True
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str | bytes]) -> str:
        """Write files and commit them; return the commit."""
        for path, content in files.items():
            target = self.directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "-m", "change")
        return self.commit
