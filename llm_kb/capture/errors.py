"""Errors about captured knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llm_kb.errors import KbError, limit_problems


class NotARepositoryError(KbError):
    """A directory that is not in a git repository."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"{str(directory)!r} is not inside a git repository; "
            "captured knowledge is kept in one, so change into it or run `git init`"
        )


class NoCommitError(KbError):
    """A repository without a commit, so that knowledge has no provenance."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"the repository of {str(directory)!r} has no commit yet; "
            "knowledge is recorded with the commit it comes from, so commit something first"
        )


class UnknownCommitError(KbError):
    """A name that does not refer to a commit of the repository."""

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(f"no commit is called {name!r} in this repository{hint}")


class DamagedStoreError(KbError):
    """A note that is not a knowledge store; it is not overwritten."""

    def __init__(
        self, ref: str, path: str, problems: Sequence[str], remote: str | None = None
    ) -> None:
        self.problems = tuple(problems)
        listed = "".join(f"\n  - {problem}" for problem in self.problems)
        if remote is None:
            message = f"the knowledge store under {ref} cannot be read, and was not touched"
            advice = f"Find the versions before it with: git log -p {ref}"
        else:
            message = f"the knowledge store of {remote!r} cannot be read; nothing was changed here"
            advice = f"Someone who can push to {remote!r} must repair it there"
        super().__init__(f"{message}:{listed}\nLook at it with: git show {ref}:{path}\n{advice}")


class BusyStoreError(KbError):
    """A store that other writers kept changing until the time was over."""

    def __init__(self, ref: str, reason: str) -> None:
        super().__init__(
            f"{ref} kept being changed or locked by others; try again. git's message: {reason}"
        )


MOST_SHOWN = 300
"""The most characters of one problem that an error shows."""


class InvalidEntryError(KbError):
    """Fields that do not make an entry, with every problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(each[:MOST_SHOWN] for each in limit_problems(self.problems)))


class InvalidAnnotationError(KbError):
    """JSON that is not an annotation, with the path of each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(f"the annotation is invalid, and nothing was written:{listed}")


class TooManyEntriesError(KbError):
    """A model that has recorded the most entries that one commit may add."""

    def __init__(self) -> None:
        super().__init__("no more entries are recorded from this commit")
