"""Run every fuzz target for some seconds: `python -m tests.fuzz SECONDS [TARGET...]`.

A target is a module beside this one with a function `fuzz(data: bytes) -> None`. It raises
for a defect and returns for anything else, valid or refused. Inputs are random pieces of
what the targets' grammars are made of, from a seed that a failure prints.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import tests.fuzz

TARGETS: dict[str, Callable[[bytes], None]] = {
    name: import_module(f"tests.fuzz.{name}").fuzz
    for name in sorted(module.name for module in iter_modules(tests.fuzz.__path__))
    if name != "__main__"
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
)


def make_input(seed: int) -> bytes:
    """Return the input of a seed: pieces, some of them repeated, or random bytes."""
    source = random.Random(seed)
    if source.random() < 0.1:
        return source.randbytes(source.randrange(200))
    pieces = source.choices(PIECES, k=source.randrange(1, 60))
    return b"".join(piece * source.choice((1, 1, 1, 1, 2, 50)) for piece in pieces)


def run(name: str, seconds: float, seed: int = 0) -> int:
    """Run a target for some seconds from a seed on; return the number of inputs tried."""
    deadline = time.monotonic() + seconds
    first = seed
    while time.monotonic() < deadline:
        try:
            TARGETS[name](make_input(seed))
        except Exception:
            sys.stderr.write(f"{name}: seed {seed}: {make_input(seed)!r}\n")
            raise
        seed += 1
    return seed - first


def main() -> None:
    """Run the targets that are named, or all."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = random.SystemRandom().randrange(1 << 48)
    for name in sys.argv[2:] or TARGETS:
        sys.stdout.write(f"{name}: {run(name, seconds, seed):,} inputs from seed {seed}\n")


if __name__ == "__main__":
    main()
