"""`llm kb init`: existing directories become topics, and nothing is overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from llm_kb.config.load import load_config
from llm_kb.subjects.topics import Config, Layout
from llm_kb.upkeep.proposals import find_passed_over, propose_topics
from tests.conftest import RunLlm
from tests.terminal import run_on_terminal

NEXT = 'Next: llm kb check; then: llm -T learn "What is this project about?"\n'


def load(tmp_path: Path, user_dir: Path) -> Config:
    return load_config(tmp_path, user_dir=user_dir, environ=os.environ)


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


def test_what_people_keep_becomes_topics(tmp_path: Path, user_dir: Path, run_llm: RunLlm) -> None:
    for directory in ("docs/adr", ".claude/skills/review", ".agents/skills", "kb/style", "kb/.x"):
        (tmp_path / directory).mkdir(parents=True)
    make_files(tmp_path, "AGENTS.md", "CONTRIBUTING.md", "LICENSE", "docs/a.md", "docs/adr/b.md")
    make_files(tmp_path, "kb/style/c.md", ".claude/skills/review/SKILL.md")
    make_files(tmp_path, ".agents/skills/test/SKILL.md")
    assert run_llm(["kb", "init"]).stderr == (
        f"Wrote {tmp_path}/llm-kb.toml\n"
        "  style: kb/style (1 subject, ~1 tokens)\n"
        "  overview: AGENTS.md, CONTRIBUTING.md (2 subjects, ~2 tokens)\n"
        "  docs: docs (1 subject, ~1 tokens)\n"
        "  decisions: docs/adr (1 subject, ~1 tokens)\n"
        "  skills: .agents/skills (1 subject, ~1 tokens)\n"
        "  claude-skills: .claude/skills (1 subject, ~1 tokens)\n"
        f"{NEXT}"
    )
    topics = {topic.id: topic for topic in load(tmp_path, user_dir).topics}
    assert {id_: topic.root.relative_to(tmp_path).as_posix() for id_, topic in topics.items()} == {
        "style": "kb/style",
        "overview": ".",
        "docs": "docs",
        "decisions": "docs/adr",
        "skills": ".agents/skills",
        "claude-skills": ".claude/skills",
    }
    assert topics["docs"].ignore == ("/adr/",)
    assert topics["skills"].layout is Layout.SKILLS


def make_files(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")


@pytest.mark.parametrize(
    ("names", "ignore"),
    [
        pytest.param(["index.md", "guide/a.rst"], (), id="texts"),
        pytest.param(
            ["conf.py", "Makefile", "make.bat", "index.rst", "_static/x.css", "_build/html/i.html"],
            ("/_build/", "/_static/", "/conf.py", "/Makefile", "/make.bat"),
            id="Sphinx",
        ),
        pytest.param(
            ["Makefile", "source/conf.py", "source/index.rst", "source/_templates/l.html"],
            ("/build/", "/source/_templates/", "/source/conf.py", "/Makefile"),
            id="Sphinx, apart",
        ),
        pytest.param(
            ["a.md", "images/a.png", "images/deep/b.PNG", ".hidden/c.gif", "d.zip"],
            (".*", "*.PNG", "*.png", "*.zip"),
            id="pictures",
        ),
        pytest.param(["Makefile", "requirements.txt", "conf.md"], (), id="no Sphinx"),
        pytest.param(
            [
                "index.md",
                "package.json",
                "api/package-lock.json",
                ".gitignore",
                ".vitepress/build.js",
            ],
            ("package-lock.json", "package.json", ".*"),
            id="files of tools",
        ),
        pytest.param(
            ["_config.yml", "_data/x.yml", "_layouts/x.html", "_docs/a.md", "CNAME"],
            ("/_config.yml", "/_data/", "/_layouts/", "/CNAME"),
            id="Jekyll",
        ),
        pytest.param(
            ["en/a.md", "en/b.md", "de/a.md", "zh-hant/b.md", "zh-hant/x.json"],
            ("/de/", "/zh-hant/"),
            id="translations",
        ),
    ],
)
def test_what_is_no_text_is_ignored(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm, names: list[str], ignore: tuple[str, ...]
) -> None:
    make_files(tmp_path / "docs", *names)
    run_llm(["kb", "init"])
    (topic,) = load(tmp_path, user_dir).topics
    assert topic.ignore == ignore
    listed = run_llm(["kb", "list", "docs", "--json"]).stdout
    for word in (
        "conf.py",
        "_config",
        "_data",
        "_layouts",
        "CNAME",
        "build",
        "png",
        "static",
        "templates",
        "package",
        "gitignore",
    ):
        assert word not in listed


def test_pictures_are_ignored_wherever_files_are_proposed(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "kb/style/a.svg", "kb/style/a.md")
    make_files(tmp_path, "docs/x.md", "docs/adr/b.jpg", "docs/adr/c.md")
    run_llm(["kb", "init"])
    topics = {topic.id: topic.ignore for topic in load(tmp_path, user_dir).topics}
    assert topics == {"style": ("*.svg",), "docs": ("/adr/", "*.jpg"), "decisions": ("*.jpg",)}


def test_guides_are_the_only_subjects_of_their_topic(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "AGENTS.md", "contributing.rst", "README.md", "README.rst", "CLAUDE.md")
    make_files(tmp_path, "src/AGENTS.md", "setup.py", ".cursorrules")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "overview") == ["AGENTS", "CLAUDE", "README", "contributing"]
    assert run_llm(["kb", "learn", "overview", "cursorrules"]).exit_code == 0
    assert "nothing wrong in 4 subjects and 1 hidden one" in run_llm(["kb", "check"]).stderr


@pytest.mark.parametrize(
    ("names", "topics"),
    [
        pytest.param(["CLAUDE.md"], {"overview": ["CLAUDE"]}, id="CLAUDE.md"),
        pytest.param(["doc/index.rst"], {"docs": ["index"]}, id="doc"),
        pytest.param(["documentation/a.md"], {"docs": ["a"]}, id="documentation"),
        pytest.param(
            ["wiki/Home.md", "notes/x.txt"], {"wiki": ["Home"], "notes": ["x"]}, id="wiki and notes"
        ),
        pytest.param(
            [".claude/CLAUDE.md", ".claude/commands/fix.md", ".claude/settings.json"],
            {"claude": ["CLAUDE", "commands/fix"]},
            id=".claude",
        ),
        pytest.param([".cursor/rules/a.mdc", ".cursor/x"], {"cursor": ["rules/a"]}, id=".cursor"),
        pytest.param(
            [
                ".github/CONTRIBUTING.md",
                ".github/copilot-instructions.md",
                ".github/workflows/x.yml",
            ],
            {"github": ["CONTRIBUTING", "copilot-instructions"]},
            id=".github",
        ),
        pytest.param(["skills/pdf/SKILL.md", "skills/README.md"], {"skills": ["pdf"]}, id="skills"),
        pytest.param(["skills/notes.md"], {"project": []}, id="skills without any"),
        pytest.param(
            ["skills/a/SKILL.md", ".claude/skills/a/SKILL.md", ".claude/skills/b/SKILL.md"],
            {"skills": ["a", "b"], "project-skills": ["a"]},
            id="skills in two places",
        ),
        pytest.param(
            ["packages/a/docs/x.md", "packages/a/src/y.py", "crates/b/docs/z.md"],
            {"a-docs": ["x"], "b-docs": ["z"]},
            id="packages",
        ),
        pytest.param(
            [
                "axum/src/docs/x.md",
                "server/doc/y.rst",
                "tests/docs/z.md",
                "src/docs/z.md",
                "src/z.c",
            ],
            {"axum-docs": ["x"], "server-docs": ["y"]},
            id="parts",
        ),
        pytest.param(
            ["doc/man.go", "site/content/x.md", "website/docs/y.md"],
            {"docs": ["x"], "docs-2": ["y"]},
            id="a site",
        ),
        pytest.param(["man/man1/x.1"], {"man": ["man1/x"]}, id="manual pages"),
        pytest.param(
            ["specs/a.md", "specs/b.md", "src/x.py", "src/y.md", "tool/a.py", "tool/b.md"],
            {"specs": ["a", "b"]},
            id="directories of pages",
        ),
        pytest.param(["src/SUMMARY.md", "src/a.md"], {"pages": ["SUMMARY", "a"]}, id="a book"),
        pytest.param(
            [*(f"{name}/{name}.md" for name in "abcdefg"), "a/x.png", "src/x.py", "img/x.png"],
            {"pages": [f"{name}/{name}" for name in "abcdefg"]},
            id="many directories of pages",
        ),
        pytest.param(
            [*(f"Page-{n}.md" for n in range(21)), "README.md", "SUPPORT.md", "x.py"],
            {"overview": [*sorted(f"Page-{n}" for n in range(21)), "README"]},
            id="a wiki",
        ),
        pytest.param(
            ["README.markdown", "README-VIM.md", "README.zh-CN.md", ".github/Contributing.MD"],
            {"overview": ["README", "README-VIM"], "github": ["Contributing"]},
            id="other spellings",
        ),
        pytest.param(
            ["docs/a.md", "docs/architecture/decisions/1.md", "adr/2.md"],
            {"docs": ["a"], "decisions": ["1"], "decisions-2": ["2"]},
            id="decisions in two places",
        ),
        pytest.param(
            [
                *("src/a/README.md", "build/README.md", "tests/README.md", "tests/a/README.md"),
                *("src/testdata/a/README.md", "x/Fixtures/b/README.rst", "testdata/a.md"),
            ],
            {"readmes": ["src/a/README", "tests/README"]},
            id="README",
        ),
    ],
)
def test_what_is_found(
    tmp_path: Path, run_llm: RunLlm, names: list[str], topics: dict[str, list[str]]
) -> None:
    make_files(tmp_path, *names)
    run_llm(["kb", "init", "--all"])
    rows = json.loads(run_llm(["kb", "list", "--json"]).stdout)
    assert {row["id"]: list_slugs(run_llm, row["id"]) for row in rows} == topics


BOOK = '[book]\ntitle = "A"\n[build]\nbuild-dir = "{}"\n'


@pytest.mark.parametrize(
    ("files", "topics"),
    [
        pytest.param(
            {"book.toml": BOOK.format("docs"), "src/a.md": "", "docs/print.html": ""},
            {"pages": ["a"]},
            id="docs",
        ),
        pytest.param(
            {
                "guide/book.toml": BOOK.format("../docs/"),
                **{f"guide/src/{name}.md": "" for name in "abcd"},
                "docs/a.html": "",
            },
            {"guide": ["book", "src/a", "src/b", "src/c", "src/d"]},
            id="beside it",
        ),
        pytest.param(
            {"docs/book.toml": BOOK.format("book"), "docs/src/a.md": "", "docs/book/a.html": ""},
            {"docs": ["book", "src/a"]},
            id="inside",
        ),
        pytest.param(
            {
                "book.toml": "# All as usual.",
                "src/x.py": "",
                "book/x.html": "",
                **{f"{name}/{name}.md": "" for name in "abcdefg"},
            },
            {"pages": [f"{name}/{name}" for name in "abcdefg"]},
            id="among many",
        ),
        pytest.param(
            {"book.toml": BOOK.format("docs"), "docs/a.html": ""}, {"docs": ["a"]}, id="no source"
        ),
        pytest.param(
            {"docs/book.toml": BOOK.format("."), "docs/src/a.md": ""},
            {"docs": ["book", "src/a"]},
            id="source and book in one",
        ),
        pytest.param(
            {"book.toml": "build = 1", "src/a.md": "", "docs/a.html": ""},
            {"docs": ["a"], "pages": ["a"]},
            id="other settings",
        ),
        pytest.param(
            {"book.toml": "[build", "src/a.md": "", "docs/a.html": ""},
            {"docs": ["a"], "pages": ["a"]},
            id="not TOML",
        ),
    ],
)
def test_a_built_book_is_left_out(
    tmp_path: Path, run_llm: RunLlm, files: dict[str, str], topics: dict[str, list[str]]
) -> None:
    make_files(tmp_path, *files)
    for name, text in files.items():
        if text:
            (tmp_path / name).write_text(text)
    run_llm(["kb", "init", "--all"])
    rows = json.loads(run_llm(["kb", "list", "--json"]).stdout)
    assert {row["id"]: list_slugs(run_llm, row["id"]) for row in rows} == topics


def test_less_likely_topics_are_named_and_taken_on_request(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "README.md", "src/README.md")
    shown = run_llm(["kb", "init", "--dry-run"])
    assert not (tmp_path / "llm-kb.toml").exists()
    assert "Left out readmes: src/README.md (1 subject, ~1 tokens)\n" in shown.stderr
    everything = run_llm(["kb", "init", "--all", "--dry-run"])
    assert "[kb.topic.readmes]" in everything.stdout
    assert run_llm(["kb", "init"]).exit_code == 0
    assert (tmp_path / "llm-kb.toml").read_text() == shown.stdout


@pytest.mark.parametrize(
    ("typed", "topics"),
    [
        pytest.param("\r", ["overview", "docs", "notes"], id="default"),
        pytest.param("2\r", ["docs"], id="one"),
        pytest.param("9\r1, 3-4\r", ["overview", "notes", "readmes"], id="after a mistake"),
        pytest.param("none\r", [], id="none"),
        pytest.param("y\r", ["overview", "docs", "notes"], id="yes"),
        pytest.param("No\r", [], id="no"),
    ],
)
def test_on_a_terminal_it_asks(
    tmp_path: Path, user_dir: Path, typed: str, topics: list[str]
) -> None:
    make_files(tmp_path, "README.md", "docs/a.md", "notes/b.md", "src/README.md")
    shown, code = run_on_terminal(["kb", "init"], typed, question="[1,2,3]: ")
    assert code == 0
    assert "  4. readmes: src/README.md (1 subject, ~1 tokens)\n" in shown
    assert "[1,2,3]: " in shown
    assert ("'9' is not between 1 and 4" in shown) is typed.startswith("9")
    assert [topic.id for topic in load(tmp_path, user_dir).topics] == topics


def test_what_check_would_report_is_ignored(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "docs/a.md", "README.md", "docs/😀 x[1].md")
    (tmp_path / "docs/link.md").symlink_to("../README.md")
    (tmp_path / "docs/s[1]").symlink_to("/")
    (tmp_path / "docs/drawing.fig").write_bytes(b"fig\0")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "docs") == ["a", "😀 x[1]"]
    rules = [f["rule"] for f in json.loads(run_llm(["kb", "check", "--json"]).stdout)]
    assert rules == ["unsafe-name"]


def test_files_that_no_topic_can_hold_are_ignored_and_named(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "docs/a.md", "docs/new\nline.md", os.fsdecode(b"docs/bad\xff.md"))
    (tmp_path / "docs/link[1].md").symlink_to("/etc/hosts")
    unusable = "its name contains control, invisible or undecodable characters"
    assert run_llm(["kb", "init"]).stderr == (
        f"Wrote {tmp_path}/llm-kb.toml\n"
        "  docs: docs (1 subject, ~1 tokens)\n"
        f"  Ignored docs/bad\\xff.md: {unusable}\n"
        "  Ignored docs/link[1].md: the link leads outside the topic\n"
        f"  Ignored docs/new\\nline.md: {unusable}\n"
        f"{NEXT}"
    )
    checked = run_llm(["kb", "check"])
    assert (checked.exit_code, checked.stderr) == (0, "llm-kb: nothing wrong in 1 subject\n")


def test_what_no_topic_can_hold_is_ignored_alone(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "docs/a-b.md", "docs/a#b.md", "docs/bad!.md", "docs/aA.md")
    make_files(tmp_path, "docs/a\u200bb.md", "docs/bad\n.md", os.fsdecode(b"docs/bad\xff.md"))
    make_files(tmp_path, "docs/a\U000e0041b.md", "docs/a\\u0041.md", "docs/a\\n.md", "docs/a\\b.md")
    run_llm(["kb", "init", "--all"])
    ignore = load(tmp_path, user_dir).topics[0].ignore
    assert "/a\u200bb.md" in ignore
    assert "/a\\U0000200Bb.md" in (tmp_path / "llm-kb.toml").read_text()
    assert set(list_slugs(run_llm, "docs")) == {"a-b", "a#b", "bad!", "aA"}
    # A new file beside them is a subject, too.
    make_files(tmp_path, "docs/a:b.md", "docs/bad§.md")
    assert {"a:b", "bad§"} < set(list_slugs(run_llm, "docs"))


def test_a_guide_whose_name_no_topic_can_hold_is_left_out(tmp_path: Path, run_llm: RunLlm) -> None:
    bad = os.fsdecode(b"\xff")
    make_files(
        tmp_path, "README.md", f"b{bad}.md", "c\u200b.md", f"CHANGES-{bad}.md", f"x{bad}/a.md"
    )
    make_files(tmp_path, ".github/CONTRIBUTING.md", f".github/x{bad}.md", f"lib{bad}/README.md")
    make_files(tmp_path, *(f"{name}/{name}.md" for name in "abcdefg"))
    assert run_llm(["kb", "init", "--all"]).exit_code == 0
    assert list_slugs(run_llm, "overview") == ["README"]
    assert list_slugs(run_llm, "github") == ["CONTRIBUTING"]
    assert run_llm(["kb", "check"]).exit_code == 0


def test_places_that_lead_elsewhere_are_not_proposed(tmp_path: Path) -> None:
    root, outside = tmp_path / "w", tmp_path / "outside"
    (outside / "x").mkdir(parents=True)
    (root / ".claude").mkdir(parents=True)
    make_files(root, ".agents/skills/review/SKILL.md")
    (root / "docs").symlink_to(outside)
    (root / "kb").symlink_to(outside)
    (root / ".claude" / "skills").symlink_to("../.agents/skills")
    proposed = [(p.id, p.subjects, p.layout) for p in propose_topics(root)]
    assert proposed == [("skills", ".agents/skills", Layout.SKILLS)]
    assert list(find_passed_over(root)) == [
        ("kb/x", "leads out of this directory"),
        ("docs", "leads out of this directory"),
    ]


def test_what_lies_in_kb_itself_is_a_topic_beside_those_of_its_directories(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "kb/x/a.md", "kb/top.md", "kb/sp ace/b.md", "kb/img/c.png")
    (tmp_path / "kb" / "a.b" / "deep").mkdir(parents=True)
    make_files(tmp_path, "kb/a.b/.gitkeep")
    assert run_llm(["kb", "init"]).stderr == (
        f"Wrote {tmp_path}/llm-kb.toml\n"
        "  x: kb/x (1 subject, ~1 tokens)\n"
        "  project: kb (2 subjects, ~2 tokens)\n"
        "Passed over kb/a.b, which has no text yet\n"
        "Passed over kb/img, which has no text yet\n"
        f"{NEXT}"
    )
    topics = {topic.id: topic.ignore for topic in load(tmp_path, user_dir).topics}
    assert topics == {"x": (), "project": ("/x/", "*.png")}
    assert list_slugs(run_llm, "project") == ["sp ace/b", "top"]
    assert run_llm(["kb", "check"]).exit_code == 0


@pytest.mark.parametrize(
    ("names", "topics"),
    [
        pytest.param(["kb/a.md"], {"project": "kb"}, id="files alone"),
        pytest.param(["kb/x/a.md"], {"x": "kb/x"}, id="directories alone"),
        pytest.param(["kb/sp ace/a.md"], {"project": "kb"}, id="no name is an id"),
        pytest.param(
            ["kb/project/a.md", "kb/b.md"], {"project": "kb/project", "kb": "kb"}, id="id taken"
        ),
        pytest.param(["docs/adr/a.md"], {"decisions": "docs/adr"}, id="decisions alone"),
        pytest.param(["kb/.hidden/a.md", "docs/a.png"], {}, id="nothing to list"),
    ],
)
def test_a_topic_is_proposed_where_there_is_something_to_list(
    tmp_path: Path, names: list[str], topics: dict[str, str]
) -> None:
    make_files(tmp_path, *names)
    assert {p.id: p.subjects for p in propose_topics(tmp_path)} == topics


def list_slugs(run_llm: RunLlm, topic: str) -> list[str]:
    return [row["slug"] for row in json.loads(run_llm(["kb", "list", topic, "--json"]).stdout)]


@pytest.mark.parametrize(
    ("links", "ignore", "listed"),
    [
        pytest.param(
            {"AGENTS.md": "CLAUDE.md"}, ("/*", "!/CLAUDE.md"), ["CLAUDE"], id="of another name"
        ),
        pytest.param(
            {"AGENTS.md": "CLAUDE.md", "CONTRIBUTING.md": "CLAUDE.md"},
            ("/*", "!/CLAUDE.md"),
            ["CLAUDE"],
            id="two of one file",
        ),
        pytest.param(
            {"AGENTS.md": "dev/a/one.md", "CONTRIBUTING.md": "dev/a/t[w]o.md"},
            (
                *("/*", "!/dev/", "/dev/*", "!/dev/a/", "/dev/a/*"),
                *("!/dev/a/one.md", "!/dev/a/t\\[w\\]o.md"),
            ),
            ["dev/a/one", "dev/a/t[w]o"],
            id="deep",
        ),
    ],
)
def test_a_guide_that_is_a_link_is_listed_once_as_what_it_leads_to(
    tmp_path: Path,
    run_llm: RunLlm,
    links: dict[str, str],
    ignore: tuple[str, ...],
    listed: list[str],
) -> None:
    make_files(tmp_path, *links.values(), "LICENSE", "dev/other.md", "dev/a/other.md")
    for link, target in links.items():
        (tmp_path / link).symlink_to(target)
    assert propose_topics(tmp_path)[0].ignore == ignore
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "overview") == listed


@pytest.mark.parametrize("target", ["../outside.md", ".x/CLAUDE.md", "gone.md", "loop.md"])
def test_a_guide_that_could_not_be_listed_is_not_proposed(tmp_path: Path, target: str) -> None:
    make_files(tmp_path, "outside.md", "w/.x/CLAUDE.md")
    (tmp_path / "w/loop.md").symlink_to("AGENTS.md")
    (tmp_path / "w/AGENTS.md").symlink_to(target)
    assert propose_topics(tmp_path / "w") == []


@pytest.mark.parametrize("name", ["llm-kb.toml", ".llm/kb.toml"])
def test_nothing_is_overwritten(tmp_path: Path, run_llm: RunLlm, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("# mine\n")
    result = run_llm(["kb", "init"])
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: {tmp_path}/{name} exists already and is left as it is; `llm kb add` adds topics\n",
    )
    assert (tmp_path / name).read_text() == "# mine\n"


def test_not_even_a_dangling_link(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "llm-kb.toml").symlink_to("gone")
    assert run_llm(["kb", "init"]).exit_code == 1
    assert not (tmp_path / "gone").exists()


def test_the_users_file(tmp_path: Path, user_dir: Path, run_llm: RunLlm) -> None:
    assert run_llm(["kb", "init", "--user"]).stderr == f"Wrote {user_dir}/kb.toml\n"
    assert load(tmp_path, user_dir).topics == ()
    again = run_llm(["kb", "init", "--user"])
    assert (again.exit_code, again.stderr) == (
        1,
        f"Error: {user_dir}/kb.toml exists already and is left as it is;"
        " `llm kb add` adds topics\n",
    )


@pytest.mark.parametrize("user", [True, False])
def test_every_commented_setting_is_a_valid_one(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm, user: bool
) -> None:
    run_llm(["kb", "init", *(["--user"] if user else [])])
    path = user_dir / "kb.toml" if user else tmp_path / "llm-kb.toml"
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


def test_a_variable_that_names_another_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm
) -> None:
    monkeypatch.setenv("LLM_KB_CONFIG", "")
    assert run_llm(["kb", "init"]).stderr.endswith(
        "LLM_KB_CONFIG is set, so this file is not used; see 'llm kb path'\n"
    )


def test_a_workspace_that_no_longer_counts_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm
) -> None:
    (tmp_path / "llm-kb.toml").write_text("[kb]\n")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    shown = run_llm(["kb", "init"]).stderr
    assert f"In this directory {tmp_path}/llm-kb.toml is no longer used\n" in shown


def test_pages_beside_the_readme_are_guides_and_formalities_are_not(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "README.md", "UserGuide.md", "DEVELOPER.rst", "LICENSE.md", "a.py")
    make_files(tmp_path, "CHANGELOG.md", "Release-Notes.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
    shown = run_llm(["kb", "init"]).stderr
    assert list_slugs(run_llm, "overview") == ["DEVELOPER", "README", "SECURITY", "UserGuide"]
    left = "Left out changes: CHANGELOG.md, Release-Notes.md (2 subjects, ~2 tokens)\n"
    assert left in shown


def test_pages_for_contributors_in_the_directory_of_github_are_not_for_a_tool(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "HISTORY", "changes/1.md", ".github/SECURITY.md", ".github/AI_POLICY.md")
    make_files(tmp_path, ".github/commit-convention.md", ".github/CODE_OF_CONDUCT.md")
    make_files(tmp_path, ".github/PULL_REQUEST_TEMPLATE.md", ".github/README.md")
    shown = run_llm(["kb", "init"])
    assert "Left out changes: HISTORY (1 subject, ~1 tokens)\n" in shown.stderr
    assert list_slugs(run_llm, "github") == ["AI_POLICY", "SECURITY", "commit-convention"]
    line = "- github (**Contributing**): How to contribute, and the rules for it."
    assert line in run_llm(["kb", "prompt"]).stdout


def test_what_is_for_copilot_alone_is_named_after_it(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, ".github/copilot-instructions.md", ".github/SUPPORT.md")
    run_llm(["kb", "init"])
    assert "- github (**For GitHub Copilot**): " in run_llm(["kb", "prompt"]).stdout


def test_files_of_tools_in_a_documentation_are_ignored(tmp_path: Path, run_llm: RunLlm) -> None:
    make_files(tmp_path, "docs/conf.py", "docs/a.rst", "docs/_themes/LICENSE", "docs/py.typed")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "docs") == ["a"]


def test_code_that_shares_a_slug_in_documentation_is_ignored(
    tmp_path: Path, run_llm: RunLlm
) -> None:
    make_files(tmp_path, "docs/a.md", "docs/a.json", "docs/b.tsx", "docs/b.json", "docs/c.json")
    run_llm(["kb", "init"])
    assert list_slugs(run_llm, "docs") == ["a", "c"]
    assert run_llm(["kb", "check", "--json"]).stdout == "[]\n"
