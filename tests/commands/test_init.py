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
from llm_kb.upkeep.first_topics import propose_topics
from llm_kb.upkeep.project_files import find_project
from tests.conftest import RunLlm

NEXT = (
    "Edit the introductions: a model chooses by them what to read\n"
    "Next, without a model: llm kb check; llm kb search how do I contribute\n"
    'With one: llm -T learn "How do I contribute?"\n'
)


def load(tmp_path: Path, user_dir: Path) -> Config:
    return load_config(tmp_path, user_dir=user_dir, environ=os.environ)


def make_files(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(os.fsencode(f"{name}\n"))


def list_slugs(run_llm: RunLlm, topic: str) -> list[str]:
    return [row["slug"] for row in json.loads(run_llm(["kb", "list", topic, "--json"]).stdout)]


def list_proposed(root: Path) -> dict[str, str]:
    """Return the directory of each proposed topic."""
    return {topic.id: topic.subjects for topic in propose_topics(root)[0]}


def test_an_empty_directory_gets_a_topic_to_write_into(tmp_path: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "init"])
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "",
        f"Wrote {tmp_path}/llm-kb.toml\n"
        "Found nothing to read; kb/project is the topic for what you write\n"
        'Next: llm kb new project/overview; then: llm -T learn "your question"\n',
    )
    assert run_llm(["kb", "check"]).exit_code == 0
    assert run_llm(["kb", "new", "project/overview"]).exit_code == 0
    assert list_slugs(run_llm, "project") == ["overview"]
    assert "- project (**Project**)" in run_llm(["kb", "prompt"]).stdout


