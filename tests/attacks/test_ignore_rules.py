"""Rules of `ignore` and `include`: as git takes them, and in time."""

from __future__ import annotations

import random
import subprocess
from itertools import product
from pathlib import Path

import pytest

from llm_kb.subjects.ignore import IgnoreRules, Include
from tests.conftest import RunLlm
from tests.cost import at_most

RULES = [
    *("a", "/a", "a/", "a/b", "/a/b", "a/b/", "*", "*/", "/*", "?", "*.md", "/*.md", "a*", "*a*"),
    *("**", "**/", "/**", "**/a", "a/**", "a/**/", "a/**/b", "**/a/**", "**/a/b", "a/**/**/b"),
    *("a/*", "a/*/", "a/*/b", "*/b", "*/*", "a**", "a**b", "*a*/*b*", "a/?b", "a/b?", "***/b"),
    *("[ab]", "[a-b].md", "[!a]", "[^a]*", "[]a]", "[!]a]", "a[", "[a", "[]", "[!]", "[a-", "[-a]"),
    *("[a-]", "[\\]a]"),
    *(
        "[[:alpha:]]",
        "[[:digit:]a]",
        "[[:nope:]]",
        "[[:alpha]",
        "[[:]",
        "[[:^alpha:]]",
        "[a-[:alpha:]]",
    ),
    *(
        "\\a",
        "a\\",
        "\\*",
        "\\!a",
        "\\#a",
        "#a",
        "!a",
        "!",
        "a ",
        "a\\ ",
        "a\\/b",
        " a",
        "a\t",
        "\\",
    ),
    *(
        "./a",
        "a/.",
        "../a",
        "a//b",
        "//",
        "/",
        "a/b/c",
        "*/*/*",
        "**/c",
        "[a/]b",
        "a[/]b",
        "[+-9]b",
    ),
    *("a.md", "*.m?", "*[.]md", ".*", "!.*", "a/.b", "(a)", "a+", "a|b", "{a,b}", "^a$", "a.b"),
]

NAMES = (
    *("a", "b", "c", "ab", "ba", "aXb", "a.md", "b.md", ".b", "]", "[", "-", "9b", "a b", "a "),
    *("*", "!a", "#a", "\\a", "(a)", "a+", "^a$", "axb", "d", "x9"),
)

PATHS = [
    *NAMES,
    *map("/".join, product(NAMES[:6], NAMES[:10])),
    *map("/".join, product("abc", repeat=3)),
]


def ask_git(repository: Path, rules: list[str], paths: list[str]) -> set[str]:
    """Return the paths that git ignores with these rules, by the last rule for each."""
    (repository / ".git/info/exclude").write_bytes("\n".join(rules).encode() + b"\n")
    asked = "\0".join(paths).encode()
    command = ["git", "check-ignore", "--no-index", "-z", "-v", "-n", "--stdin"]
    done = subprocess.run(command, cwd=repository, input=asked, capture_output=True, check=False)
    fields = done.stdout.decode().split("\0")
    answers = zip(fields[2::4], fields[3::4], strict=False)
    return {path for rule, path in answers if rule and not rule.startswith("!")}


