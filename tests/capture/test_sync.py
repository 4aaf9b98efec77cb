"""Stores shared through a remote, on real repositories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_kb.capture.annotation import annotate, parse_live_input
from llm_kb.capture.notes import ANNOTATIONS_REF
from llm_kb.capture.store import DamagedStoreError, load_store, remove_from_store
from llm_kb.capture.sync import pull, sync
from tests.preloaded import Process
from tests.repositories import KNOWLEDGE_REF, Repo, make_clones, make_repo


def push(directory: Path, remote: str) -> list[str]:
    """Return what a `sync` with nothing new on the remote says, but for a line on that."""
    quiet = (f"{remote}: nothing new.", f"{remote}: the remote has no knowledge store.")
    lines = list(sync(directory, remote))
    return [line.replace(HOOKS, "") for line in lines if line not in quiet]


HOOKS = ", without running hooks of a repository on this disk"


def rules(repo: Repo) -> dict[str, str]:
    return {entry.id: entry.rule for entry in load_store(repo.path).entries}


_REMOTE_DAMAGED = (
    r"(?s)store of 'origin' cannot be read, and nothing was changed.*git show [0-9a-f]{40}\n"
)


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Repo, Repo]:
    """Two clones of one bare repository."""
    return make_clones(tmp_path)


def test_what_is_pushed_is_pulled(clones: tuple[Repo, Repo]) -> None:
    one, two = clones
    one.record("a")
    assert push(one.path, "origin") == ["Pushed 1 entry to origin."]
    assert pull(two.path, "origin") == ["Received: conv-1 (*): a", "1 entry."]
    assert rules(two) == {"conv-1": "a"}
    assert two.git("rev-parse", KNOWLEDGE_REF) == one.git("rev-parse", KNOWLEDGE_REF)
    assert pull(two.path, "origin") == ["origin: nothing new."]
    assert push(two.path, "origin") == ["Pushed 1 entry to origin."]
    kept = [each.git("for-each-ref", "--format=%(refname)", "refs/llm-kb") for each in clones]
    assert kept == ["refs/llm-kb/knowledge"] * 2


@pytest.mark.parametrize("first", [0, 1], ids=["one pushes first", "two pushes first"])
def test_clones_that_both_added_entries_converge(clones: tuple[Repo, Repo], first: int) -> None:
    one, two = clones
    one.record("shared")
    push(one.path, "origin")
    pull(two.path, "origin")
    for rule in ("only one", "Said by both."):
        one.record(rule)
    for rule in ("said  by both", "only two"):
        two.record(rule)
    early, late = clones[first], clones[1 - first]
    assert push(early.path, "origin") == ["Pushed 3 entries to origin."]
    words = [line.split()[0] for line in push(late.path, "origin")]
    assert sorted(words) == ["4", "Pushed", "Received:", "Renumbered:"]
    pull(early.path, "origin")
    assert rules(one) == rules(two)
    shared = {rule.lower().replace("  ", " ").strip(".") for rule in rules(one).values()}
    assert (len(rules(one)), shared) == (4, {"shared", "only one", "only two", "said by both"})
    assert one.git("rev-parse", KNOWLEDGE_REF) == two.git("rev-parse", KNOWLEDGE_REF)


def test_a_removed_entry_goes_everywhere_and_stays_gone(clones: tuple[Repo, Repo]) -> None:
    one, two = clones
    one.record("a")
    one.record("b")
    push(one.path, "origin")
    pull(two.path, "origin")
    two.record("c")
    remove_from_store(one.path, "conv-2")
    push(one.path, "origin")
    assert "Removed there: conv-2 (*): b" in push(two.path, "origin")
    pull(one.path, "origin")
    assert rules(one) == rules(two) == {"conv-1": "a", "conv-3": "c"}


def test_a_remote_can_be_a_path(clones: tuple[Repo, Repo]) -> None:
    one, two = clones
    one.record("a")
    pull(two.path, str(one.path))
    assert rules(two) == {"conv-1": "a"}


def test_repositories_of_long_ids_and_shallow_ones_share(tmp_path: Path) -> None:
    one = make_repo(tmp_path / "one", "--object-format=sha256")
    one.git("clone", "--quiet", "--bare", ".", str(tmp_path / "central.git"))
    one.git("remote", "add", "origin", "../central.git")
    one.record("a")
    one.record("b")
    push(one.path, "origin")
    url = (tmp_path / "central.git").as_uri()
    one.git("clone", "--quiet", "--depth=1", url, str(tmp_path / "two"))
    two = Repo(path=tmp_path / "two")
    two.git("fetch", "--quiet", "--depth=1", "origin", f"{KNOWLEDGE_REF}:{KNOWLEDGE_REF}")
    two.record("c")
    assert push(two.path, "origin") == ["Pushed 3 entries to origin."]
    (one.path / "deeper").mkdir()
    assert pull(one.path / "deeper", "origin") == ["Received: conv-3 (*): c", "3 entries."]


def test_a_damaged_store_on_the_remote_leaves_ours_alone(clones: tuple[Repo, Repo]) -> None:
    one, two = clones
    one.write_note("not json")
    one.git("push", "--quiet", "origin", KNOWLEDGE_REF)
    two.record("b")
    before = two.git("rev-parse", KNOWLEDGE_REF)
    with pytest.raises(
        DamagedStoreError,
        match=_REMOTE_DAMAGED,
    ):
        pull(two.path, "origin")
    with pytest.raises(DamagedStoreError):
        push(two.path, "origin")
    assert two.git("rev-parse", KNOWLEDGE_REF) == before


def test_a_remote_that_refuses_is_not_tried_again(clones: tuple[Repo, Repo]) -> None:
    one, _ = clones
    one.record("a")
    shared = one.path.parent / "shared.git"
    one.git(f"--git-dir={shared}", "config", "receive.hideRefs", "refs/notes")
    *_, last = sync(one.path, "origin")
    assert last.startswith("Not pushed to origin: ")
    assert "deny updating a hidden ref" in last
    assert rules(one) == {"conv-1": "a"}


def test_a_hook_of_a_remote_on_this_disk_is_not_run_and_that_is_said(
    clones: tuple[Repo, Repo],
) -> None:
    one, _ = clones
    one.record("a")
    hook = one.path.parent / "shared.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert list(sync(one.path, "origin"))[-1] == f"Pushed 1 entry to origin{HOOKS}."


def test_what_a_forced_fetch_deleted_is_brought_back(clones: tuple[Repo, Repo]) -> None:
    """As a refspec for `refs/notes/*` in a clone's configuration makes it."""
    one, two = clones
    one.record("shared")
    push(one.path, "origin")
    two.record("never pushed")
    two.git("fetch", "--quiet", "--prune", "origin", "+refs/notes/*:refs/notes/*")
    assert rules(two) == {"conv-1": "shared"}
    push(two.path, "origin")
    assert sorted(rules(two).values()) == ["never pushed", "shared"]
    two.git("update-ref", "-d", KNOWLEDGE_REF)
    assert next(sync(two.path, "origin")).startswith("Received: ")
    assert sorted(rules(two).values()) == ["never pushed", "shared"]