def test_what_it_took_and_left_out_is_printed(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "README.md", "AGENTS.md", "LICENSE.md", "CHANGELOG.md", "tests/a/input.md")
    make_files(tmp_path, "docs/a.md", "docs/pic.png", "docs/adr/1.md", "kb/style/c.md", "src/x.py")
    make_files(tmp_path, ".claude/skills/review/SKILL.md", ".claude/commands/fix.md")
    skill = "---\nname: review\ndescription: How to review.\n---\n"
    (tmp_path / ".claude/skills/review/SKILL.md").write_text(skill)
    assert run_llm(["kb", "init"]).stderr == (
        f"Wrote {tmp_path}/llm-kb.toml\n"
        "  overview       2 subjects           ~6 tokens  AGENTS.md, README.md\n"
        "  docs            1 subject           ~3 tokens  docs\n"
        "  decisions       1 subject           ~4 tokens  docs/adr\n"
        "  style           1 subject           ~4 tokens  kb/style\n"
        "  claude          1 subject           ~6 tokens  .claude\n"
        "  skills          1 subject          ~13 tokens  .claude/skills\n"
        "Left out (llm kb init --with NAME takes it):\n"
        "       1  tests: tests and their data (tests/a/input.md)\n"
        "       1  formalities: licences, authors, codes of conduct, forms for issues\n"
        "       1  changes: change logs and release notes (CHANGELOG.md)\n"
        "       2  files of other kinds: pictures and other binary files 1; source code 1\n"
        f"{NEXT}"
    )
    topics = {topic.id: topic for topic in load(tmp_path, user_dir).topics}
    assert topics["overview"].include == ("/*.md",)
    assert topics["overview"].ignore == ("CHANGELOG.md", "LICENSE.md")
    assert (topics["docs"].include, topics["docs"].ignore) == (("*.md",), ("/adr/",))
    assert topics["skills"].layout is Layout.SKILLS
    assert run_llm(["kb", "check"]).stdout == "nothing wrong in 7 subjects\n"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["a.ipynb", "b.ipynb", "README.md"], {"overview": "."}, id="notebooks"),
        pytest.param(
            ["src/content/docs/a.md", "src/content/docs/b/c.mdx", "src/x.ts", "src/y.ts"],
            {"docs": "src/content/docs"},
            id="Starlight",
        ),
        pytest.param(
            [f"1-js/{n}/{name}" for n in range(4) for name in ("article.md", "task.md", "ex.js")],
            {"1-js": "1-js"},
            id="pages beside programs",
        ),
        pytest.param(
            [*(f"c{n}/{page}.md" for n in range(9) for page in "abc"), "README.md"],
            {"overview": ".", "pages": "."},
            id="many chapters",
        ),
        pytest.param(
            [f"pkg/{n}/{name}" for n in range(3) for name in ("README.md", "m.go", "cmd.go")],
            {"pages": "."},
            id="single pages beside code",
        ),
        pytest.param(
            ["docs/en/a.md", "docs/en/b.md", "docs/de/a.md", "docs/de/b.md"],
            {"docs": "docs/en"},
            id="languages",
        ),
        pytest.param([f"docs/{name}/{page}.md" for name in ("en-US", "zh-CN") for page in "abcd"],
                     {"docs": "docs/en-US"}, id="English of a region"),
        pytest.param(["pages/a.md", "pages/b.md", "pages/c.md", "pages.de/a.md", "pages.fr/a.md"],
                     {"pages": "pages"}, id="directories of languages"),
        pytest.param(["Sources/X/Documentation.docc/A.md", "Sources/X/a.swift"],
                     {"x-docs": "Sources/X/Documentation.docc"}, id="DocC"),
        pytest.param(["doc/index.html", "doc/b.html", "a.html"], {"docs": "doc"}, id="text pages"),
        pytest.param(["doc/index.rst", "doc/_templates/b.html"], {"docs": "doc"}, id="Sphinx"),
        pytest.param([*(f"content/en/{page}.md" for page in "abc"), "content/zh-cn/a.md",
                      "content/ja/a.md", "archetypes/default.md"],
                     {"docs": "content/en"}, id="Hugo, few pages translated"),
        pytest.param(["docs/layouts/a.md", "docs/layouts/b.html", "docs/c.md"], {"docs": "docs"},
                     id="pages about layouts"),
        pytest.param(["man/a.Rd", "man/b.Rd", "guides/a.cheatmd"],
                     {"guides": "guides", "man": "man"}, id="pages of R and of Elixir"),
        pytest.param(["en/Start.md", "en/Links.md", "en/Sync.md", "de/Anfang.md", "fr/Début.md",
                      "cs/Začátek.md",
                      "pl/Start.md", "Release notes/v1.md"],
                     {"docs": "en"}, id="a vault in five languages"),
        pytest.param(["content/LICENSE.md", *(f"content/en/{page}.md" for page in "abc")],
                     {"docs": "content/en"}, id="a licence beside the pages"),
        pytest.param(["README.md", "README.de.md", "README-fr.md", "build/x.md", "vendor/y.md"],
                     {"overview": "."}, id="what is not taken"),
        pytest.param(["README.md", *(f"crates/{name}/{file}" for name in ("uv-fs", "uv-x", "ui")
                                     for file in ("README.md", "a.rs", "b.rs"))],
                     {"overview": ".", "pages": "."}, id="packages with names of two letters"),
        pytest.param(["README.md", *(f"docs/readme/README_{name}.md" for name in ("DE", "PT_BR"))],
                     {"overview": "."}, id="a README in languages"),
        pytest.param(["examples/a/main.tf", "examples/a/x.tf", "examples/a/README.md"], {},
                     id="demos with code"),
        pytest.param(["examples/a.md", "examples/b.md", "examples/c.md"],
                     {"examples": "examples"}, id="examples that are pages"),
        pytest.param([*(f"guide/{each}/{page}.md" for each in ("test", "run") for page in "abc"),
                      "guide/test/fixtures/d.md"], {"guide": "guide"}, id="pages on how to test"),
        pytest.param(["README.md", *(f"crates/m/tests/compare/{n}.md" for n in range(5)),
                      *(f"crates/x/{n}.rs" for n in range(40))],
                     {"overview": "."}, id="texts for tests, more than the code of their package"),
        pytest.param(["README.md", "t/lib/a.pod", "t/b.pod", "t/c.pod", "xt/b.md"],
                     {"overview": "."}, id="tests of Perl"),
        pytest.param(["docs/a.md", "versioned_docs/version-2/a.md",
                      "versioned_docs_archived/version-1/a.md"], {"docs": "docs"},
                     id="older versions"),
        pytest.param(["requirements.txt", "robots.txt", "CMakeLists.txt", "notes.txt"],
                     {"overview": "."}, id="texts"),
    ],
)  # fmt: skip
def test_pages_are_grouped_by_the_directories_that_people_name(
    tmp_path: Path, names: list[str], expected: dict[str, str]
) -> None:
    make_files(tmp_path, *names)
    assert list_proposed(tmp_path) == expected


