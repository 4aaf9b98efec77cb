"""Makes the word vectors of the search, `llm_kb/search/word_vectors.bin`.

    python bench/retrieval/word_vectors.py DIRECTORY

DIRECTORY has clones of projects. Words count that the documentation of three of them has. The
vectors are learned from paragraphs and sentences of those of which no question is asked
(asked.py): the sum of a text's vectors should point where all-MiniLM-L6-v2 puts the text,
in the directions in which these texts differ most. It takes a quarter of an hour on two cores; that
of the shipped file were 108 repositories. It needs the group `bench`.
"""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from asked import PROJECTS
from rivals import load_embedder

from llm_kb.search.question import STOP_WORDS
from llm_kb.search.word_vectors import DIMENSIONS, FILE
from llm_kb.texts.folding import fold

SUFFIXES = (".md", ".mdx", ".rst", ".adoc", ".txt", ".org", ".markdown", ".asciidoc")
_ELSEWHERE = re.compile(
    r"(^|/)(i18n|l10n|locales?|translations?|zh[^/]*|ja|ko|ru|fr|de|es|pt[^/]*|it|uk|pl|tr|vi|id|bn"
    r"|hi|fa|ar|az|he|hu|nl|ta|yo|em|tests?|testdata|fixtures|vendor|node_modules)/"
)
_WORD = re.compile(r"[^\W\d_]+")
MOST_BYTES = 400_000
LEAST_PROJECTS = 3
LETTERS = range(2, 19)
OF_A_PROJECT = 1_000
"""Texts of each kind, long and short, that one project gives at most."""

PARAGRAPH = range(25, 110)
"""Number of words of a long text; of a longer paragraph the first are taken."""

EPOCHS = 4
"""More and the vectors fit these texts alone: the cosine of others to their place falls."""

BATCH = 512


def read_documentation(repository: Path) -> Iterator[str]:
    """Yield the texts of the documentation of a repository, without translations and tests."""
    command = ["git", "-C", repository, "ls-tree", "-r", "-l", "HEAD"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout
    for line in listed.decode("utf-8", "replace").splitlines():
        about, _, path = line.partition("\t")
        _, kind, blob, size = about.split()
        name = path.lower()
        if kind != "blob" or not name.endswith(SUFFIXES) or _ELSEWHERE.search(name):
            continue
        # A partial clone lacks some, whose size is no number.
        if size.isdigit() and int(size) <= MOST_BYTES:
            command = ["git", "-C", repository, "cat-file", "blob", blob]
            read = subprocess.run(command, check=False, capture_output=True)
            yield read.stdout.decode("utf-8", "replace")


def split(text: str) -> tuple[list[str], list[str]]:
    """Return the paragraphs of a text, and its headings, items and sentences."""
    long, short = [], []
    for paragraph in re.split(r"\n\s*\n", text):
        words = paragraph.split()
        if len(words) >= PARAGRAPH.start:
            long.append(" ".join(words[: PARAGRAPH.stop]))
            sentences = re.split(r"(?<=[.!?])\s+", " ".join(words))[:3]
            short += [each for each in sentences if 4 <= len(each.split()) <= PARAGRAPH.start]
        elif len(words) >= 3:
            short.append(" ".join(words))
    return long, short


def read_all(directory: Path) -> tuple[Counter[str], Counter[str], list[str]]:
    """Return how often each word is there, in how many projects, and the texts to learn from."""
    asked = {
        getattr(source, "repository", source)
        for projects in PROJECTS.values()
        for source in projects.values()
    }
    uses: Counter[str] = Counter()
    projects: Counter[str] = Counter()
    texts: list[str] = []
    chance = random.Random(1)
    for repository in sorted(directory.iterdir()):
        found: Counter[str] = Counter()
        kinds: tuple[list[str], list[str]] = [], []
        for text in read_documentation(repository):
            words = _WORD.findall(fold(text))
            found.update(word for word in words if word.isascii() and len(word) in LETTERS)
            if repository.name.replace("+", "/") not in asked:
                for kind, parts in zip(kinds, split(text), strict=True):
                    kind += parts
        uses += found
        projects.update(found.keys())
        texts += [
            text for kind in kinds for text in chance.sample(kind, min(len(kind), OF_A_PROJECT))
        ]
        print(repository.name, found.total(), len(texts), file=sys.stderr, flush=True)
    return uses, projects, texts


def learn(words: Sequence[str], uses: Counter[str], texts: Sequence[str]) -> Any:
    """Return the vector of each word."""
    embed = load_embedder().embed
    wanted, alone = np.array([*embed(texts)]), np.array([*embed(words)])
    middle = wanted.mean(0)
    _, _, directions = np.linalg.svd(wanted - middle, full_matrices=False)
    places = _unit((wanted - middle) @ directions[:DIMENSIONS].T)
    first = _unit((alone - alone.mean(0)) @ directions[:DIMENSIONS].T)
    # Rare words decide what a text is about.
    first *= [[math.log(uses.total() / uses[word]) / 10] for word in words]

    number = {word: place for place, word in enumerate(words)}
    found = [
        [number[word] for word in _WORD.findall(fold(text)) if word in number] for text in texts
    ]
    vectors = torch.nn.EmbeddingBag.from_pretrained(
        torch.tensor(first, dtype=torch.float32), freeze=False, mode="sum"
    )
    optimizer = torch.optim.Adam(vectors.parameters(), lr=2e-3)
    order = [place for place, text in enumerate(found) if len(text) >= 2]
    for epoch in range(EPOCHS):
        random.Random(epoch).shuffle(order)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            starts = np.cumsum([0, *(len(found[place]) for place in batch)])[:-1]
            sums = vectors(
                torch.tensor([word for place in batch for word in found[place]]),
                torch.tensor(starts),
            )
            goal = torch.tensor(places[batch], dtype=torch.float32)
            loss = (1 - torch.nn.functional.cosine_similarity(sums, goal)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {float(loss):.3f}", file=sys.stderr, flush=True)
    return vectors.weight.detach().numpy()


def _unit(vectors: Any) -> Any:
    return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9)


def main(directory: str) -> None:
    torch.manual_seed(1)
    uses, projects, texts = read_all(Path(directory))
    common = {word for word, number in projects.items() if number >= LEAST_PROJECTS}
    words = sorted(common - STOP_WORDS["en"])
    vectors = learn(words, uses, texts)
    # A few numbers are much larger than all others.
    scale = 127 / np.quantile(abs(vectors), 0.9999)
    rows = (np.clip(np.round(vectors * scale), -127, 127) + 128).astype("uint8")
    FILE.write_bytes("\n".join(words).encode() + b"\0" + rows.tobytes())
    print(f"{len(words):,} words from {len(texts):,} texts, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
