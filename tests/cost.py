"""The cost of a piece of code, independent of the load of the machine."""

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

LOOP = 200_000
# Processor time of `LOOP` steps on the machine the bounds were written on, with nothing beside it.
CALM_SECONDS = 0.0075


def cases(table: Mapping[str, object], *slow: str) -> list[Any]:
    """Return the values of a table as cases of a test, those named as slow ones."""
    return [
        pytest.param(value, id=name, marks=[pytest.mark.slow] if name in slow else [])
        for name, value in table.items()
    ]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail where the block costs more than `seconds` of processor time on a calm machine.

    A slower or busier machine is given proportionally longer: its pace is measured before and
    after the block, and the slower one counts. The garbage collector is off meanwhile, since what
    earlier tests left in memory is not a cost of the block. A bound is about five times what was
    measured: it is there for what grows without bound, not for what is a little slower.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        before = measure_pace()
        started = time.process_time()
        yield
        spent = time.process_time() - started
        pace = max(1.0, before, measure_pace())
    finally:
        if collecting:
            gc.enable()
    assert spent <= seconds * pace, f"{spent:.2f} s, at a pace {pace:.1f} times as slow as calm"


def peak_of(action: Callable[[], object]) -> int:
    """Return how many bytes Python held at once while something was done."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measure_pace() -> float:
    """Return how many times as long as on a calm machine a fixed piece of Python takes now."""
    started = time.process_time()
    sum(number % 7 for number in range(LOOP))
    return (time.process_time() - started) / CALM_SECONDS