def test_change_logs_beside_code_are_one_pattern(tmp_path: Path) -> None:
    packages = [f"packages/p{n}" for n in range(9)]
    make_files(tmp_path, *(f"{each}/{name}" for each in packages for name in ("a.ts", "b.ts")))
    make_files(tmp_path, *(f"{each}/CHANGELOG.md" for each in packages), "README.md")
    make_files(tmp_path, *(f"{each}/README.md" for each in packages[:3]))
    topic = next(each for each in propose_topics(tmp_path)[0] if each.id == "pages")
    assert topic.ignore[-1] == "CHANGELOG.md"
    assert not any("p8" in line for line in topic.ignore)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["changes.rst", "changes_0.x.rst", "changes_1.x.rst"], 3),
        (["history.md", "history-2.0.md", "changelog_v2.md", "release-notes-1.0.md"], 4),
        (["CHANGES-1.2.md", "News.v3.md"], 2),
        (["changes.md", "history.md", "changes-of-state.md", "history-1.md"], 0),
    ],
)
def test_change_logs_of_versions_are_left_out(
    tmp_path: Path, names: list[str], expected: int
) -> None:
    make_files(tmp_path, "docs/a.md", *(f"docs/{name}" for name in names))
    assert len(propose_topics(tmp_path)[1].get("changes", ())) == expected


def test_a_change_log_behind_a_link_in_the_root_is_one(tmp_path: Path) -> None:
    make_files(tmp_path, "docs/a.rst", "docs/changes.rst")
    (tmp_path / "CHANGES.rst").symlink_to("docs/changes.rst")
    assert propose_topics(tmp_path)[1] == {"changes": ["docs/changes.rst"]}


def test_generated_pages_are_left_out(tmp_path: Path, run_llm: RunLlm) -> None:
    out = ["docs/a/.generated/b.md", "docs/c/.generated/d.md", "src/generated/e.md"]
    make_files(tmp_path, "docs/a.md", "docs/generated/reference.md", *out)
    proposals, left_out, _ = propose_topics(tmp_path)
    assert [topic.id for topic in proposals] == ["docs"]
    assert left_out == {"generated": out}
    (tmp_path / out[2]).unlink()
    run_llm(["kb", "init", "--with", "generated"])
    assert list_slugs(run_llm, "docs") == ["a", "generated/reference"]
    assert list_slugs(run_llm, "generated") == ["b"]
    assert list_slugs(run_llm, "docs-c-generated") == ["d"]


def test_beside_many_kinds_of_files_the_kinds_of_pages_are_named(tmp_path: Path) -> None:
    make_files(tmp_path, *(f"docs/a.{kind}" for kind in ("md", "rst", "css", "js", "svg", "toml")))
    ((topic,), *_) = propose_topics(tmp_path)
    assert (topic.include, topic.ignore) == (["*.md", "*.rst"], ())
    assert topic.totals[0] == 2


