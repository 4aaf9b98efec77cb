"""Every command is documented, and the transcripts in the documents are real."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from llm_kb.plugin import make_options, register_commands
from scripts import plot, plot_growth, plot_tokens
from scripts.screenshot import PICTURES, draw, record
from tests.console import EXAMPLES, PROJECT, SAMPLE, find_transcripts, iter_commands
from tests.scripted import Script

DOCUMENTS = [
    PROJECT / "README.md",
    *sorted((PROJECT / "docs").glob("*.md")),
]

INNER = [
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "docs" / "design.md",
    *sorted((PROJECT / "docs" / "decisions").glob("*.md")),
]
"""The pages about the code."""

CODE = {
    path.relative_to(PROJECT).as_posix(): path.read_text(encoding="utf-8", errors="replace")
    for folder in ("llm_kb", "tests", "bench", "scripts", "sample_kb", "docs", ".ci")
    for path in (PROJECT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".toml", ""} and path.is_file()
}
"""The files of the project, by path."""

PARTS = PROJECT / "docs" / "parts.svg"

HOME = "https://github.com/llm-kb/llm-kb"

HELP = ["-h", "--help"]

HOST = click.Group("llm")
register_commands(HOST)

COMMANDS = dict(iter_commands())

LEAVES = {
    name: command for name, command in COMMANDS.items() if not isinstance(command, click.Group)
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    assert COMMANDS[name].help


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_shows_an_example_of_itself(name: str) -> None:
    text = LEAVES[name].help or ""
    assert "\b" in text
    assert name in text.partition("\b")[2]


@pytest.mark.parametrize("name", LEAVES)
def test_every_option_has_help(name: str) -> None:
    options = [param for param in LEAVES[name].params if isinstance(param, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_every_command_and_option_is_documented() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    options = {
        (name, option)
        for name, command in {**COMMANDS, "llm prompt": click.Command("")}.items()
        for param in (make_options() if name == "llm prompt" else command.params)
        for option in param.opts
        if option.startswith("--")
    }
    assert [name for name in COMMANDS if name not in text] == []
    assert sorted((name, option) for name, option in options if option not in text) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_of_examples_parse(path: Path) -> None:
    """Each `llm kb` line of a shell block, up to a pipe, names what there is."""
    for line in find_shell_lines(path.read_text(encoding="utf-8")):
        if line.startswith("llm kb"):
            words = shlex.split(re.split(r"[|<>]", line)[0], comments=True)
            parse("llm", HOST, words[1:])


@pytest.fixture(scope="module")
def words() -> set[str]:
    """All words of the code."""
    code = [text for path, text in CODE.items() if not path.endswith(".md")]
    others = {"web_search", "web_fetch"}  # tools of providers
    return others.union(re.findall(r"\w+", "\n".join(code)))


@pytest.mark.parametrize("path", INNER, ids=lambda path: path.name)
def test_what_pages_about_the_code_name_is_in_it(path: Path, words: set[str]) -> None:
    """Files and directories, names of more than one word, and what they say is in which file."""
    text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
    named = re.findall(r"`([^`\n]+)`", text)
    files = [name for name in named if re.fullmatch(r"[\w./-]+\.py|(?:[\w.-]+/)+", name)]
    assert [name for name in files if not any(f"/{name}" in f"/{each}" for each in CODE)] == []
    compound = re.compile(r"(?=.*_|[A-Z][a-z]+[A-Z])[A-Za-z_][\w.]*(?:\(\))?")
    names = [name for name in named if compound.fullmatch(name)]
    assert [name for name in names if not words.issuperset(re.findall(r"\w+", name))] == []
    for name, file in re.findall(r"`(\w+)` (?:in|of) `([\w/]+\.py)`", text):
        found = [each for place, each in CODE.items() if f"/{place}".endswith(f"/{file}")]
        assert any(re.search(rf"\b{name}\b", each) for each in found), f"{file} has no {name}"


def find_shell_lines(markdown: str) -> list[str]:
    """Return the lines of the shell blocks, those that go on joined."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)
    return "".join(blocks).replace("\\\n", " ").splitlines()


