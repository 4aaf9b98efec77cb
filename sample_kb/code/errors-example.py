"""An error to imitate: it takes data, builds its own message and keeps the data."""

from __future__ import annotations

from collections.abc import Sequence

from llm_kb.errors import KbError, find_similar


class UnknownRoleError(KbError):
    """A role that nobody has."""

    def __init__(self, role: str, known: Sequence[str]) -> None:
        self.role = role
        self.known = tuple(known)
        message = f"unknown role {role!r}; known roles: {', '.join(self.known) or 'none'}"
        if near := find_similar(role, self.known, most=1):
            message += f"; did you mean {near[0]!r}?"
        super().__init__(message)


def find_role(role: str, known: Sequence[str]) -> str:
    """Return the role as it is spelled in `known`, ignoring case."""
    for candidate in known:
        if candidate.casefold() == role.casefold():
            return candidate
    raise UnknownRoleError(role, known)
