"""Commits read from real repositories."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llm_kb.capture.commits import MAX_DIFF_CHARS, plan_commits, read_briefing, resolve_commits
from llm_kb.capture.emission import parse_emission
from llm_kb.capture.store import UnknownCommitError, add_to_store, load_store
from tests.capture.repositories import Repo, make_empty_repo


def test_a_revision_is_one_commit_and_a_range_all_in_it_oldest_first(repo: Repo) -> None:
    first = repo.head
    second, third = repo.commit("second"), repo.commit("third")
    for revisions, expected in (
        (("HEAD",), (third,)),
        (("HEAD~1",), (second,)),
        (("HEAD~2..HEAD",), (second, third)),
        ((f"{first}..HEAD",), (second, third)),
    ):
        assert resolve_commits(repo.path, revisions) == expected
    assert set(resolve_commits(repo.path, (second, first))) == {first, second}


def test_merges_are_left_out(repo: Repo) -> None:
    base = repo.head
    repo.git("checkout", "--quiet", "-b", "side")
    side = repo.commit("side", side="1")
    repo.git("checkout", "--quiet", "main")
    main = repo.commit("main", main="1")
    repo.git("merge", "--quiet", "--no-edit", "side")
    found = resolve_commits(repo.path, (f"{base}..HEAD",))
    assert set(found) == {side, main}
    assert resolve_commits(repo.path, ("HEAD",)) == ()


@pytest.mark.parametrize(
    "name", ["nothing", "--all", "--output=x", "a b", "", "HEAD~9..HEAD", "HEAD^2"]
)
def test_what_is_no_revision_is_an_error(repo: Repo, name: str) -> None:
    with pytest.raises(UnknownCommitError, match="no commit is called"):
        resolve_commits(repo.path, (name,))


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    repo = make_empty_repo(tmp_path / "empty")
    with pytest.raises(UnknownCommitError, match="has no commit yet"):
        resolve_commits(repo.path, ("HEAD",))


def test_a_commit_with_its_message_and_diff(repo: Repo) -> None:
    commit = repo.commit("Say more\n\nMuch more.", README_md="hello\nworld\n")
    assert read_briefing(repo.path, commit).subject == "Say more"
    briefing = read_briefing(repo.path, commit)
    assert briefing.left_out == ()
    assert briefing.text == (
        f"Commit {commit}\n\n"
        "<message>\nSay more\n\nMuch more.\n</message>\n\n"
        "<diff>\n"
        "diff --git a/README.md b/README.md\n"
        "index ce01362..94954ab 100644\n"
        "--- a/README.md\n"
        "+++ b/README.md\n"
        "@@ -1 +1,2 @@\n"
        " hello\n"
        "+world\n"
        "</diff>"
    )


def test_the_first_commit_has_a_diff(repo: Repo) -> None:
    assert "+hello\n" in read_briefing(repo.path, repo.head).text


def test_binary_and_generated_files_are_left_out_and_named(repo: Repo) -> None:
    commit = repo.commit("m", a_py="x = 1\n", logo_png=b"\0\1", Cargo_lock="secret\n" * 9)
    briefing = read_briefing(repo.path, commit)
    assert briefing.left_out == ("Cargo.lock (generated)", "logo.png (binary)")
    assert "x = 1" in briefing.text
    assert "secret" not in briefing.text


def test_a_commit_of_generated_files_alone_shows_no_diff(repo: Repo) -> None:
    """And not, for want of paths, the diff of everything."""
    commit = repo.commit("m", Cargo_lock="secret\n")
    assert "<diff>\n</diff>" in read_briefing(repo.path, commit).text


def test_an_empty_commit(repo: Repo) -> None:
    assert read_briefing(repo.path, repo.commit("nothing")).text.endswith("<diff>\n</diff>")


def test_a_diff_without_end_is_cut_at_a_line_and_named(repo: Repo) -> None:
    commit = repo.commit("m", big_txt="x" * 79 + "\n" * 1 + ("y" * 79 + "\n") * 20_000)
    briefing = read_briefing(repo.path, commit)
    assert len(briefing.text) < MAX_DIFF_CHARS + 1000
    assert briefing.text.count("+" + "y" * 79 + "\n") > 600
    (notice,) = briefing.left_out
    assert re.fullmatch(r"big\.txt \(19,\d+ lines not shown\)", notice)


def test_odd_names_of_files(repo: Repo) -> None:
    for name in ("a\tb", "new\nline", "-x", ":(top)q", "[ab]*"):
        (repo.path / name).write_text(f"<{name!r}>\n")
    briefing = read_briefing(repo.path, repo.commit("odd"))
    assert briefing.text.count("\n+<") == 5


def test_the_repository_runs_nothing_to_show_a_diff(repo: Repo) -> None:
    repo.commit("attributes", _gitattributes="*.md diff=evil\n")
    marker = repo.path / "ran"
    for key in ("diff.evil.textconv", "diff.evil.command", "diff.external"):
        repo.git("config", key, f"touch {marker};:")
    repo.git("config", "color.ui", "always")
    briefing = read_briefing(repo.path, repo.commit("m", README_md="changed\n"))
    assert "\n+changed\n" in briefing.text
    assert not marker.exists()


def test_a_small_change_beside_a_large_one_is_seen(repo: Repo) -> None:
    large = "".join(f"row {number}\n" for number in range(30_000))
    commit = repo.commit("vendor things", data_csv=large, zz_real_py="value = 1\n")
    briefing = read_briefing(repo.path, commit)
    assert "+value = 1\n" in briefing.text
    assert len(briefing.left_out) == 1


def test_files_that_were_not_read_are_named(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_kb.capture.commits._MAX_BYTES", 2000)
    briefing = read_briefing(repo.path, repo.commit("m", a_py="x\n" * 2000, b_py="y\n"))
    assert briefing.left_out == ("b.py (not read)",)
    files = {f"f{number}_py": "y\n" for number in range(300)}
    huge = read_briefing(repo.path, repo.commit("m", **files))
    assert (huge.subject, huge.skip_reason) == ("m", "nothing to see in them")


def test_a_file_that_becomes_a_link_is_one_file(repo: Repo) -> None:
    (repo.path / "README.md").unlink()
    (repo.path / "README.md").symlink_to("a.py")
    briefing = read_briefing(repo.path, repo.commit("m", a_py="x = 1\n", z_lock="secret\n"))
    assert briefing.text.count("diff --git a/README.md b/README.md\n") == 2
    assert "x = 1" in briefing.text
    assert "secret" not in briefing.text


def test_a_renamed_file(repo: Repo) -> None:
    repo.commit("m", a_py="x = 1\n" * 30)
    repo.git("mv", "a.py", "b.py")
    briefing = read_briefing(repo.path, repo.commit("move"))
    assert "rename from a.py\nrename to b.py\n" in briefing.text


def test_known_entries_of_the_places_touched_are_named(repo: Repo) -> None:
    for scope, rule in (("src/", "in src"), ("docs/", "in docs"), ("src/a.py", "in a")):
        fields = {"entry_type": "convention", "scope": scope, "rule": rule}
        add_to_store(repo.path, parse_emission(fields))
    commit = repo.commit("m", src__a_py="x\n")
    text = read_briefing(repo.path, commit, load_store(repo.path)).text
    assert text.endswith("\n- conv-3 (src/a.py): in a\n- conv-1 (src/): in src")


def test_a_commit_at_which_a_shallow_clone_ends_is_left_out(repo: Repo, tmp_path: Path) -> None:
    repo.commit("second", a="1")
    third = repo.commit("third", a="2")
    shallow = tmp_path / "shallow"
    repo.git("clone", "--quiet", "--depth=2", f"file://{repo.path}", str(shallow))
    assert resolve_commits(shallow, ("HEAD",)) == (third,)
    assert resolve_commits(shallow, ("HEAD~1", "HEAD")) == (third,)


def test_commits_of_bots_and_without_a_diff_are_skipped_in_a_range(repo: Repo) -> None:
    empty = repo.commit("empty")
    kept = repo.commit("kept", a_py="1")
    repo.git("config", "user.name", "dependabot[bot]")
    by_bot = repo.commit("Bump x\n\nbody", a_py="2")
    planned, skipped = plan_commits(repo.path, [empty, kept, by_bot])
    assert [briefing.commit for briefing in planned] == [kept]
    assert skipped == {"nothing to see in them": 1, "made by bots": 1}
    assert [briefing.subject for briefing in plan_commits(repo.path, [by_bot])[0]] == ["Bump x"]
