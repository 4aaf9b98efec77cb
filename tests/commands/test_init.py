"""`llm kb init`: all pages of a project become topics, or are named as left out."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from llm_kb.config.load import load_config
from llm_kb.config.settings import Config
from llm_kb.errors import KbError
from llm_kb.subjects.topics import Layout
from llm_kb.upkeep import first_topics
from llm_kb.upkeep.first_topics import propose_topics
from tests.conftest import RunLlm

NEXT = "Next: llm kb search how do I contribute\n"


def load(tmp_path: Path, user_dir: Path) -> Config:
    return load_config(tmp_path, user_dir=user_dir, environ=os.environ)


def make_files(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(os.fsencode(f"{name}\n"))


def list_slugs(run_llm: RunLlm, topic: str) -> list[str]:
    return [row["slug"] for row in json.loads(run_llm(["kb", "list", topic, "--json"]).stdout)]


def list_topics(root: Path) -> dict[str, str]:
    """Return the directory of each proposed topic."""
    return {topic.id: topic.fields["subjects"] for topic in propose_topics(root).topics}


def test_an_empty_directory_gets_a_topic_to_write_into(tmp_path: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "init"])
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "",
        f"Wrote {tmp_path}/llm-kb.toml\n"
        "Found nothing to read; kb/project is the topic for what you write\n"
        "Next: llm kb new project/overview\n",
    )
    assert run_llm(["kb", "check"]).exit_code == 0
    assert run_llm(["kb", "new", "project/overview"]).exit_code == 0
    assert list_slugs(run_llm, "project") == ["overview"]
    assert "- project (**Project**)" in run_llm(["kb", "prompt"]).stdout


def test_what_it_took_and_left_out_is_printed(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "README.md", "AGENTS.md", "LICENSE.md", "CHANGELOG.md", "tests/a/input.md")
    make_files(tmp_path, "docs/a.md", "docs/pic.png", "kb/style/c.md", "src/x.py", "tests/b.md")
    make_files(tmp_path, ".claude/skills/review/SKILL.md", ".claude/commands/fix.md")
    make_files(
        tmp_path, ".claude/skills/review/more.md", "web/node_modules/x/.env", "docs/blog/1.md"
    )
    skill = "---\nname: review\ndescription: How to review.\n---\n"
    (tmp_path / ".claude/skills/review/SKILL.md").write_text(skill)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert run_llm(["kb", "init"]).stderr == (
        f"Wrote {tmp_path}/llm-kb.toml\n"
        "  overview      2 subjects           ~6 tokens  AGENTS.md, README.md\n"
        "  docs           1 subject           ~3 tokens  docs\n"
        "  style          1 subject           ~4 tokens  kb/style\n"
        "  claude         1 subject           ~6 tokens  .claude\n"
        "  skills         1 subject          ~13 tokens  .claude/skills, and 1 hidden\n"
        "Left out:\n"
        "       2  change logs, release notes and blogs (CHANGELOG.md, docs/blog/1.md)\n"
        "       2  tests and their data (tests/a/input.md, tests/b.md)\n"
        "       1  other page (LICENSE.md)\n"
        "       3  other files\n"
        "All of it is ~32 tokens, and goes with every -T learn.\n"
        f"{NEXT}"
    )
    topics = {topic.id: topic for topic in load(tmp_path, user_dir).topics}
    assert topics["overview"].include == ("/*.md",)
    assert topics["overview"].ignore == ("/CHANGELOG.md", "/LICENSE.md")
    assert (topics["docs"].include, topics["docs"].ignore) == (("*.md",), ("/blog/",))
    assert topics["skills"].layout is Layout.SKILLS
    assert run_llm(["kb", "check"]).stdout == "nothing wrong in 6 subjects\n"


def test_of_many_reasons_those_with_the_most_pages_have_a_line(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "README.md", *(f"tests/input-{n}.md" for n in range(4)), "v.md", "v.py")
    make_files(tmp_path, *(f"blog/{n}.md" for n in range(3)), "vendor/a.md", "vendor/b.md")
    make_files(tmp_path, "LICENSE.md", "CODE_OF_CONDUCT.md", "c.md", "d.md", "redirects.md")
    shown = run_llm(["kb", "init", "--dry-run"]).stderr
    assert shown.partition("Left out:\n")[2] == (
        "       4  tests and their data (tests/input-0.md, and 3 more)\n"
        "       3  change logs, release notes and blogs (blog/0.md, and 2 more)\n"
        "       5  other pages (CODE_OF_CONDUCT.md, LICENSE.md, and 3 more)\n"
        "       1  other file\n"
        "All of it is ~9 tokens, and goes with every -T learn.\n"
        "Nothing was written\n"
    )


@pytest.mark.parametrize(
    ("files", "learned"),
    [
        pytest.param({"README.md": 100, "docs/a.md": 5_800, "docs/.b.md": 999}, ("**",),
                     id="small"),
        pytest.param({"README.md": 100, "docs/a.md": 5_960}, (), id="too large"),
        pytest.param({"README.md": 100, "docs/.h.md": 99}, (), id="a topic of hidden pages"),
    ],
)  # fmt: skip
def test_what_is_small_goes_with_every_request_whole_and_guides_do_anyway(
    tmp_path: Path,
    user_dir: Path,
    run_llm: RunLlm,
    files: dict[str, int],
    learned: tuple[str, ...],
) -> None:
    make_files(tmp_path, *files)
    for name, size in files.items():
        (tmp_path / name).write_text("Words.\n" * (size // 7))
    shown = run_llm(["kb", "init"]).stderr
    config = load(tmp_path, user_dir)
    assert config.guides
    assert {topic.learned for topic in config.topics} == {learned}
    assert ("goes with every -T learn." in shown) is bool(learned)
    assert run_llm(["kb", "check"]).exit_code == 0
    (tmp_path / "new.md").write_text("New.\n")
    run_llm(["kb", "init", "-y"])
    assert load(tmp_path, user_dir).topics[0].learned == learned


PAGES = "README.md AGENTS.md"
MANY = " ".join(f"lib/{n}/README.md lib/{n}/x.go" for n in range(12))


@pytest.mark.parametrize(
    ("files", "topics", "left_out"),
    [
        pytest.param("a.ipynb b.ipynb README.md", {"overview": "."}, {}, id="notebooks"),
        pytest.param(f"{PAGES} docs/a.md src/x/README.md", {"overview": ".", "docs": "docs"}, {},
                     id="few pages beside the code"),
        pytest.param(f"{PAGES} a/b.md a/c.md d/e.md d/.f.md", {"overview": ".", "pages": "."}, {},
                     id="some pages beside the code"),
        pytest.param(MANY, {"lib": "lib"}, {}, id="many pages beside the code"),
        pytest.param("src/content/docs/a.md src/content/docs/b/c.mdx src/x.ts " + MANY,
                     {"overview": ".", "lib": "lib"}, {},
                     id="few pages deep in the code"),
        pytest.param("kb/project/a.md kb/skills/b.md kb/c.md",
                     {"kb": "kb", "project": "kb/project", "skills": "kb/skills"}, {},
                     id="topics in kb"),
        pytest.param(".jp/kb/project/a.md .jp/kb/skills/b.md .jp/c.md",
                     {"jp": ".jp", "project": ".jp/kb/project", "skills": ".jp/kb/skills"}, {},
                     id="topics in a hidden directory"),
        pytest.param("docs/kb/style/a.md docs/b.md", {"docs": "docs", "style": "docs/kb/style"}, {},
                     id="topics in documentation"),
        pytest.param("web/.cursor/rules/a.mdc .github/b.md",
                     {"cursor": "web/.cursor", "github": ".github"}, {}, id="hidden directories"),
        pytest.param(".claude/skills/e2e/SKILL.md .claude/skills/e2e/examples/b.md"
                     " .claude/skills/README.md",
                     {"claude": ".claude", "skills": ".claude/skills"}, {},
                     id="all that comes with a skill"),
        pytest.param("docs/a.md website/docs/b.md documentation/c.md",
                     {"docs": "docs", "documentation": "documentation", "website": "website"}, {},
                     id="several documentations"),
        pytest.param("doc/index.rst doc/_templates/b.html", {"doc": "doc"}, {}, id="pages of HTML"),
        pytest.param("README README-hacking README-install TODO NEWS build-aux/a",
                     {"overview": "."}, {}, id="texts without an extension"),
        pytest.param("docs/i.md docs/v1/i.md docs/v1/a.md docs/v1/b.md docs/v2/i.md docs/v2/a.md"
                     " docs/v2/b.md", {"docs": "docs"},
                     {"versions": "docs/v1/a.md docs/v1/b.md docs/v1/i.md"}, id="versions"),
        pytest.param("docs/en/a.md docs/de/a.md README.md README.fr.md", {"overview": ".",
                     "docs": "docs"}, {"languages": "README.fr.md docs/de/a.md"}, id="languages"),
        pytest.param(f"{PAGES} CLAUDE.md=AGENTS.md GEMINI.md=AGENTS.md"
                     " .github/copilot-instructions.md=AGENTS.md", {"overview": "."},
                     {"copies": ".github/copilot-instructions.md CLAUDE.md GEMINI.md"},
                     id="a guide under four names"),
        pytest.param("README.md CLAUDE.md AGENTS.md->CLAUDE.md docs/a.md docs/b.md->../README.md",
                     {"overview": ".", "docs": "docs"}, {"copies": "AGENTS.md docs/b.md"},
                     id="links"),
        pytest.param(".claude/skills/a/SKILL.md .claude/skills/b/SKILL.md .cursor/skills/a/more.md"
                     " .cursor/skills/a/SKILL.md=.claude/skills/a/SKILL.md"
                     " .cursor/skills/c/SKILL.md",
                     {"skills": ".claude/skills", "cursor-skills": ".cursor/skills"},
                     {"copies": ".cursor/skills/a/SKILL.md .cursor/skills/a/more.md"},
                     id="a skill of two tools"),
        pytest.param("docs/changes.rst docs/changes_1.x.rst docs/change-of-state.md CHANGES-2.md"
                     " docs/changelog/1.md 7_0_release_notes.md editorialize-changelog.md"
                     " docs/changes/fixed/14240.md docs/changes/why.md",
                     {"docs": "docs", "overview": "."},
                     {"changes": "7_0_release_notes.md CHANGES-2.md docs/changelog/1.md"
                      " docs/changes.rst docs/changes/fixed/14240.md docs/changes_1.x.rst"},
                     id="change logs"),
        pytest.param("README.md .github/FLAKY_TEMPLATE.md .github/ISSUE_TEMPLATE/bug.md LICENSE.md"
                     " doc/fdl.texi doc/x.texi", {"overview": ".", "doc": "doc"},
                     {"formalities": ".github/FLAKY_TEMPLATE.md .github/ISSUE_TEMPLATE/bug.md"
                      " LICENSE.md doc/fdl.texi"}, id="forms and licences"),
        pytest.param("README.md site/blog/1.md _layouts/docs/a.md docs/redirect.adoc docs/b.adoc",
                     {"overview": ".", "docs": "docs"},
                     {"changes": "site/blog/1.md",
                      "templates": "_layouts/docs/a.md docs/redirect.adoc"}, id="parts of a site"),
        pytest.param("README.md e2e-tests/a.md docs/tests/b.md pkg/docs/testdata/c.md",
                     {"overview": ".", "docs": "docs", "pkg-docs": "pkg/docs"},
                     {"tests": "e2e-tests/a.md"}, id="tests"),
        pytest.param("README.md examples/a.md examples/b.md demo/c.md demo/d.py",
                     {"overview": "."},
                     {"examples": "demo/c.md"}, id="examples that are pages"),
    ],
)  # fmt: skip
def test_a_tree_has_its_topics_and_all_else_is_left_out_for_a_reason(
    tmp_path: Path,
    run_llm: RunLlm,
    files: str,
    topics: dict[str, str],
    left_out: dict[str, str],
) -> None:
    """`a=b` is a copy of b, and `a->b` a link. The configuration lists what was taken."""
    for file in files.split():
        name, _, target = file.partition("->")
        name, _, original = name.partition("=")
        make_files(tmp_path, name)
        if target:
            (tmp_path / name).unlink()
            (tmp_path / name).symlink_to(target)
        if original:
            (tmp_path / name).write_bytes((tmp_path / original).read_bytes())
    found = propose_topics(tmp_path)
    assert {topic.id: topic.fields["subjects"] for topic in found.topics} == topics
    assert {reason: " ".join(sorted(paths)) for reason, paths in found.left_out.items()} == left_out
    run_llm(["kb", "init"])
    listed = {topic["id"]: topic for topic in json.loads(run_llm(["kb", "list", "--json"]).stdout)}
    for topic in found.topics:
        shown = listed[topic.id]
        assert (shown["subjects"], shown["tokens"], shown["skipped"]) == (
            topic.subjects,
            topic.tokens,
            0,
        )
        rows = json.loads(run_llm(["kb", "list", topic.id, "--all", "--json"]).stdout)
        place = "" if topic.fields["subjects"] == "." else f"{topic.fields['subjects']}/"
        assert sorted(place + row["path"] for row in rows) == sorted(topic.pages)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param({"README.md": "# Our Handbook", "leave.md": "# Time off", "pay.md": "# Pay"},
                     ("Our Handbook", "Time off, Pay, README"), id="a handbook"),
        pytest.param({"README.md": "![logo](x.png)", "CONTRIBUTING.md": "# How to help us"},
                     ("Overview", "CONTRIBUTING, README"), id="no heading"),
        pytest.param({f"docs/{n}.md": f"# Page {n}\n{'Long. ' * n}" for n in range(1, 9)},
                     ("Docs", "Page 8, Page 7, Page 6, Page 5, Page 4 and 3 more"), id="many"),
        pytest.param({"docs/x-{version}.md": "# x-{version}", "docs/.hidden.md": "# Secret"},
                     ("Docs", "x {version}"), id="a template, and a hidden page"),
        pytest.param({".a/skills/mend/SKILL.md": "---\nname: mend\n---\n",
                      ".a/skills/mend/b.md": "# B"},
                     ("Skills", "mend"), id="a skill"),
    ],
)  # fmt: skip
def test_a_topic_is_named_by_the_titles_of_its_pages(
    tmp_path: Path, texts: dict[str, str], expected: tuple[str, str]
) -> None:
    make_files(tmp_path, *texts)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (topic,) = propose_topics(tmp_path).topics
    assert (topic.fields["title"], topic.fields["introduction"]) == expected


@pytest.mark.parametrize(
    ("files", "patterns"),
    [
        pytest.param("docs/a.md docs/b.rst docs/c.css", (["*.md", "*.rst"], []), id="kinds"),
        pytest.param("docs/a.md docs/b.md", ([], []), id="pages alone"),
        pytest.param("docs/a.md docs/x/CHANGELOG.md docs/y/CHANGELOG.md docs/z.py",
                     (["*.md"], ["CHANGELOG.md"]), id="one name"),
        pytest.param("docs/a.md docs/b.md docs/a.de.md docs/b.de.md docs/a.fr.md",
                     ([], ["*.de.md", "/a.fr.md"]), id="one end of names"),
        pytest.param("docs/a.md docs/x/blog/1.md docs/y/blog/2.md docs/z/blog/3.md docs/z.png",
                     (["*.md"], ["blog/"]), id="one directory"),
        pytest.param(" ".join(f"docs/{n}.md docs/{n}/LICENSE.md docs/{n}/[a] !{n}/b.md"
                     for n in range(3)), (["*.md"], ["LICENSE.md"]), id="names with signs"),
    ],
)  # fmt: skip
def test_patterns_are_written_and_not_lists_of_files(
    tmp_path: Path, files: str, patterns: tuple[list[str], list[str]]
) -> None:
    make_files(tmp_path, *files.split())
    topic = next(each for each in propose_topics(tmp_path).topics if each.id == "docs")
    assert (topic.fields["include"], topic.fields["ignore"]) == patterns


def test_every_page_is_in_a_topic_or_left_out(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "README.md", "LICENSE", "docs/a.md", "docs/b.json", "x/y/z/deep.md")
    make_files(tmp_path, "x/a.py", "web/AGENTS.md", "web/x.ts", ".cursorrules", "q/s.rst")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "pages") == ["q/s", "web/AGENTS", "x/y/z/deep"]
    assert list_slugs(run_llm, "docs") == ["a"]
    assert run_llm(["kb", "show", "overview/cursorrules"]).stdout == ".cursorrules\n"
    # A new page is taken without a change of the configuration.
    make_files(tmp_path, "x/new.md", "docs/c.md")
    assert list_slugs(run_llm, "pages") == ["q/s", "web/AGENTS", "x/new", "x/y/z/deep"]
    assert list_slugs(run_llm, "docs") == ["a", "c"]


def test_git_decides_what_belongs_to_the_project(tmp_path: Path) -> None:
    make_files(tmp_path, "README.md", "gen/a.md", "gen/b.md", "gen/c.md", "sub/.x/made.md")
    (tmp_path / ".gitignore").write_text("/gen/\nmade.md\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert list_topics(tmp_path) == {"overview": "."}


def test_in_a_directory_that_git_ignores_all_files_are_meant(tmp_path: Path) -> None:
    make_files(tmp_path, "notes/README.md", "notes/sub/.git/HEAD", "notes/sub/a.md")
    (tmp_path / ".gitignore").write_text("/notes/\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert [topic.pages for topic in propose_topics(tmp_path / "notes").topics] == [["README.md"]]


@pytest.mark.parametrize(
    ("target", "level"),
    [("../outside.md", "warning"), ("gone.md", "error"), ("loop.md", "error")],
)
def test_a_link_that_leads_nowhere_is_reported_and_works_once_it_leads_to_a_page(
    tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, target: str, level: str
) -> None:
    make_files(tmp_path, "outside.md", "w/README.md")
    (tmp_path / "w/loop.md").symlink_to("AGENTS.md")
    (tmp_path / "w/AGENTS.md").symlink_to(target)
    monkeypatch.chdir(tmp_path / "w")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "overview") == ["README"]
    assert run_llm(["kb", "check"]).stdout.endswith(f"\n1 {level} in 1 subject\n")
    (tmp_path / "w/AGENTS.md").unlink()
    make_files(tmp_path, "w/AGENTS.md")
    assert list_slugs(run_llm, "overview") == ["AGENTS", "README", "loop"]


@pytest.mark.parametrize(
    "name",
    [".cursorrules", ".windsurfrules", ".clinerules", ".roorules", ".roorules-code", ".goosehints",
     ".rules", ".augment-guidelines", ".openhands_instructions"],
)  # fmt: skip
def test_a_hidden_guide_is_a_path_written_out_and_is_listed(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm, name: str
) -> None:
    make_files(tmp_path, name, f"docs/{name}", "docs/a/b.md", "docs/c/d.md", ".other", ".env.md")
    (tmp_path / "docs" / name).write_text("Other rules.\n")
    run_llm(["kb", "init"])
    slug = name.lstrip(".")
    assert list_slugs(run_llm, "overview") == [slug]
    assert list_slugs(run_llm, "docs") == sorted(["a/b", "c/d", slug])
    topics = {topic.id: topic for topic in load(tmp_path, user_dir).topics}
    assert topics["overview"].include == (f"/{name}",)
    assert name in run_llm(["kb", "search", "-t", "overview", name.lstrip(".")]).stdout
    assert run_llm(["kb", "check"]).exit_code == 0


def test_another_hidden_page_stays_hidden(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "docs/.draft.md", "docs/a.md", "docs/b.png")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "docs") == ["a"]
    assert run_llm(["kb", "show", "docs/draft"]).stdout == "docs/.draft.md\n"


def test_names_that_no_topic_can_hold_are_named(tmp_path: Path, run_llm: RunLlm) -> None:
    bad = os.fsdecode(b"\xff")
    make_files(tmp_path, "README.md", f"b{bad}.md", "c\u200b.md", f"x{bad}/a.md", "docs/a-b.md")
    make_files(tmp_path, "docs/a\u200bb.md", "docs/bad\n.md", f"docs/bad{bad}.md", "docs/a\\b.md")
    make_files(tmp_path, "docs/a\U000e0041b.md", "docs/a\\u0041.md")
    shown = run_llm(["kb", "init"]).stderr
    assert "       9  pages with names that no topic can hold (b\\udcff.md, and 8 more)\n" in shown
    assert list_slugs(run_llm, "overview") == ["README"]
    assert list_slugs(run_llm, "docs") == ["a-b"]


def test_again_it_proposes_what_is_new(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "README.md", "LICENSE.md", "a.txt")
    run_llm(["kb", "init"])
    rest = "Left out:\n       1  other page (LICENSE.md)\n       1  other file\n"
    assert run_llm(["kb", "init"]).stderr == f"{rest}Every other page is in a topic already\n"
    make_files(tmp_path, "docs/a.md", "more.rst")
    before = (tmp_path / "llm-kb.toml").read_text()
    assert run_llm(["kb", "init"]).stderr == (
        "  overview-2       1 subject           ~3 tokens  more.rst\n"
        "  docs             1 subject           ~3 tokens  docs\n"
        f"{rest}"
        f"Error: there is no terminal to ask on: Add them to {tmp_path}/llm-kb.toml?"
        " Pass -y to say yes\n"
    )
    assert (tmp_path / "llm-kb.toml").read_text() == before
    run_llm(["kb", "init", "-y"])
    assert (tmp_path / "llm-kb.toml").read_text().startswith(before)
    assert list_slugs(run_llm, "docs") == ["a"]
    assert list_slugs(run_llm, "overview-2") == ["more"]


def test_what_the_settings_of_a_topic_leave_out_is_not_proposed(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "docs/a.md", "docs/drafts/b.md")
    config = '[kb.topic.docs]\nsubjects = "docs"\nignore = ["drafts/"]\n'
    (tmp_path / "llm-kb.toml").write_text(config)
    assert run_llm(["kb", "init", "-y"]).exit_code == 0
    assert (tmp_path / "llm-kb.toml").read_text() == config


def test_a_dry_run_prints_the_same_and_writes_nothing(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "README.md", "CHANGELOG.md")
    shown = run_llm(["kb", "init", "--dry-run"])
    assert not (tmp_path / "llm-kb.toml").exists()
    written = run_llm(["kb", "init"])
    report = shown.stderr.removesuffix("Nothing was written\n")
    assert written.stderr == f"Wrote {tmp_path}/llm-kb.toml\n{report}{NEXT}"
    assert (tmp_path / "llm-kb.toml").read_text() == shown.stdout


def test_a_directory_of_another_user_is_named_before_it_is_written_to(
    tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path, "README.md")
    monkeypatch.setattr("llm_kb.commands.init.find_foreign_owner", lambda _: 1234)
    lines = run_llm(["kb", "init"]).stderr.splitlines()
    assert lines[:3] == [
        f"{tmp_path} belongs to another user (uid 1234)",
        "llm uses a configuration here only after 'llm kb trust'",
        f"Wrote {tmp_path}/llm-kb.toml",
    ]


def test_nothing_is_overwritten(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "llm-kb.toml").write_text("# mine\n")
    assert run_llm(["kb", "init"]).exit_code == 0
    assert (tmp_path / "llm-kb.toml").read_text() == "# mine\n"


def test_not_even_a_dangling_link(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "llm-kb.toml").symlink_to("gone")
    assert run_llm(["kb", "init"]).exit_code == 1
    assert not (tmp_path / "gone").exists()


def test_every_commented_setting_is_a_valid_one(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    run_llm(["kb", "init"])
    path = tmp_path / "llm-kb.toml"
    lines = [line for line in path.read_text().splitlines() if " = " in line or "[" in line]
    # What is indented is about any topic, so it goes into the one at the end.
    lines.sort(key=lambda line: line.startswith("#   "))
    path.write_text("\n".join(line.lstrip("# ") for line in lines))
    assert len(load(tmp_path, user_dir).topics) == 1


def test_a_current_directory_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    result = run_llm(["kb", "init"])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: the current directory is gone; change to another one\n",
    )


def test_a_later_page_with_a_similar_name_is_not_hidden(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "README.md", "docs/a.md", "docs/b.md", "docs/code_of_conduct.md")
    run_llm(["kb", "init"])
    make_files(tmp_path, "docs/code-review.md")
    assert list_slugs(run_llm, "docs") == ["a", "b", "code-review"]


def test_a_directory_with_very_many_files_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path, *(f"{name}.md" for name in "abc"))
    monkeypatch.setattr(first_topics, "_MOST_FILES", 2)
    with pytest.raises(KbError) as caught:
        propose_topics(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} has over 2 files and is not a git repository;"
        " run init in the directory of a project"
    )
