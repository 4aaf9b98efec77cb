"""A small deterministic embedding model that hashes words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b


class HashingModel:
    """Embeds by feature hashing, and remembers what it was asked for."""

    def __init__(self, dimensions: int = 64, fail_after: int | None = None) -> None:
        self.dimensions = dimensions
        self.fail_after = fail_after
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts; stop as on Ctrl-C after `fail_after` calls."""
        if self.fail_after is not None:
            if not self.fail_after:
                raise KeyboardInterrupt
            self.fail_after -= 1
        self.texts += texts
        return [self.embed(text) for text in texts]

    def embed(self, text: str) -> list[float]:
        """Embed one text; one without words gets the zero vector."""
        vector = [0.0] * self.dimensions
        for word in re.findall(r"[a-z]+", text.lower()):
            place = int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "big")
            vector[place % self.dimensions] += 1 if place & 0x80000000 else -1
        return vector
