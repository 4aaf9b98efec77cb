"""Front matter: any text gives the texts of some keys, and the text below."""

from __future__ import annotations

from llm_kb.rendering.summaries import read_front_matter, summarize


def fuzz(data: bytes) -> None:
    """Read the bytes as a file with front matter of both kinds, and summarize it."""
    body = data.decode("utf-8", "replace")
    for text in (body, f"---\n{body}", f"---\nsummary: {body}\n---\ntext", f"+++\n{body}\n+++\n"):
        found, rest = read_front_matter(text)
        assert all(isinstance(value, str) for value in found.values())
        assert len(rest) <= len(text)
        for extension in ("md", "rst", "py"):
            assert "\n" not in summarize(text.encode(), f"a.{extension}")