def test_push_sends_nothing_but_the_store(clones: tuple[Repo, Repo]) -> None:
    one, _ = clones
    one.git("config", "push.followTags", "true")
    one.commit("local")
    one.git("tag", "-a", "v1", "-m", "v1")
    one.git("update-ref", "refs/notes/other", "HEAD")
    one.record("a")
    before = one.git("ls-remote", "origin").splitlines()
    push(one.path, "origin")
    after = one.git("ls-remote", "origin").splitlines()
    assert [line.split("\t")[1] for line in after if line not in before] == [KNOWLEDGE_REF]


def test_other_notes_of_both_sides_survive_a_merge(clones: tuple[Repo, Repo]) -> None:
    one, two = clones
    for clone, blob in ((one, "1" * 40), (two, "2" * 40)):
        clone.record(f"rule {blob[0]}")
        clone.write_note(f"note {blob[0]}", target=blob)
    push(one.path, "origin")
    push(two.path, "origin")
    assert (two.note(target="1" * 40), two.note(target="2" * 40)) == ("note 1", "note 2")
    assert len(two.note_json()["conventions"]) == 2


def test_unknown_keys_travel(clones: tuple[Repo, Repo]) -> None:
    one, two = clones
    one.record("a")
    raw = one.note_json() | {"future": [1]}
    raw["conventions"][0]["by"] = "me"
    one.write_note(json.dumps(raw))
    two.record("b")
    push(one.path, "origin")
    pull(two.path, "origin")
    assert two.note_json()["future"] == [1]
    assert two.note_json()["conventions"][0]["by"] == "me"


