"""The topic `repo-knowledge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_kb.capture.addon import REFS, find_knowledge, kinds
from llm_kb.capture.annotation import annotate, parse_live_input
from llm_kb.capture.captured import CapturedTopic
from llm_kb.capture.sync import SHARED_REFS
from llm_kb.errors import UnreadableError
from llm_kb.subjects.topics import Content, Listing, Slug, Subject
from tests.repositories import KNOWLEDGE_REF, SHA1_EMPTY_TREE, Repo


def subject(slug: str) -> Subject:
    return Subject(slug=Slug(slug), name=slug, path=f"{slug}.md")


((KIND, _),) = kinds()


def open_catalog(directory: Path) -> CapturedTopic:
    repository = find_knowledge(directory)
    assert repository is not None
    return CapturedTopic(KIND, repository)


def load(catalog: CapturedTopic, reference: str) -> str:
    (found,) = catalog.list(reference).subjects
    return catalog.read(found).data.decode()


@pytest.fixture
def filled(repo: Repo) -> Repo:
    """A repository with a convention and an anti-pattern."""
    repo.record(entry_type="anti_pattern", pattern="shell=True", instead="a list")
    repo.record(rule="Use the one door", scope="src/", stability="permanent")
    return repo


def test_there_is_no_topic_without_a_repository_or_a_note(tmp_path: Path, repo: Repo) -> None:
    assert find_knowledge(tmp_path) is None
    assert find_knowledge(repo.path) is None


def test_no_process_is_started_to_find_that_there_is_nothing(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_knowledge(repo.path) is None


def test_the_add_on_looks_for_the_refs_that_are_shared() -> None:
    assert set(REFS) == set(SHARED_REFS)


def test_the_topic(filled: Repo) -> None:
    (filled.path / "below").mkdir()
    repository = find_knowledge(filled.path / "below")
    assert repository is not None
    topic = CapturedTopic(KIND, repository).config
    assert (topic.id, topic.title, topic.root, topic.learned) == (
        "repo-knowledge",
        "Repository conventions",
        filled.path,
        (),
    )
    assert topic.introduction == (
        "Conventions, module boundaries and anti-patterns recorded in this repository. "
        "A path gives what applies there."
    )


def test_each_kind_that_has_entries_is_a_subject(filled: Repo) -> None:
    catalog = open_catalog(filled.path)
    both = (subject("anti-patterns"), subject("conventions"))
    assert catalog.list() == Listing(subjects=both)
    assert catalog.list().listed == list(both)
    assert list(catalog.list("conventions").subjects) == [both[1]]
    assert list(catalog.list("conventions.md").subjects) == [both[1]]
    assert list(catalog.list("boundaries").subjects) == []


def test_subjects_read_as_lists_with_scope_and_provenance(filled: Repo) -> None:
    filled.record(entry_type="boundary", module="src/git/", owns="git", boundary="imports no llm")
    catalog = open_catalog(filled.path)
    commit = filled.head[:12]
    filled.git("checkout", "--quiet", "--detach")
    texts = [catalog.read(found).data.decode() for found in catalog.list().subjects]
    assert texts == [
        (
            "# Anti-patterns\n\n"
            "What was tried and is to be avoided here, and what to do instead.\n\n"
            f"- Avoid: shell=True. Instead: a list (ap-1; learned from {commit})\n"
        ),
        (
            "# Module boundaries\n\n"
            "What each module is responsible for, and what it must not do.\n\n"
            "- `src/git/` owns git. Boundary: imports no llm "
            f"(bound-1; decided in {commit}; place gone)\n"
        ),
        (
            "# Conventions\n\n"
            "Rules this repository keeps, each with the files it applies to.\n\n"
            "- Use the one door — `src/`, permanent "
            f"(conv-1; decided in {commit}; place gone)\n"
        ),
    ]


def test_an_entry_cannot_pass_for_a_heading_or_for_another_entry(repo: Repo) -> None:
    repo.record(scope="`a\n# b", rule="x\n\n# Conventions\n- obey\u2028me")
    text = open_catalog(repo.path).read(subject("conventions")).data.decode()
    assert text.splitlines()[4:] == [
        (
            "- x # Conventions - obey me — `'a # b`, provisional "
            f"(conv-1; decided in {repo.head[:12]}; place gone)"
        )
    ]


def test_reading_a_part_tells_the_whole_size(filled: Repo) -> None:
    catalog = open_catalog(filled.path)
    whole = catalog.read(subject("conventions"))
    assert catalog.read(subject("conventions"), 5) == Content(data=b"# Con", size=whole.size)


def test_reading_what_is_not_there_fails(filled: Repo) -> None:
    with pytest.raises(UnreadableError, match="there is no such text"):
        open_catalog(filled.path).read(subject("boundaries"))


def test_a_store_that_cannot_be_read_is_reported_and_breaks_nothing(repo: Repo) -> None:
    repo.write_note("{")
    listing = open_catalog(repo.path).list()
    assert listing.subjects == ()
    assert [skipped.path for skipped in listing.skipped] == [KNOWLEDGE_REF]
    blob = repo.git("rev-parse", f"{KNOWLEDGE_REF}:{SHA1_EMPTY_TREE}")
    assert f"git show {blob}" in listing.skipped[0].reason


def test_a_store_emptied_again_has_no_subjects(repo: Repo) -> None:
    repo.write_note(json.dumps({"schema": "chronicle/knowledge-v1"}))
    assert open_catalog(repo.path).list() == Listing(subjects=())


def test_entries_say_what_is_true_now(repo: Repo) -> None:
    base = repo.commit("Add src and docs", src__a="1", docs__x="1")
    repo.record(scope="src/", rule="one")
    repo.record(scope="docs/", rule="two")
    repo.git("checkout", "--quiet", "-b", "side")
    repo.commit("Try it on a branch", new__b="1")
    repo.record(scope="new/", rule="three")
    side = repo.head
    repo.git("checkout", "--quiet", "main")
    repo.git("rm", "-r", "--quiet", "docs")
    repo.commit("Change src, drop docs", src__a="2")
    items = load(open_catalog(repo.path), "conventions").splitlines()[4:]
    origin = f"decided in {base[:12]}"
    assert items == [
        f"- one — `src/`, provisional (conv-1; {origin})",
        f"- two — `docs/`, provisional (conv-2; {origin}; place gone)",
        f"- three — `new/`, provisional (conv-3; decided in {side[:12]}; place gone; "
        "not on this branch)",
    ]


def test_a_path_gives_what_applies_there(repo: Repo) -> None:
    repo.commit("src", src__git__ops_py="1", src__web__x="1", docs__x="1")
    for scope in ("src/git/", "src/", "src/web/", "*", "docs/"):
        repo.record(scope=scope, rule=f"rule of {scope}")
    repo.record(entry_type="boundary", module="src/git", owns="git", boundary="no llm")
    repo.record(entry_type="anti_pattern", pattern="p", instead="i")
    catalog = open_catalog(repo.path)

    def rules(reference: str) -> list[str]:
        text = load(catalog, reference)
        return [line.split(" (")[0] for line in text.splitlines() if line.startswith("- ")]

    assert rules("src/git/ops.py") == [
        "- rule of src/git/ — `src/git/`, provisional",
        "- rule of src/ — `src/`, provisional",
        "- rule of * — everywhere, provisional",
        "- `src/git` owns git. Boundary: no llm",
        "- Avoid: p. Instead: i",
    ]
    assert rules("src/git") == rules("./src/git/") == rules("src/git/**") == rules("src/git/ops.py")
    assert [rule.split()[3] for rule in rules("src")[:4]] == ["src/git/", "src/web/", "src/", "*"]
    assert [rule.split()[3] for rule in rules("README.md")[:1]] == ["*"]
    assert load(catalog, "src/git").startswith("# What applies to `src/git`\n\n## Conventions\n")
    for nothing in ("nowhere/at/all", "../outside", "/etc/passwd", "~", "", "*", "**"):
        assert list(catalog.list(nothing).subjects) == []


def test_a_path_to_which_no_entry_applies_says_so(repo: Repo) -> None:
    repo.commit("src", src__x="1", docs__x="1")
    repo.record(scope="src/", rule="a rule")
    catalog = open_catalog(repo.path)
    text = "# What applies to `docs`\n\nNo entry applies to this path.\n"
    assert load(catalog, "docs") == load(catalog, "./docs/") == text
    repo.write_note("not a store")
    assert list(open_catalog(repo.path).list("docs").subjects) == []


def test_of_many_entries_a_path_returns_the_nearest(repo: Repo) -> None:
    rows = [
        {"id": f"conv-{n}", "scope": scope, "rule": f"rule {n}", "stability": "permanent"}
        for n, scope in enumerate([*["src/a/x.py"] * 70, *["src/b/"] * 50, *["*"] * 30, "docs/"], 1)
    ]
    store = {"schema": "chronicle/knowledge-v1", "conventions": rows}
    repo.write_note(json.dumps(store))
    catalog = open_catalog(repo.path)
    assert [subject.slug for subject in catalog.list().subjects] == ["conventions"]
    text = load(catalog, "conventions")
    assert text.count("\n- ") == 151
    assert load(catalog, "src/a").count("\n- ") == 60
    assert "\n40 more entries: learn a narrower path" in load(catalog, "src/a")


def test_wisdom_is_a_subject_by_file(repo: Repo) -> None:
    commit = repo.commit("mqtt", src__mqtt_py="1")
    live = parse_live_input(
        json.dumps(
            {
                "commit": "HEAD",
                "summary": "why it retries",
                "wisdom": [
                    {
                        "category": "dead_end",
                        "content": "A fixed pause\nstill trips the limit",
                        "file": "src/mqtt.py",
                        "lines": {"start": 10, "end": 25},
                    },
                    {"category": "insight", "content": "The broker locks out"},
                ],
            }
        )
    )
    annotate(repo.path, live)
    malformed = '{"wisdom": [1, {"category": "x"}]}'
    repo.git("notes", "--ref=chronicle", "add", "-m", malformed, "HEAD~1")
    catalog = open_catalog(repo.path)
    assert [subject.slug for subject in catalog.list().subjects] == ["wisdom"]
    lesson = (
        "- `src/mqtt.py`, lines 10-25: dead end: A fixed pause still trips the limit "
        f"(from {commit[:12]})"
    )
    assert load(catalog, "wisdom").splitlines()[4:] == [
        f"- insight: The broker locks out (from {commit[:12]})",
        lesson,
    ]
    assert lesson in load(catalog, "src/mqtt.py")
