"""Run every fuzz target for some seconds: `python -m tests.fuzz SECONDS [TARGET...]`.

A target is a module beside this one, or `fuzz_NAME.py` among the tests of an add-on, with a
function `fuzz(data: bytes) -> None`. It raises for a defect and returns for anything else, valid
or refused. Inputs are random pieces of what the targets' grammars are made of, and changed copies
of the target's files in `corpus/`, from a seed that a failure prints. No input may take more
than `MOST_SECONDS` of processor time or make the process grow beyond `MOST_MEMORY`.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import tests.fuzz

CORPUS = Path(__file__).parent / "corpus"

# Inputs have at most some 10,000 bytes. On a calm machine none takes a tenth of a second.
MOST_SECONDS = 2.0
# Of address space: the interpreter, the libraries and 300 MB for what an input costs.
MOST_MEMORY = 1_500_000_000

TARGETS: dict[str, Callable[[bytes], None]] = {
    name: import_module(f"tests.fuzz.{name}").fuzz
    for name in sorted(module.name for module in iter_modules(tests.fuzz.__path__))
    if name != "__main__"
} | {
    path.stem.removeprefix("fuzz_"): import_module(f"tests.{path.parent.name}.{path.stem}").fuzz
    for path in sorted(Path(__file__).parents[1].glob("*/fuzz_*.py"))
}

PIECES = (
    *(
        bytes([byte])
        for byte in b"\n\r\t \0\"'{}[]()<>=,.:;/\\*?!#-+_&|%~`@$^0aAzZ\x1b\x7f\x80\xff"
    ),
    *(b"kb", b"topic", b"learned", b"disabled", b"**", b"[[", b"]]", b"+++\n", b"---\n", b"...\n"),
    *(b"true", b"null", b"1e999", b"-1", b"9" * 30, b"nan", b"<p>", b"</p>", b"<a href=", b"```"),
    *(b"\xc3\xa9", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"../"),
    *(b"schema", b"title", b"sources", b"url", b"https://e.org/", b"conventions", b"id", b"rule"),
    *(b".. a:: ", b".. _a:\n", b"<h1>", b"</h1>", b"<table>", b"def a():\n", b"[a]: b\n", b"| a |"),
)


class TooSlowError(Exception):
    """An input took more processor time than any may."""


def make_input(seed: int, corpus: Sequence[bytes] = ()) -> bytes:
    """Return the input of a seed: pieces, some repeated, a changed file, or random bytes."""
    source = random.Random(seed)
    if source.random() < 0.1:
        return source.randbytes(source.randrange(200))
    pieces = source.choices(PIECES, k=source.randrange(1, 60))
    made = [piece * source.choice((1, 1, 1, 1, 2, 50)) for piece in pieces]
    if corpus and source.random() < 0.6:
        return _change(source, source.choice(corpus), made[: source.randrange(8)])
    return b"".join(made)


def _change(source: random.Random, text: bytes, pieces: Sequence[bytes]) -> bytes:
    """Put pieces into a text, and leave out, repeat or move some of its own."""
    for piece in pieces:
        start, end = sorted((source.randrange(len(text) + 1), source.randrange(len(text) + 1)))
        end = min(end, start + 200)
        own = text[start:end] * source.choice((0, 1, 1, 2, 20))
        text = (text[:start] + piece + own + text[end:])[:10_000]
    return text


@cache
def read_corpus(name: str) -> tuple[bytes, ...]:
    """Return the files of a target's corpus, in the order of their names."""
    return tuple(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))


@contextmanager
def _bounded() -> Iterator[None]:
    """Raise in this thread after `MOST_SECONDS` of processor time."""

    def stop(_signal: int, _frame: object) -> None:
        raise TooSlowError(f"more than {MOST_SECONDS} s of processor time")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def run(name: str, seconds: float, seed: int = 0) -> int:
    """Run a target for some seconds from a seed on; return the number of inputs tried."""
    corpus = read_corpus(name)
    for text in corpus:
        TARGETS[name](text)
    deadline = time.monotonic() + seconds
    first = seed
    while time.monotonic() < deadline:
        data = make_input(seed, corpus)
        try:
            with _bounded():
                TARGETS[name](data)
        except BaseException:
            sys.stderr.write(f"{name}: seed {seed}: {data!r}\n")
            raise
        seed += 1
    return seed - first


def main() -> None:
    """Run the targets that are named, or all."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))
    seed = random.SystemRandom().randrange(1 << 48)
    for name in sys.argv[2:] or TARGETS:
        sys.stdout.write(f"{name}: {run(name, seconds, seed):,} inputs from seed {seed}\n")


if __name__ == "__main__":
    main()