def test_the_introduction_of_documentation_names_its_parts(tmp_path: Path) -> None:
    parts = ("usage", "api")
    make_files(tmp_path, *(f"docs/{part}/{page}.md" for part in parts for page in "abc"))
    make_files(tmp_path, "docs/404.md")
    ((topic,), *_) = propose_topics(tmp_path)
    assert topic.introduction == "How this project is used and how it works: Usage, Api."
    make_files(tmp_path, *(f"docs/src/{name}.md" for name in ("i/a", "ii/b", *"cdefghi")))
    ((topic,), *_) = propose_topics(tmp_path)
    assert "src" not in topic.introduction.casefold()


def test_the_introduction_names_the_largest_and_most_linked_pages_by_their_titles(
    tmp_path: Path,
) -> None:
    make_files(tmp_path, *(f"docs/{name}.md" for name in ("aaa", "index", "bbb", "store", "zzz")))
    (tmp_path / "docs/zzz.md").write_text("# Rules for reviews\n" + "Long text.\n" * 99)
    (tmp_path / "docs/store.md").write_text("# Where data is kept\n" + "Text.\n" * 84)
    (tmp_path / "docs/aaa.md").write_text("See [the store](store.md#x).\n")
    (tmp_path / "docs/bbb.md").write_text("See [[none]].\n" * 5)
    ((topic,), *_) = propose_topics(tmp_path)
    assert topic.introduction == (
        "How this project is used and how it works:"
        " Rules for reviews, Where data is kept, Bbb, Aaa."
    )
    (tmp_path / "docs/index.md").write_text("[it](store.md)\n")
    ((topic,), *_) = propose_topics(tmp_path)
    assert "works: Where data is kept, Rules for reviews" in topic.introduction
    (tmp_path / "docs/store.md").write_text("# x-{version}\n" + "Text.\n" * 84)
    ((topic,), *_) = propose_topics(tmp_path)
    assert "works: Store, Rules for reviews" in topic.introduction
    pod = "=head1 NAME\n\nX::Guide - How to cook\n\n" + "Text.\n" * 999
    (tmp_path / "docs/Guide.pod").write_text(pod)
    ((topic,), *_) = propose_topics(tmp_path)
    assert "works: How to cook, Store" in topic.introduction


def test_languages_are_ignored_where_the_topic_is(tmp_path: Path) -> None:
    languages = ("de_DE", "en_US", "ja_JP")
    make_files(tmp_path, *(f"src/x/doc/{each}/{page}.md" for each in languages for page in "abcd"))
    make_files(tmp_path, "src/x/doc/own/page.md")
    ((topic,), *_) = propose_topics(tmp_path)
    assert (topic.subjects, topic.ignore) == ("src/x/doc", ("/de_DE/", "/ja_JP/"))
    assert (topic.totals[0], len(topic.pages)) == (5, 5)


def test_a_checklist_is_a_page_and_a_list_of_words_is_not(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "docs/checklist.txt", "docs/word-list.txt", "docs/apt-packages.txt")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "docs") == ["checklist"]


def test_a_title_has_no_space_where_the_name_has_an_underscore_at_its_edge(tmp_path: Path) -> None:
    make_files(tmp_path, "README.md", *(f"_template/{name}.md" for name in "abcd"))
    titles = {topic.id: topic.title for topic in propose_topics(tmp_path)[0]}
    assert titles == {"overview": "Overview", "template": "Template"}