def ask_ours(rules: list[str], paths: list[str]) -> set[str]:
    """Return the paths that ours ignore, as a walk sees them: no ignored directory is entered."""
    ignores = IgnoreRules(rules).ignores
    ignored = set()
    for path in paths:
        places = [path[: place + 1] for place, char in enumerate(path[:-1]) if char == "/"]
        if any(map(ignores, [*places, path])):
            ignored.add(path)
    return ignored


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository."""
    directory = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", "."], cwd=directory, check=True)
    return directory


BOTH = [*PATHS, *(f"{path}/zzz" for path in PATHS)]
"""Files, and directories by a file in each."""


REFUSED = ["[[:alpha:]]", "[[:digit:]a]", "[[:alpha]", "[[:]", "a\\/b", "[a/]b"]
"""What git knows and we do not."""


def test_a_rule_means_what_it_means_to_git(repository: Path) -> None:
    differing = [r for r in RULES if ask_git(repository, [r], BOTH) != ask_ours([r], BOTH)]
    assert differing == REFUSED
    assert all(IgnoreRules([rule]).problems for rule in REFUSED)


def test_several_rules_mean_what_they_mean_to_git(repository: Path) -> None:
    choose = random.Random(7)
    known = [rule for rule in RULES if rule not in REFUSED]
    for _ in range(40):
        rules = [choose.choice(["", "", "!"]) + choose.choice(known) for _ in range(6)]
        rules = [rule for rule in rules if not rule.startswith("!!")]
        assert ask_ours(rules, BOTH) == ask_git(repository, rules, BOTH), rules


LEFT_OUT = [
    *(
        "a[",
        "[",
        "[]",
        "[a-",
        "![",
        "[[:nope:]]",
        "[[:alpha:]",
        "[a/]",
        "a\\",
        "\\",
        "a\0b",
        "!",
        "/",
    ),
    *("//", "a//b", "./a", "../a", "a/..", f"*{'a' * 1_001}", "a" * 5_000),
]


@pytest.mark.parametrize("rule", LEFT_OUT)
def test_a_rule_that_matches_nothing_is_reported_and_the_others_count(rule: str) -> None:
    rules = IgnoreRules([rule, "x.md"])
    (problem,) = rules.problems
    assert (problem.path, problem.reason[:16]) == ("ignore", "rule 1 left out:")
    assert rules.ignores("x.md")
    assert not rules.ignores("a")


@pytest.mark.parametrize("rule", ["[z-a].md", "a[", "!", "*a*/" * 20 + "x"])
def test_no_rule_ends_a_command(tmp_path: Path, run_llm: RunLlm, rule: str) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/x.md").write_text("# X\n")
    (tmp_path / ".gitignore").write_text(f"{rule}\n")
    (tmp_path / "llm-kb.toml").write_text(f'[kb.topic.p]\nsubjects = "kb"\nignore = ["{rule}"]\n')
    for arguments in (["list", "p"], ["check"], ["prompt"], ["show", "p/x"], ["init"]):
        result = run_llm(["kb", *arguments])
        assert "Traceback" not in result.output
        assert result.exit_code == 0 or arguments == ["check"], result.output
    assert "x" in run_llm(["kb", "list", "p"]).output


DEEP = "/".join(["aaaaaaaaaaaa"] * 30) + "/y.md"
NAME = "a" * 250

SLOW = {
    "components": (["*a*/" * 8 + "x"], [DEEP]),
    "many components": (["*a*/" * 200 + "x"], [DEEP]),
    "classes": (["*[a-c]*/" * 30 + "x"], [DEEP]),
    "one of any": (["*?*/" * 30 + "x"], [DEEP]),
    "spans": (["**/a*/" * 30 + "x"], [DEEP]),
    "spans of stars": (["**/*a*a*/" * 20 + "x"], [DEEP]),
    "stars in a name": (["*a" * 400 + "b"], [NAME]),
    "keeps": (["!" + "*a*/" * 30 + "x"], [DEEP]),
    "long ends": ([f"*{'a' * 125}b{n}" for n in range(500)], [NAME]),
    "long pieces": ([f"*{'a' * 125}b*{n}" for n in range(500)], [NAME]),
}
"""Rules and paths of which a matcher that tries all ways needs years, or seconds."""


@pytest.mark.parametrize(("rules", "paths"), SLOW.values(), ids=SLOW)
def test_rules_take_no_longer_than_their_length_and_that_of_a_path(
    rules: list[str], paths: list[str]
) -> None:
    with at_most(1):
        ignores = IgnoreRules(rules).ignores
        assert not any(ignores(f"{path}{n}") for n in range(100) for path in paths)


def test_twice_the_rules_and_twice_the_files_are_bounded_together() -> None:
    """The characters of all rules are limited, and the rest is named."""
    rules = IgnoreRules([f"*{'a' * 120}*{'a' * 60}b{n}" for n in range(500)])
    (problem,) = rules.problems
    assert problem.reason == "rule 109 and all after it left out: there are too many"
    with at_most(2):
        assert not any(rules.ignores(f"{'a' * 244}{n}") for n in range(1_000))


@pytest.mark.parametrize("text", ["[:" * 9_990, " " * 19_990 + "x", "\\" * 19_990, "[" * 19_990])
def test_a_rule_is_read_in_time(text: str) -> None:
    with at_most(0.5):
        IgnoreRules([text])


@pytest.mark.parametrize("level", ["a/", "\\a/", "[a]/", "?/"])
def test_a_directory_is_compared_with_one_level_of_each_pattern(level: str) -> None:
    include = Include([f"{level * 99}x{n}" for n in range(500)])
    with at_most(1):
        for number in range(100):
            include.enters(f"{'a/' * 98}{number}/")


def test_a_link_to_an_ignored_directory_lists_nothing(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "kb/ig/deep").mkdir(parents=True)
    for name in ("ig/x.md", "ig/deep/y.md", "a.md"):
        (tmp_path / "kb" / name).write_text("# X\n")
    (tmp_path / "kb/l").symlink_to("ig")
    (tmp_path / "kb/m").symlink_to("ig/deep")
    (tmp_path / "llm-kb.toml").write_text(
        '[kb.topic.p]\nsubjects = "kb"\nintroduction = "X."\nignore = ["ig/"]\n'
    )
    listed = run_llm(["kb", "list", "p", "--all"]).output
    assert ("a" in listed, "x" in listed, "y" in listed.replace("by", "")) == (True, False, False)
    assert run_llm(["kb", "check"]).exit_code == 0


PRIVATE = (".aws", ".ssh", ".env", ".env.d", ".gnupg", "node_modules")


@pytest.mark.parametrize("name", PRIVATE)
def test_init_proposes_no_topic_that_no_command_accepts(
    tmp_path: Path, run_llm: RunLlm, name: str
) -> None:
    for place in (name, f"deep/{name}/docs"):
        (tmp_path / place).mkdir(parents=True)
        for number in range(3):
            (tmp_path / place / f"p{number}.md").write_text("# P\n")
    (tmp_path / "README.md").write_text("# R\n")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-f", "."], cwd=tmp_path, check=True)
    assert run_llm(["kb", "init"]).exit_code == 0
    listed = run_llm(["kb", "list"])
    assert listed.exit_code == 0, listed.output
    assert name not in (tmp_path / "llm-kb.toml").read_text()