PUSH_MANY = """
import sys
from pathlib import Path
from llm_kb.capture.sync import sync
from llm_kb.knowledge_base.api import KnowledgeBase
(tool,) = KnowledgeBase.discover().added_tools(["emit_knowledge"])
emit = tool.implementation
for number in range(3):
    emit(entry_type="anti_pattern", pattern=f"{sys.argv[1]} number {number}", instead="not")
    list(sync(Path.cwd(), "origin"))
"""


@pytest.mark.slow
def test_clones_that_push_at_the_same_time_lose_nothing(clones: tuple[Repo, Repo]) -> None:
    pushers = [
        Process([f"clone {number}"], program=PUSH_MANY, cwd=clone.path)
        for number, clone in enumerate(clones)
    ]
    assert [pusher.communicate() for pusher in pushers] == [("", "")] * 2
    for clone in clones:
        pull(clone.path, "origin")
    assert rules(clones[0]) == rules(clones[1])
    assert len(rules(clones[0])) == 6


def lesson(repo: Repo, content: str) -> dict[str, str]:
    wisdom = {"category": "gotcha", "content": content}
    live = {"commit": "HEAD", "summary": f"why {repo.path.name}", "wisdom": [wisdom]}
    annotate(repo.path, parse_live_input(json.dumps(live)))
    return wisdom


def test_annotations_travel_and_of_one_commit_ours_stays(clones: tuple[Repo, Repo]) -> None:
    one, two = clones
    lesson(one, "from one")
    push(one.path, "origin")
    lesson(two, "from two")
    elsewhere = two.commit("another")
    lesson(two, "of another commit")
    push(two.path, "origin")
    pulled = pull(one.path, "origin")
    assert pulled[0] == "Annotations of 2 commits received."
    shared = two.git("rev-parse", "HEAD~1")
    for repo in clones:
        assert repo.note_json(ANNOTATIONS_REF, shared)["summary"] == "why two"
        assert repo.note_json(ANNOTATIONS_REF, elsewhere)["summary"] == "why two"
        assert len(pull(repo.path, "origin")) == 1


def test_a_removed_annotation_stays_removed(clones: tuple[Repo, Repo]) -> None:
    one, two = clones
    lesson(one, "a")
    push(one.path, "origin")
    pull(two.path, "origin")
    head = one.head
    one.git("notes", "--ref=chronicle", "remove", "HEAD")
    two.commit("another")
    lesson(two, "b")
    push(one.path, "origin")
    push(two.path, "origin")
    assert head not in two.git("notes", "--ref=chronicle", "list")


def test_a_damaged_store_is_not_pushed(clones: tuple[Repo, Repo]) -> None:
    one, _ = clones
    one.write_note("<<<<<<< ours")
    with pytest.raises(DamagedStoreError, match="cannot be read, and nothing was changed"):
        push(one.path, "origin")
    assert one.git("ls-remote", "origin", "refs/notes/*") == ""