def test_every_page_is_in_a_topic_or_left_out(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "README.md", "LICENSE", "docs/a.md", "docs/b.json", "x/y/z/deep.md")
    make_files(tmp_path, "x/a.py", "x/b.py", "web/AGENTS.md", "web/x.ts", ".cursorrules", "q/s.rst")
    (tmp_path / "x/a.py").write_text("x = 1\n" * 99)
    (tmp_path / "web/x.ts").write_text("x = 1\n" * 99)
    make_files(tmp_path, "web/y.ts")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "pages") == ["q/s", "web/AGENTS", "x/y/z/deep"]
    assert list_slugs(run_llm, "docs") == ["a"]
    assert run_llm(["kb", "show", "overview/cursorrules"]).stdout == ".cursorrules\n"
    # A new page is taken without a change of the configuration.
    make_files(tmp_path, "x/new.md", "docs/c.md", "target/doc/made.md")
    assert list_slugs(run_llm, "pages") == ["q/s", "web/AGENTS", "x/new", "x/y/z/deep"]
    assert list_slugs(run_llm, "docs") == ["a", "c"]


def test_git_decides_what_belongs_to_the_project(tmp_path: Path) -> None:
    make_files(tmp_path, "README.md", "gen/a.md", "gen/b.md", "gen/c.md", "sub/.x/made.md")
    (tmp_path / ".gitignore").write_text("/gen/\nmade.md\n")
    assert list_proposed(tmp_path) == {"overview": "."}
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert list_proposed(tmp_path) == {"overview": "."}


@pytest.mark.parametrize("target", [".agents/AGENTS.md", "docs/AGENTS.md"])
def test_a_guide_behind_a_link_is_taken_where_it_is(
    tmp_path: Path, run_llm: RunLlm, target: str
) -> None:
    make_files(tmp_path, "README.md", target)
    (tmp_path / "AGENTS.md").symlink_to(target)
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "overview") == ["README"]
    assert list_slugs(run_llm, target.split("/", maxsplit=1)[0].lstrip(".")) == ["AGENTS"]


@pytest.mark.parametrize("target", ["../outside.md", "gone.md", "loop.md"])
def test_a_link_that_leads_nowhere_is_reported_and_works_once_it_leads_to_a_page(
    tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    make_files(tmp_path, "outside.md", "w/README.md")
    (tmp_path / "w/loop.md").symlink_to("AGENTS.md")
    (tmp_path / "w/AGENTS.md").symlink_to(target)
    monkeypatch.chdir(tmp_path / "w")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "overview") == ["README"]
    assert run_llm(["kb", "check"]).stdout.endswith("\n1 error in 1 subject\n")
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
    make_files(tmp_path, name, f"web/{name}", "web/a/b.md", "web/c/d.md", ".other", ".env.md")
    run_llm(["kb", "init"])
    slug = name.lstrip(".").removesuffix(".md")
    assert list_slugs(run_llm, "overview") == [slug]
    assert list_slugs(run_llm, "web") == sorted(["a/b", "c/d", slug])
    topics = {topic.id: topic for topic in load(tmp_path, user_dir).topics}
    assert topics["overview"].include == (f"/{name}",)
    assert name in run_llm(["kb", "search", "-t", "overview", name.lstrip(".")]).stdout
    assert run_llm(["kb", "check"]).exit_code == 0


def test_another_hidden_page_stays_hidden(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "docs/.draft.md", "docs/a.md", "docs/b.png")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "docs") == ["a"]
    assert run_llm(["kb", "show", "docs/draft"]).stdout == "docs/.draft.md\n"


def test_a_dot_in_the_name_of_a_directory_says_nothing(tmp_path: Path, run_llm: RunLlm) -> None:
    names = ["My.Api/AGENTS.md", "My.Api/README.md", "Core/AGENTS.md", "v1.2/a.md", "x.md/y.md"]
    make_files(tmp_path, "README.md", *names)
    shown = run_llm(["kb", "init"])
    assert "no topic can hold" not in shown.stderr
    assert list_slugs(run_llm, "pages") == [name.removesuffix(".md") for name in sorted(names)]