def parse(name: str, command: click.Command, words: list[str]) -> None:
    """Parse words as a command would; files that an example names need not exist."""
    try:
        # With the host's setting, since a command keeps the first help option that it makes.
        with command.make_context(name, list(words), help_option_names=HELP) as context:
            if isinstance(command, click.Group):
                member, found, rest = command.resolve_command(
                    context,
                    [*context._protected_args, *context.args],  # noqa: SLF001
                )
                assert member is not None
                assert found is not None
                parse(member, found, rest)
    except click.UsageError as error:
        if not (isinstance(error, click.BadParameter) and "does not exist" in error.message):
            pytest.fail(f"{name} {words}: {error.message}")


@pytest.mark.slow
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_generated_parts_are_up_to_date(path: Path) -> None:
    """In a process of its own: click remembers how a command's help was first asked for."""
    command = [sys.executable, "-m", "cogapp", "--check", "--diff", "-I", str(PROJECT), str(path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_transcripts_are_generated(path: Path) -> None:
    """So that the test above holds them: cog runs what they show."""
    text = path.read_text(encoding="utf-8")
    by_hand = re.sub(
        r"^<!-- \[\[\[cog\n.*?\[\[\[end\]\]\]", "", text, flags=re.MULTILINE | re.DOTALL
    )
    assert find_transcripts(by_hand) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?://|#|mailto:)([^)#]+)", text)
    assert [target for target in targets if not os.path.lexists(path.parent / target)] == []
    ours = re.findall(rf"\]\({HOME}/(?:blob|tree)/main/([^)#]+)", text)
    assert [target for target in ours if not os.path.lexists(PROJECT / target)] == []


MAPS = [
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "docs" / "design.md",
    PROJECT / "docs" / "security.md",
    *sorted((PROJECT / "docs" / "decisions").glob("*.md")),
]


@pytest.fixture(scope="module")
def places() -> set[str]:
    """The files and directories of the project, each also by the ends of its path."""
    tops = ("llm_kb", "tests", "docs", "bench", "scripts")
    found = [path for top in tops for path in [PROJECT / top, *(PROJECT / top).rglob("*")]]
    parts = [path.relative_to(PROJECT).parts for path in found]
    return {"/".join(each[start:]) for each in parts for start in range(len(each))}


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.name)
def test_modules_and_directories_named_for_contributors_exist(path: Path, places: set[str]) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`([\w/.-]+(?:\.py|/))`", text)
    assert [name for name in named if name.rstrip("/") not in places] == []


def test_tests_named_by_the_threat_model_exist() -> None:
    promises = (PROJECT / "docs" / "security.md").read_text(encoding="utf-8")
    files = [*PROJECT.glob("tests/**/test_*.py")]
    defined = {
        name for path in files for name in re.findall(r"(?m)^def (test_\w+)", path.read_text())
    }
    named = set(re.findall(r"`(test_\w+)`", promises))
    assert len(named) > 10
    assert named <= defined


OF_THE_HOST = {"Chain limit of 5 exceeded", "Unknown fragment prefix: kb"}


def test_headings_of_troubleshooting_are_messages_of_the_program() -> None:
    """Those that begin in lower case, as messages do."""
    text = (PROJECT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## (.+)$", text, re.MULTILINE))
    messages = {heading for heading in headings if heading[0].islower()}
    sources = [path.read_text(encoding="utf-8") for path in PROJECT.glob("llm_kb/**/*.py")]
    said = {message for message in messages if any(message in source for source in sources)}
    assert len(messages) >= 5
    assert messages == said
    assert headings >= OF_THE_HOST


def test_the_readme_can_be_read_on_a_package_page() -> None:
    """Where relative links would lead nowhere."""
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert f"{HOME}/blob/main/docs/commands.md" in links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_there_are_transcripts() -> None:
    """So that the test that compares them cannot pass for want of any."""
    found = [find_transcripts(path.read_text(encoding="utf-8")) for path in DOCUMENTS]
    assert sum(map(len, found)) >= 4


def find_programs(markdown: str) -> list[str]:
    """Return the Python blocks of a document."""
    return re.findall(r"^```python\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)


PROGRAMS = [
    pytest.param(program, id=f"{path.name}-{number}")
    for path in DOCUMENTS
    for number, program in enumerate(find_programs(path.read_text(encoding="utf-8")))
    if "KnowledgeBase" in program
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run(program: str, script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    """In sample_kb, with a model that lists a topic, then answers."""
    asks_a_model = "gpt-4o-mini" in program
    if asks_a_model:
        script.call("learn", topic="project").say("Ask the maintainers.")
    program = program.replace("gpt-4o-mini", "scripted").replace("path/to/project", str(SAMPLE))
    program = program.replace("project/review", "project/code-quality")  # which README writes
    exec(program, {})
    shown = capsys.readouterr().out
    if asks_a_model:
        assert shown == "Ask the maintainers.\n"
        assert "<knowledge>" in script.requests[0].system
        assert "## Available subjects:" in script.last.outputs[0]
    else:
        assert "project/code-quality" in shown
        assert "no subject of topic 'project' matches 'no-such-subject'" in shown


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 3


@pytest.mark.slow
@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_the_picture_of_a_terminal_shows_what_the_commands_print(path: Path) -> None:
    """Made anew by scripts/screenshot.py."""
    assert draw(record(PICTURES[path])) == path.read_text(encoding="utf-8")


def test_the_drawing_of_parts_names_what_is_in_the_example() -> None:
    """Every name in docs/parts.svg is that of a subject or part, and every one is drawn."""
    drawn = re.findall(r'class="name \w+"[^>]*>docs/([^<]+)<', PARTS.read_text(encoding="utf-8"))
    pages = {path.stem: path.read_text("utf-8") for path in (EXAMPLES / "weather/docs").glob("*")}
    parts = [
        f"{name}#{heading.lower()}"
        for name, text in pages.items()
        for heading in re.findall("(?m)^## (.+)$", text)
    ]
    assert sorted(drawn) == sorted([*pages, *parts])


def test_the_readme_tells_what_was_measured() -> None:
    """In bench/RESULTS.md: the questions on projects that nothing was tuned with."""
    results = plot.RESULTS.read_text("utf-8")
    (row,) = re.findall(r"(?m)^\| llm-kb, word for word \| (\d+) \| (\d+) \| (\d+) \|$", results)
    (grep,) = re.findall(r"(?m)^\| `git grep`, the two rarest words \| (\d+) \|", results)
    text = " ".join((PROJECT / "README.md").read_text("utf-8").split())
    assert f"{row[2]} questions were written before their texts were read" in text
    said = f"first passage for {row[0]}, and among the four that a search prints for {row[1]}"
    assert said in text
    assert f"for the two rarest words answered {grep}" in text


def test_the_page_on_measurements_tells_what_was_measured() -> None:
    """The percentages of the summary in bench/RESULTS.md, rounded down."""
    rows = [row.split(" | ") for row in plot.RESULTS.read_text("utf-8").splitlines()]
    found = {row[0].strip("| "): row[2:] for row in rows if len(row) == 5}

    def tell(kind: str, column: int) -> str:
        return f"{int(float(found[kind][column].split()[0]))}"

    asked = "a real question, of the whole project"
    known = (
        "words of a deleted heading",
        "a deleted docstring",
        "a name, exact",
        "an error message, pasted",
    )
    text = " ".join((PROJECT / "docs" / "measured.md").read_text("utf-8").split())
    assert f"{tell(asked, 0)} of 100 (95 % interval" in text
    interval = f"{found[asked][1]} with 400 questions"
    assert (
        f"(95 % interval {interval} on 40 projects; the best other: {tell(asked, 2)}, of five"
        in text
    )
    ours, best = ([tell(kind, column) for kind in known] for column in (0, 2))
    assert (
        "{} of 100 deleted headings, {} of 100 docstrings, {} of 100 names and {}".format(*ours)
        in text
    )
    assert "(the best other: {}, {}, {} and {})".format(*best) in text


def test_the_plot_of_tokens_shows_what_was_measured() -> None:
    """Made anew by scripts/plot_tokens.py."""
    table = plot_tokens.read_table(plot_tokens.RESULTS.read_text(encoding="utf-8"))
    assert len(table) > 4
    assert plot_tokens.draw(table) == plot_tokens.PLOT.read_text(encoding="utf-8")


def test_the_plot_of_growth_shows_what_was_measured() -> None:
    """Made anew by scripts/plot_growth.py."""
    table = plot_growth.read_table(plot_growth.RESULTS.read_text(encoding="utf-8"))
    assert len(table) > 3
    assert plot_growth.draw(table) == plot_growth.PLOT.read_text(encoding="utf-8")


def test_the_plot_shows_what_was_measured() -> None:
    """Made anew by scripts/plot.py."""
    table = plot.read_table(plot.RESULTS.read_text(encoding="utf-8"))
    assert table.keys() == plot.KINDS.keys()
    assert plot.draw(table) == plot.PLOT.read_text(encoding="utf-8")
