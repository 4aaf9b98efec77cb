"""Notebooks as Markdown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.documents.notebook import LONGEST_OUTPUT, read_notebook
from llm_kb.errors import UnreadableError
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.subjects.topics import TopicConfig

NOTEBOOK = {
    "metadata": {"language_info": {"name": "python"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Words.\n"]},
        {
            "cell_type": "code",
            "source": "print(1)\n1 + 1",
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
                {
                    "output_type": "display_data",
                    "data": {"text/html": ["<style>p {}</style><table><tr><th>a", "<td>1</table>"]},
                },
                {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": ["\x1b[0m"]},
            ],
        },
        {"cell_type": "code", "source": ["'```'"], "outputs": []},
        {"cell_type": "raw", "source": ""},
    ],
}


def test_cells_stand_in_order_with_what_they_printed() -> None:
    text = read_notebook(json.dumps(NOTEBOOK).encode())
    assert text.decode() == (
        "# Title\n\nWords.\n\n```python\nprint(1)\n1 + 1\n```\n\n```output\n1\n```\n\n"
        "```output\n2\n```\n\n```output\n(image/png: not shown)\n```\n\n"
        "```output\n|  |  |\n| --- | --- |\n| a | 1 |\n```\n\n"
        "```output\nE: bad\n```\n\n````python\n'```'\n````\n"
    )


def test_long_outputs_are_cut_with_a_note() -> None:
    output = {"output_type": "stream", "text": "x" * (LONGEST_OUTPUT + 5)}
    cell = {"cell_type": "code", "source": "", "outputs": [output]}
    text = read_notebook(json.dumps({"cells": [cell]}).encode())
    assert text.endswith(b"x\n(5 more characters)\n```\n")


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b"\xff", b'{"cells": 1}', b'{"cells":' + b"[" * 100_000]
)
def test_what_is_not_a_notebook(data: bytes) -> None:
    assert read_notebook(data) == data


def test_a_catalog_reads_a_notebook_as_markdown(tmp_path: Path) -> None:
    (tmp_path / "n.ipynb").write_text(json.dumps(NOTEBOOK))
    (tmp_path / "other.ipynb").write_text('{"no": "notebook"}')
    catalog = DirectoryTopic(TopicConfig(id="t", root=tmp_path))
    notebook, other = catalog.list().subjects

    whole = catalog.read(notebook)
    assert whole.data.startswith(b"# Title\n")
    assert whole.size == len(whole.data)
    assert catalog.read(notebook, 5) == (b"# Tit", whole.size, None, "")
    assert catalog.read(other).data == b'{"no": "notebook"}'
    os.truncate(tmp_path / "n.ipynb", 20_000_001)
    with pytest.raises(UnreadableError, match="it is larger than"):
        catalog.read(notebook)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda values: (
        st.lists(values, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["cells", "cell_type", "source", "outputs", "data", "text", "text/html", "code"]
            ),
            values | st.just("code"),
            max_size=4,
        )
    ),
)


@given(st.lists(json_values, max_size=5), json_values)
def test_no_notebook_makes_it_fail(cells: list[object], metadata: object) -> None:
    notebook = {"cells": cells, "metadata": metadata}
    assert isinstance(read_notebook(json.dumps(notebook).encode()), bytes)


def test_notebooks_of_format_3_have_worksheets_and_headings() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["A\n", "b"]},
        {
            "cell_type": "code",
            "input": "1",
            "language": "python",
            "outputs": [
                {"output_type": "pyout", "text": ["\x1b[1;31mred\x1b[0m"]},
                {"output_type": "pyerr", "ename": "E", "evalue": "why"},
                {"output_type": "display_data", "png": "aGk="},
            ],
        },
    ]
    data = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}).encode()
    text = "## A b\n\n```python\n1\n```\n\n```output\nred\n```\n\n```output\nE: why\n```\n"
    text += "\n```output\n(png: not shown)\n```\n"
    assert read_notebook(data).decode() == text