def test_names_that_no_topic_can_hold_are_named(tmp_path: Path, run_llm: RunLlm) -> None:
    bad = os.fsdecode(b"\xff")
    make_files(tmp_path, "README.md", f"b{bad}.md", "c\u200b.md", f"x{bad}/a.md", "docs/a-b.md")
    make_files(tmp_path, "docs/a\u200bb.md", "docs/bad\n.md", f"docs/bad{bad}.md", "docs/a\\b.md")
    make_files(tmp_path, "docs/a\U000e0041b.md", "docs/a\\u0041.md")
    shown = run_llm(["kb", "init"]).stderr
    assert "       9  pages that no topic can hold (b\\udcff.md)\n" in shown
    assert list_slugs(run_llm, "overview") == ["README"]
    assert list_slugs(run_llm, "docs") == ["a-b"]


def test_skills_are_topics_and_the_same_ones_for_another_tool_are_not(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, *(f"{d}/skills/review/SKILL.md" for d in (".claude", ".cursor")))
    make_files(tmp_path, ".claude/skills/review/more.md", "web/.agents/skills/test/SKILL.md")
    shown = run_llm(["kb", "init"]).stderr
    assert list_proposed(tmp_path) == {
        "skills": ".claude/skills",
        "web-agents-skills": "web/.agents/skills",
    }
    assert "1  copies: skills that another tool has too (.cursor/skills/review/SKIL…)" in shown


def test_what_a_rule_left_out_becomes_a_topic_on_request(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "README.md", "CHANGELOG.md", "a/CHANGES.rst", "a/b.md", "tests/x.md")
    make_files(tmp_path, "docs/announce/release-2.0.md", "docs/announce/2.1.md")
    make_files(tmp_path, ".github/ISSUE_TEMPLATE/bug.md", "docs/en/a.md", "docs/en/b.md")
    make_files(tmp_path, "docs/de/a.md", "docs/de/b.md")
    run_llm(["kb", "init", "--with", "changes"])
    assert list_slugs(run_llm, "changes") == [
        "CHANGELOG", "a/CHANGES", "docs/announce/2.1", "docs/announce/release-2.0",
    ]  # fmt: skip
    again = run_llm(["kb", "init", "--with", "tests"])
    assert again.stderr.endswith(f"Added 1 topic to {tmp_path}/llm-kb.toml\n")
    assert list_slugs(run_llm, "tests") == ["tests/x"]
    run_llm(["kb", "init", "--with", "formalities", "--with", "languages"])
    assert list_slugs(run_llm, "formalities") == ["bug"]
    assert list_slugs(run_llm, "languages") == ["docs/de/a", "docs/de/b"]
    assert run_llm(["kb", "check"]).stdout.startswith("nothing wrong in ")


def test_pages_made_from_others_are_left_out(tmp_path: Path) -> None:
    make_files(tmp_path, "docs/create.rst", "docs/list_all.rst.inc", "docs/tool.org", "man/why.md")
    for name in (
        "docs/man/x-create.1",
        "docs/man/x-list-all.1",
        "docs/man/x-only.1",
        "man/x-why.8",
    ):
        make_files(tmp_path, name)
        (tmp_path / name).write_text(".TH X 1\n.SH NAME\nx\n", encoding="utf-8")
    make_files(tmp_path, "docs/tool.texi", "man/a.8", "docs/generated_txt/create.txt")
    (tmp_path / "man/a.8").write_text(".TH A 8\n", encoding="utf-8")
    found = propose_topics(tmp_path)
    made = [*(f"docs/man/x-{name}.1" for name in ("create", "list-all", "only")), "docs/tool.texi"]
    assert found.left_out == {"generated": ["docs/generated_txt/create.txt", *made]}
    ignored = {topic.id: topic.ignore for topic in found.topics}
    assert ignored == {"docs": (), "man": ()}


