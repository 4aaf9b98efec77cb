"""Files that cannot be read, also by root."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

_VERSION_3 = 0x20080522
_READ_ALL = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, see capabilities(7)."""


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """Take all permissions of a path away until the block ends; skip where that means nothing."""
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        with _without_privileges():
            yield
    finally:
        with suppress(FileNotFoundError):
            path.chmod(mode)


@pytest.fixture
def shut() -> Iterator[Callable[[Path], None]]:
    """Take all permissions of a path away until the test ends."""
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(unreadable(path))


@contextmanager
def unwritable(path: Path) -> Iterator[None]:
    """Let a directory and its files be read only until the block ends."""
    paths = {each: each.stat().st_mode for each in (*path.iterdir(), path)}
    for each, mode in paths.items():
        each.chmod(mode & ~0o222)
    try:
        with _without_privileges():
            yield
    finally:
        for each, mode in paths.items():
            each.chmod(mode)


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], None]]:
    """Take the permission to write a directory and its files away until the test ends."""
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(unwritable(path))


@contextmanager
def _without_privileges() -> Iterator[None]:
    """Have permissions count while the block runs; only for root they would not."""
    if not hasattr(os, "geteuid"):
        pytest.skip("needs permissions of POSIX")
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root reads everything here")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    # Effective, permitted, inheritable; then the same for capabilities from 32.
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    before = sets[0]
    sets[0] = before & ~_READ_ALL
    assert libc.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(header, sets) == 0
