"""Missing descriptions, and the files they are written into."""

from __future__ import annotations

import pytest

from llm_kb.rendering.summaries import summarize
from llm_kb.upkeep.describe import add_summary

LINE = 'summary: "S: \\"x\\" ü"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("# A\n", f"---\n{LINE}\n---\n\n# A\n", id="without"),
        pytest.param("# A\r\n", f"---\r\n{LINE}\r\n---\r\n\r\n# A\r\n", id="CRLF"),
        pytest.param(
            "---\ntitle: T\n---\n# A\n",
            f"---\n{LINE}\ntitle: T\n---\n# A\n",
            id="with front matter",
        ),
        pytest.param(
            "---\n\nA rule, and text.\n",
            f"---\n{LINE}\n---\n\n---\n\nA rule, and text.\n",
            id="a rule is not front matter",
        ),
    ],
)
def test_a_summary_goes_into_front_matter(text: str, expected: str) -> None:
    written = add_summary(text, 'S: "x" ü')
    assert written == expected
    assert summarize(written.encode(), "md") == 'S: "x" ü'