def test_pages_that_have_the_name_of_one_elsewhere_are_not_made_from_it(tmp_path: Path) -> None:
    make_files(tmp_path, *(f"manual/{name}.html" for name in ("index", "faq", "install", "tuning")))
    make_files(tmp_path, *(f"plug/x/docs/{name}.md" for name in ("index", "faq", "tmux", "create")))
    make_files(tmp_path, "plug/install.md", "texi/faq.texi", "texi/index.texi", "man/tmux.1")
    for name in ("man/tmux.1", "man/x-create.1"):
        (tmp_path / name).write_text(".TH X 1\n.SH NAME\nx\n" + "Long.\n" * 9, encoding="utf-8")
    assert propose_topics(tmp_path).left_out == {}


def test_pages_on_testing_and_on_announcing_are_taken(tmp_path: Path) -> None:
    make_files(tmp_path, "testing/strategy.md", "testing/ci.md", "docs/announcements/2026-01-02.md")
    make_files(tmp_path, "announce/howto.md", "announce/protocol.md", "pkg/testing/data.md")
    make_files(tmp_path, *(f"pkg/testing/{name}.py" for name in "ab"))
    assert propose_topics(tmp_path).left_out == {"tests": ["pkg/testing/data.md"]}


def test_again_it_proposes_what_is_new(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "README.md")
    run_llm(["kb", "init"])
    before = (tmp_path / "llm-kb.toml").read_text()
    assert run_llm(["kb", "init"]).stderr == (
        "Every page is in a topic already, or left out: llm kb init --dry-run counts these\n"
    )
    make_files(tmp_path, "docs/a.md")
    proposed = run_llm(["kb", "init"])
    assert proposed.stderr == (
        "  docs       1 subject           ~3 tokens  docs\n"
        f"Error: there is no terminal to ask on: Add them to {tmp_path}/llm-kb.toml?"
        " Pass -y to say yes\n"
    )
    assert (tmp_path / "llm-kb.toml").read_text() == before
    run_llm(["kb", "init", "-y"])
    assert (tmp_path / "llm-kb.toml").read_text().startswith(before)
    assert list_slugs(run_llm, "docs") == ["a"]


def test_a_dry_run_prints_the_same_and_writes_nothing(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "README.md", "CHANGELOG.md")
    shown = run_llm(["kb", "init", "--dry-run"])
    assert not (tmp_path / "llm-kb.toml").exists()
    written = run_llm(["kb", "init"])
    report = shown.stderr.removesuffix("Nothing was written\n")
    assert written.stderr == f"Wrote {tmp_path}/llm-kb.toml\n{report}{NEXT}"
    assert (tmp_path / "llm-kb.toml").read_text() == shown.stdout


def test_patterns_are_written_and_not_lists_of_files(tmp_path: Path) -> None:
    make_files(
        tmp_path, *(f"docs/p{n}.md" for n in range(40)), *(f"docs/p{n}.tsx" for n in range(40))
    )
    make_files(tmp_path, *(f"docs/raw/{n}.md" for n in range(3)), "docs/raw/LICENSE.md")
    ((topic,), *_) = propose_topics(tmp_path)
    assert (topic.include, topic.ignore) == (["*.md"], ("LICENSE.md",))


def test_of_few_pages_among_many_files_of_their_kind_the_names_are_written(tmp_path: Path) -> None:
    make_files(tmp_path, *(f"lib/code{n}.pm" for n in range(30)))
    for name in "abc":
        (tmp_path / f"lib/{name}.pm").write_text("=head1 NAME\n\nA module.\n")
    ((topic,), *_) = propose_topics(tmp_path)
    assert (topic.include, topic.ignore) == ([f"/lib/{name}.pm" for name in "abc"], ())


def test_directories_that_are_called_by_letters_are_no_tests(tmp_path: Path) -> None:
    make_files(tmp_path, *(f"pages/{letter}/{n}.md" for letter in "stu" for n in range(3)))
    assert propose_topics(tmp_path).left_out == {}


