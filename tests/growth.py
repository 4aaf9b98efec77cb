"""How much longer a piece of code takes for twice the input, whatever else the machine does."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType

from tests.cost import measure_pace

SMALL, MIDDLE, LARGE = 4_096, 32_768, 65_536
"""Lengths of inputs: those of code that is quick are small."""

QUICK = 0.0015
"""Seconds of processor time for `SMALL` characters below which code is linear: the eight million
steps of quadratic code take more."""

STEADY = 1.5
"""Linear code takes at most so many times its share longer for `MIDDLE` than for `SMALL`."""

FLOOR = 0.06
"""Seconds for `LARGE` characters below which a growth is not one: nobody waits for it."""

ENDLESS = 2.0
"""Seconds of processor time after which a call is given up."""

TRIPLED = 3.0
"""Twice the input may take up to this many times as long: linear code takes twice, quadratic
four times."""

STEEP = 2.5
"""So may each doubling from `SMALL` to `LARGE` on average, and the one after it: code that reads a
text again for each of its lengths, of which there are as many as the root of its size, takes 2.8
times. Where a text no longer fits into a cache, one doubling takes as long once."""

DEAREST = 12e-6
"""Seconds a character may take on a calm machine: work that is done again at each of 100 levels
is linear, and a hundred times too much."""


class EndlessError(BaseException):
    """A call was given up."""


def measure_growth(action: Callable[[str], object], make: Callable[[int], str]) -> str:
    """Return how the time of an action grows with the length of its input; empty if it does not.

    `make` returns an input of about the length that it is given. Times are of the processor, and
    the least of several.
    """
    try:
        for size in (16, 24, 32, 64, 256, 1_024):
            measure_time(action, make(size), runs=1)
        small = measure_time(action, make(SMALL), runs=1)
        if small < QUICK:
            return ""
        middle = measure_time(action, make(MIDDLE), runs=1)
        if middle < STEADY * small / SMALL * MIDDLE and not _is_dear(middle / MIDDLE):
            return ""
        times = [measure_time(action, make(LARGE >> shift)) for shift in (4, 2, 1, 0)]
    except EndlessError:
        return "it was given up"
    if _is_dear(times[-1] / LARGE):
        return f"a character takes {times[-1] / LARGE * 1e6:.1f} µs"
    ratios = [after / max(before, 1e-6) for before, after in pairwise(times[1:])]
    steepness = (times[-1] / max(times[0], 1e-6)) ** 0.25
    is_steep = min(ratios) >= TRIPLED or steepness >= STEEP
    if times[-1] < FLOOR or not (is_steep and _goes_on(action, make(2 * LARGE), times[-1])):
        return ""
    return f"{LARGE:,} characters take {times[-1]:.2f} s, half of them {times[-2]:.2f} s"


def _is_dear(seconds: float) -> bool:
    """Tell whether a character takes too long, also for how slow the machine is now."""
    return seconds > DEAREST and seconds > DEAREST * measure_pace()


def _goes_on(action: Callable[[str], object], text: str, before: float) -> bool:
    """Tell whether a text twice as long takes steeply longer than the one `before` it."""
    try:
        return measure_time(action, text) >= STEEP * before
    except EndlessError:
        return True


def measure_time(action: Callable[[str], object], text: str, runs: int = 3) -> float:
    """Return the least processor time of an action. Raises EndlessError."""
    least = ENDLESS
    gc.disable()
    try:
        for _ in range(runs):
            with _given_up():
                started = time.process_time()
                action(text)
                least = min(least, time.process_time() - started)
    finally:
        gc.enable()
    return least


@contextmanager
def _given_up() -> Iterator[None]:
    """Interrupt the block after a time; a regular expression looks for signals while it matches."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
