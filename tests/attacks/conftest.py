"""The fixtures of references: a web site, a repository and a library."""

from __future__ import annotations

from tests.references.conftest import clock, library, remote, site

__all__ = ["clock", "library", "remote", "site"]
