"""Every fuzz target, for a fraction of a second; `make fuzz` runs each for a minute."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import TARGETS, run


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_fuzz_target_finds_nothing(name: str) -> None:
    assert run(name, seconds=0.3) > 0
