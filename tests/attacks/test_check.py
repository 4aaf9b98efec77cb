"""Directories made to slow `llm kb check` down, or to fill the terminal with its report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_kb.subjects.links import LinkTargets
from llm_kb.subjects.topics import Subject, slugify
from llm_kb.upkeep.check import DANGLING, locate
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.cost import at_most, cases, peak_of

CONFIG = '[kb.topic.t]\nsubjects = "kb"\nintroduction = "x"\n'
MOST_SECONDS = 6.0
"""Of processor time; each of these took minutes, or never ended."""
MOST_OUTPUT = 50_000
SUBJECTS = {f"kb/s{number}.md": "x\n" for number in range(2_000)}

TREES: dict[str, Mapping[str, str]] = {
    "one pattern many times": {**SUBJECTS, "kb/a.md": 'learn("t", "x*") ' * 5_000},
    "many patterns": {
        **SUBJECTS,
        "kb/a.md": "".join(f'learn("t", "x{number}*") ' for number in range(5_000)),
    },
    "references in a long text": {"kb/a.md": "-k t/a\n" * 125_000},
    "one reference to nothing": {"kb/a.md": 'learn("nope", "x")\n' * 50_000},
    "one slug for all": {f"kb/a.{number}": "x\n" for number in range(1_500)},
    "names alike": {
        "kb/" + format(n, "012b").replace("0", "a").replace("1", "A"): "x" for n in range(1_500)
    },
    "hidden subjects that name each other": {
        f"kb/.h{number}.md": " ".join(f"h{other}" for other in range(400)) for number in range(400)
    },
    "unseen characters": {"kb/a.md": "\u200b\n" * 125_000},
    "links of wikis": {**SUBJECTS, "kb/a.md": "[[s1]]" + "[[s1#x]] [[y]]" * 30_000},
    "tags of templates": {
        "kb/a.md": "[[a]]" + "{{< a >}}[[b]]{{< /a >}}" * 20_000 + "{{< a" * 50_000
    },
    "quoted headings": {"kb/a.md": "[x](#y)\n" + "> - 1. " * 100_000 + "\n" + "> # h\n" * 50_000},
    "open quotes": {"kb/a.md": 'learn("t", [' * 50_000 + "](<" * 50_000},
}


@pytest.mark.parametrize("files", cases(TREES, "many patterns", "one pattern many times"))
def test_a_check_ends_and_its_report_is_short(
    run_llm: RunLlm, tmp_path: Path, files: Mapping[str, str]
) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG, **files})
    with at_most(MOST_SECONDS):
        result = run_llm(["kb", "check"])
    assert result.exit_code in {0, 1}
    assert len(result.output) < MOST_OUTPUT


def test_a_thousand_references_are_followed(run_llm: RunLlm, tmp_path: Path) -> None:
    text = "".join(f'learn("t", "x{number}")\n' for number in range(1_001))
    write_files(tmp_path, {"llm-kb.toml": CONFIG, "kb/a.md": text})
    found = json.loads(run_llm(["kb", "check", "--json"]).stdout)
    assert [f["rule"] for f in found] == ["dangling"] * 1_000
    assert len(run_llm(["kb", "check"]).stdout.splitlines()) < 40


def test_the_lines_of_a_page_and_its_findings_do_not_multiply() -> None:
    problems = [("x", (2_000_000 + number, 2_000_001 + number)) for number in range(1_000)]
    with at_most(1.0):
        found = [*locate(DANGLING, "a.md", "\n" * 2_002_000, problems, 1_000)]
    assert [each.line for each in found] == [*range(2_000_001, 2_001_001)]


def test_a_configuration_with_thousands_of_mistakes(run_llm: RunLlm, tmp_path: Path) -> None:
    keys = "".join(f"k{number} = 1\n" for number in range(15_000))
    write_files(tmp_path, {"llm-kb.toml": f"[kb]\n{keys}"})
    result = run_llm(["kb", "check"])
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) <= 55
    assert len(result.output) < MOST_OUTPUT


DEEP = "/".join(["d" * 30] * 100)


def test_the_levels_of_paths_and_their_lengths_do_not_multiply() -> None:
    paths = [f"{DEEP}/{n}.md" for n in range(100)]
    subjects = [Subject(path=path, slug=slugify(path), name=path) for path in paths]
    assert peak_of(lambda: LinkTargets(subjects)) < 4_000_000
    assert LinkTargets(subjects).find(f"{'d' * 30}/7") == [slugify(paths[7])]