def test_pages_translated_beside_themselves_are_a_pattern_for_each_language(
    tmp_path: Path,
) -> None:
    names = [f"pages/p{number}" for number in range(40)]
    make_files(tmp_path, *(f"{name}{end}" for name in names for end in (".md", ".de.md", ".fr.md")))
    make_files(tmp_path, "pages/npm.md", "pages/npm-it.md")  # about the tool `npm-it`
    ((topic,), left_out, _) = propose_topics(tmp_path)
    assert (topic.include, topic.ignore) == ([], ("*.de.md", "*.fr.md"))
    assert (len(topic.pages), len(left_out["languages"])) == (42, 80)


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["index.en-US.md", "index.zh-CN.md"], ["index.en-US"]),
        (["index.md", "index.en.md", "index.zh_Hans.md"], ["index", "index.en"]),
        (["a.de.md", "a.fr.md", "a.pt-br.md"], ["a.fr"]),
        (["a-en_GB.md", "a-sr@latin.md", "b.md"], ["a-en_GB", "b"]),
        (["log-in.md", "log-is.md", "plug-in.md", "plug-it.md"],
         ["log-in", "log-is", "plug-in", "plug-it"]),
    ],
)  # fmt: skip
def test_of_pages_named_by_languages_one_stays(
    tmp_path: Path, run_llm: RunLlm, names: list[str], kept: list[str]
) -> None:
    text = "Voici les pages, et comment on peut les lire avec des exemples.\n"
    (tmp_path / "README.md").write_text(text)
    make_files(tmp_path, *(f"docs/{name}" for name in names))
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "docs") == kept


def test_the_language_of_the_readme_stays_where_there_is_no_english(tmp_path: Path) -> None:
    make_files(
        tmp_path, *(f"docs/{name}/{page}.md" for name in ("ja", "ru", "zh") for page in "ab")
    )
    for text, name in (
        ("文档说明如何使用", "zh"),
        ("Как это работает", "ru"),
        ("つかいかた", "ja"),
    ):
        (tmp_path / "README.md").write_text(f"# Kit\n\n{text}\n")
        assert list_proposed(tmp_path)["docs"] == f"docs/{name}"


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


@pytest.mark.parametrize("name", ["llm-kb.toml", ".llm/kb.toml"])
def test_nothing_is_overwritten(tmp_path: Path, run_llm: RunLlm, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("# mine\n")
    assert run_llm(["kb", "init"]).exit_code == 0
    assert (tmp_path / name).read_text() == "# mine\n"


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


def test_a_directory_with_very_many_files_is_no_project(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.md").write_text("# A page\n")
    with pytest.raises(KbError) as caught:
        find_project(tmp_path, most=2)
    assert str(caught.value) == (
        f"{tmp_path} has over 2 files and is not a git repository;"
        " run init in the directory of a project"
    )


def test_topics_of_directories_with_like_names_are_called_as_these(tmp_path: Path) -> None:
    pages = [f"{place}/{n}.md" for place in ("docs", "documentation") for n in range(4)]
    make_files(tmp_path, *pages)
    titles = {topic.id: topic.title for topic in propose_topics(tmp_path).topics}
    assert titles == {
        "docs": "Documentation",
        "documentation": "Documentation in documentation/",
    }


def test_a_page_that_is_most_of_a_topic_is_named_with_the_command_that_leaves_it_out(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, *(f"docs/{n}.md" for n in range(3)))
    (tmp_path / "docs/all plugins.md").write_text("A plugin.\n" * 50_000)
    make_files(tmp_path, "README.md")
    (tmp_path / "README.md").write_text("A plugin.\n" * 50_000)
    assert "leave it out" not in run_llm(["kb", "init", "--dry-run"]).stderr
    said = run_llm(["kb", "init"]).stderr
    assert said.count("leave it out") == 1
    assert "all plugins is 100% of docs; to leave it out:\n" in said
    assert "  llm kb disable 'docs/all plugins'\n" in said
    assert run_llm(["kb", "disable", "docs/all plugins"]).exit_code == 0
    assert list_slugs(run_llm, "docs") == ["0", "1", "2"]
