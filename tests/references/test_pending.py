"""Pending plans: used only once, refused if changed, and dropped in any state."""

from __future__ import annotations

import copy
import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.errors import UnknownPlanError
from llm_kb.references.library import Library
from llm_kb.references.plan import PendingPlans, Plan, PlannedSource
from llm_kb.references.settings import References
from llm_kb.references.sources.records import GitSource, WebSource
from tests.references.requests import request, use_up

GIT, WEB = GitSource(url="https://e.org/x", commit="1" * 40), WebSource(url="https://e.org/")
PLAN = Plan(
    request=request(GitSource(url="https://e.org/x"), WEB),
    sources=(
        PlannedSource(source=GIT, files=2, size=7, notes=("1 link is left out",)),
        PlannedSource(source=WEB, files=1, size=5, hosts=("e.org",)),
    ),
)
NOW = datetime(2025, 6, 15, 10, tzinfo=timezone.utc)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture
def pending(tmp_path: Path) -> PendingPlans:
    """Plans of which one waits."""
    pending = PendingPlans(Library(root=tmp_path, settings=References(), clock=lambda: NOW))
    pending.ask_later(PLAN)
    return pending


def change(pending: PendingPlans, table: Any) -> None:
    (pending.directory / f"{PLAN.id}.json").write_text(json.dumps(table))


def stored(pending: PendingPlans) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((pending.directory / f"{PLAN.id}.json").read_text())
    return table


def test_a_plan_waits_as_it_was_stored(pending: PendingPlans) -> None:
    plans, problems = pending.read_all()
    assert (plans, problems) == ([PLAN], [])


def test_a_plan_that_was_changed_is_told_of_and_can_be_dropped(pending: PendingPlans) -> None:
    table = stored(pending)
    table["plan"]["request"]["title"] = "Another"
    change(pending, table)
    with pytest.raises(UnknownPlanError, match="its file was changed since it was planned"):
        use_up(pending, PLAN)
    assert pending.read_all() == (
        [],
        [f"no plan '{PLAN.id}' to approve: its file was changed since it was planned"],
    )
    assert (pending.drop(PLAN.id), pending.drop(PLAN.id)) == (True, False)
    assert pending.read_all() == ([], [])


@pytest.mark.parametrize("plan_id", ["", "x", "../topic-x/topic", "A" * 12, f"{PLAN.id}/"])
def test_nothing_but_a_plan_is_dropped(pending: PendingPlans, plan_id: str) -> None:
    with pytest.raises(UnknownPlanError, match="an id is 32 hexadecimal digits"):
        pending.drop(plan_id)


def test_files_that_are_none_of_ours_are_passed_over(pending: PendingPlans) -> None:
    (pending.directory / "notes").mkdir()
    assert pending.read_all()[1] == []


def places(table: Any) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a table."""
    inner = table.items() if isinstance(table, dict) else enumerate(table)
    found: list[tuple[Any, ...]] = []
    for key, value in inner:
        found.append((key,))
        if isinstance(value, dict | list):
            found += [(key, *rest) for rest in places(value)]
    return found


@given(data=st.data())
def test_whatever_stands_in_a_plan_it_can_be_listed_and_dropped(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    pending = PendingPlans(Library(root=tmp_path_factory.mktemp("pending"), settings=References()))
    pending.ask_later(PLAN)
    table = stored(pending)
    *path, last = data.draw(st.sampled_from(places(table)))
    changed = copy.deepcopy(table)
    inner = changed
    for key in path:
        inner = inner[key]
    inner[last] = data.draw(ANYTHING)
    change(pending, changed)
    plans, problems = pending.read_all()
    assert len(plans) + len(problems) == 1
    assert all(waiting == PLAN for waiting in plans)
    assert pending.drop(PLAN.id)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "[" * 100_000, "\ud800"], ids=["", "list", "null", "deep", "odd"]
)
def test_a_file_that_is_no_plan_is_told_of(pending: PendingPlans, text: str) -> None:
    path = pending.directory / f"{PLAN.id}.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    (problem,) = pending.read_all()[1]
    assert problem.startswith(f"no plan '{PLAN.id}' to approve: its file cannot be used: ")


def test_what_is_no_file_is_no_plan(pending: PendingPlans) -> None:
    for name, make in {"a": os.mkfifo, "b": os.mkdir}.items():
        make(pending.directory / f"{name * 32}.json")
    plans, problems = pending.read_all()
    assert (list(plans), len(problems)) == ([PLAN], 2)
    for name in "ab":
        assert pending.drop(name * 32)
    assert pending.read_all()[1] == []


def test_a_plan_of_an_earlier_version_is_refused_in_few_words(pending: PendingPlans) -> None:
    table = stored(pending)
    del table["approved"]
    change(pending, table)
    (problem,) = pending.read_all()[1]
    assert problem.endswith("its file cannot be used: plan: approved: missing")
