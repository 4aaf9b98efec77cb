"""Documents as Markdown: the text of each kind, the cache and the limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_kb.documents.office import (
    BadDocumentError,
    convert_docx,
    convert_pdf,
    set_headings,
)
from llm_kb.errors import UnreadableError
from llm_kb.files import conversion
from llm_kb.files.conversion import ConversionError, Conversions
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.subjects.topics import TopicConfig
from llm_kb.texts.formats import POINTER
from llm_kb.upkeep.check import UNSEARCHED
from tests.conftest import RunLlm
from tests.cost import at_most
from tests.documents.office import DOCX, PDF, make_docx, make_pdf, pack, pack_docx

GUIDE = make_pdf(["Installing\nRun the walrus in-\nstaller.", "Use\n# not a heading"])
BOOK = make_pdf(
    ["1 Installing\nRun it.", "More of it.\n2 Use\nUse it."],
    [("Installing", 0), ("Use", 1), ("Lost heading", 1)],
)
WORD = make_docx([("Heading1", "Rules"), ("", "Be brief."), ("Heading2", "Exceptions")])


@pytest.mark.parametrize(
    ("convert", "data", "text"),
    [
        pytest.param(
            convert_pdf,
            GUIDE,
            "## Page 1\n\nInstalling\nRun the walrus installer.\n\n"
            "## Page 2\n\nUse\n\\# not a heading\n",
            id="pages",
        ),
        pytest.param(
            convert_pdf,
            BOOK,
            "<!-- page 1 -->\n\n## Installing\n\nRun it.\n\n<!-- page 2 -->\n\n## Lost heading\n\n"
            "More of it.\n\n## Use\n\nUse it.\n",
            id="bookmarks",
        ),
        pytest.param(convert_docx, WORD, "# Rules\n\nBe brief.\n\n## Exceptions\n", id="docx"),
    ],
)
def test_a_document_becomes_markdown(
    convert: Callable[[bytes], str], data: bytes, text: str
) -> None:
    made = convert(data)
    assert "\n".join(filter(None, made.split("\n"))) == "\n".join(filter(None, text.split("\n")))


def test_the_title_of_a_document_is_one_heading() -> None:
    made = convert_pdf(make_pdf(["a"], title="Walrus\n# other\r\nmore"))
    assert made.startswith("# Walrus # other more\n\n## Page 1\n")


def test_the_bookmarks_and_the_lines_of_a_page_do_not_multiply() -> None:
    text = "\n".join(f"line {n}" for n in range(4_000))
    with at_most(0.5):
        made = set_headings(text, [(1, f"title {n}") for n in range(4_000)])
    assert made.count("## title") == 4_000


def test_pages_for_which_there_is_no_time_are_counted() -> None:
    text = "> The last 2 of 3 pages are missing: converting it takes too long\n\n## Page 1\n\na\n"
    assert convert_pdf(make_pdf(["a", "b", "c"]), 0) == text


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def m(name: str, *parts: str) -> str:
    return f"<m:{name}>{''.join(parts)}</m:{name}>"


def words(text: str) -> str:
    return m("r", m("t", text))


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p>{run(text)}</w:p></w:tc>"


RAISED = run("2", '<w:vertAlign w:val="superscript"/>')
WIDE, TOP, BELOW = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
SIGMA = '<m:naryPr><m:chr m:val="∑"/></m:naryPr>'
BRACKETS = '<m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(
            f"<w:p>{run('E = mc')}{RAISED}</w:p>",
            "E = mc^2",
            id="power",
        ),
        pytest.param(
            f"<w:p>{run('As ')}"
            + m("oMath", words("x="), m("f", m("num", words("a+b")), m("den", words("2"))))
            + "</w:p>",
            "As x=(a+b)/2",
            id="fraction",
        ),
        pytest.param(
            "<w:p><m:oMathPara>"
            + m(
                "oMath",
                m("sSup", m("e", words("x")), m("sup", words("n+1"))),
                words("="),
                m("nary", SIGMA, m("sub", words("i=1")), m("sup", words("n")), m("e", words("i"))),
                m("rad", m("deg"), m("e", words("y"))),
                m("rad", m("deg", words("3")), m("e", words("z"))),
                m("d", BRACKETS, m("e", words("a")), m("e", words("b"))),
                m("func", m("fName", words("sin")), m("e", words("t"))),
            )
            + "</m:oMathPara></w:p>",
            "x^(n+1)=∑_(i=1)^ni√(y)3√(z)[a|b]sin t",
            id="on a line of its own",
        ),
        pytest.param(
            f"<w:tbl><w:tr>{cell('Kind')}{cell('Limit', WIDE)}{cell('Unit')}</w:tr>"
            f"<w:tr>{cell('net', TOP)}{cell('1')}{cell('2')}{cell('s')}</w:tr>"
            f"<w:tr>{cell('', BELOW)}{cell('3')}{cell('4')}{cell('ms')}</w:tr></w:tbl>",
            "| Kind | Limit |  | Unit |\n| --- | --- | --- | --- |\n"
            "| net | 1 | 2 | s |\n| net | 3 | 4 | ms |",
            id="merged cells",
        ),
    ],
)
def test_formulas_and_merged_cells_of_a_docx(body: str, text: str) -> None:
    assert convert_docx(pack_docx(body)) == f"{text}\n"


def item(text: str, level: int = 0, list_: int = 1) -> str:
    number = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_}"/></w:numPr>'
    return f"<w:p><w:pPr>{number}</w:pPr>{run(text)}</w:p>"


def code(text: str) -> str:
    font = '<w:rFonts w:ascii="Courier New"/>'
    return f'<w:p><w:r><w:rPr>{font}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
NUMBERING = (
    f"<w:numbering {W}>"
    '<w:abstractNum w:abstractNumId="0">'
    + "".join(f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="decimal"/></w:lvl>' for level in range(2))
    + "</w:abstractNum>"
    + "".join(
        f'<w:num w:numId="{number}"><w:abstractNumId w:val="0"/></w:num>' for number in (1, 2)
    )
    + "</w:numbering>"
)
STYLES = (
    f"<w:styles {W}>"
    '<w:style w:type="paragraph" w:styleId="Part"><w:name w:val="Part"/>'
    '<w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="My own"/>'
    '<w:basedOn w:val="Part"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="H8"><w:name w:val="heading 8"/></w:style>'
    "</w:styles>"
)


def styled(style: str, text: str) -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{run(text)}</w:p>'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(
            item("one")
            + f"<w:p>{run('Between.')}</w:p>"
            + item("two")
            + item("sub", 1)
            + item("three")
            + item("sub again", 1)
            + item("other", list_=2),
            "1. one\n\nBetween.\n\n2. two\n   1. sub\n3. three\n   1. sub again\n1. other",
            id="a list goes on",
        ),
        pytest.param(
            f"<w:p>{run('So:')}</w:p>" + code("def f():") + code("    return 1") + code("f()"),
            "So:\n\n```\ndef f():\n    return 1\nf()\n```",
            id="lines of code",
        ),
        pytest.param(
            styled("T", "All") + styled("Part", "A") + styled("Own", "B") + styled("H8", "C"),
            "# All\n\n## A\n\n## B\n\n###### C",
            id="headings by their styles",
        ),
    ],
)
def test_what_a_docx_says_by_styles_and_numbers(body: str, text: str) -> None:
    parts = {"word/numbering.xml": NUMBERING, "word/styles.xml": STYLES}
    assert convert_docx(pack_docx(body, parts)) == f"{text}\n"


def test_a_docx_of_more_text_than_memory_is_refused() -> None:
    body = f"<w:p>{run('a') * 100_000}</w:p>"
    with pytest.raises(BadDocumentError, match="its text is more than 6 MB of XML"):
        convert_docx(pack_docx(body + "<w:p/>" * 500_000))


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("docu-\nmentation", "documentation"),
        ("a well-\nknown place", "a well-known place"),
        ("use --no-\ncache here", "use --no-cache here"),
        ("the foobarly-\nquuxal", "the foobarlyquuxal"),
        ("a list -\nof things", "a list -\nof things"),
        ("sub-\nDirectory", "sub-\nDirectory"),
    ],
)
def test_what_is_divided_at_line_ends_is_joined(lines: str, text: str) -> None:
    assert convert_pdf(make_pdf([lines])) == f"## Page 1\n\n{text}\n"


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_a_document_that_opens_without_a_password_is_read(algorithm: str) -> None:
    data = make_pdf(["open"], owner="x", algorithm=algorithm)
    assert convert_pdf(data) == "## Page 1\n\nopen\n"


@pytest.mark.parametrize(
    ("convert", "data", "reason"),
    [
        (convert_pdf, make_pdf(["secret"], password="x"), "it needs a password"),
        (convert_docx, b"PK no zip", "it is damaged, or not of the kind that its name says"),
    ],
    ids=["password", "no archive"],
)
def test_a_hostile_document_is_refused(
    convert: Callable[[bytes], str], data: bytes, reason: str
) -> None:
    with pytest.raises(BadDocumentError, match=reason):
        convert(data)


@pytest.mark.slow
def test_a_bomb_is_refused() -> None:
    bomb = pack({"x": b"\0" * 200_000_001})
    with pytest.raises(BadDocumentError, match="it unpacks to more than 200 MB"):
        convert_docx(bomb)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (make_pdf([""]), "it has no text, perhaps only pictures of it"),
        (b"%PDF-1.7 nothing", "it cannot be converted: "),
    ],
    ids=["empty", "broken"],
)
def test_what_cannot_be_converted_is_said_and_not_tried_again(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    kept = Conversions(tmp_path / "kept")
    with pytest.raises(ConversionError, match=reason) as first:
        kept.convert(PDF, data)
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho '# By now'\n")
    program.chmod(0o755)
    kept = Conversions(tmp_path / "kept", program=str(program))
    with pytest.raises(ConversionError) as second:
        kept.convert(PDF, data)
    assert str(second.value) == str(first.value)
    (problem,) = (tmp_path / "kept").iterdir()
    os.utime(problem, (time.time() - 90_000,) * 2)
    assert kept.convert(PDF, data) == b"# By now\n"


def test_a_conversion_is_kept_and_ends_in_time(tmp_path: Path) -> None:
    directory = tmp_path / "kept"
    kept = Conversions(directory)
    assert kept.find(DOCX, WORD) is None
    text = kept.convert(DOCX, WORD)
    assert b"# Rules" in text
    hurried = Conversions(directory, seconds=0.001)
    assert hurried.convert(DOCX, WORD) == kept.find(DOCX, WORD) == text
    with pytest.raises(ConversionError, match=r"takes more than 0\.001 seconds"):
        Conversions(None, seconds=0.001).convert(DOCX, WORD)
    old = next(directory.iterdir())
    os.utime(old, (1, 1))
    kept.convert(PDF, GUIDE)
    assert not old.exists()


@pytest.mark.parametrize(
    "late",
    [
        pytest.param({"most_seconds": 0}, id="others took all the time"),
        pytest.param({"until": 0.0}, id="the time is over"),
        pytest.param({"until": "soon"}, id="the time ends meanwhile"),
    ],
)
def test_what_is_not_converted_for_lack_of_time_is_tried_again(
    late: dict[str, Any], tmp_path: Path
) -> None:
    if late.get("until") == "soon":
        late = {"until": time.monotonic() + 0.05}
    with pytest.raises(ConversionError, match="not converted yet: others took too long; try again"):
        Conversions(tmp_path, **late).convert(DOCX, WORD)
    assert list(tmp_path.iterdir()) == []
    assert b"# Rules" in Conversions(tmp_path).convert(DOCX, WORD)


def test_a_failure_of_this_machine_is_not_the_documents(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="not converted yet: No such file"):
        Conversions(tmp_path, program="/nowhere/python").convert(DOCX, WORD)
    assert b"# Rules" in Conversions(tmp_path).convert(DOCX, WORD)


def test_what_lies_in_the_current_directory_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "llm_kb").mkdir()
    (tmp_path / "llm_kb" / "__init__.py").write_text("raise SystemExit('hostile')")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from llm_kb.documents.addon import converters\n"
        "from llm_kb.files.conversion import Conversions\n"
        "import os; os.chdir(sys.argv[2])\n"
        "print(Conversions(None).convert(converters()[2], sys.stdin.buffer.read()).decode())\n"
    )
    root = Path(conversion.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(root), str(tmp_path)],
        input=WORD,
        capture_output=True,
        check=True,
    )
    assert b"Be brief." in done.stdout


CONFIG = '[kb.topic.guides]\nsubjects = "guides"\nintroduction = "Guides."\n'


@pytest.fixture
def guides(tmp_path: Path) -> Path:
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "walrus.pdf").write_bytes(BOOK)
    (tmp_path / "guides" / "rules.docx").write_bytes(WORD)
    (tmp_path / "guides" / "notes.md").write_text("# Notes\n\nOf a walrus.\n")
    (tmp_path / "llm-kb.toml").write_text(CONFIG)
    return tmp_path


def test_a_document_is_a_subject_with_parts(run_llm: RunLlm, guides: Path, user_dir: Path) -> None:
    listed = run_llm(["kb", "show", "--as-model", "guides"]).stdout
    assert "- rules\n- walrus\n" in listed
    assert not (user_dir / "kb" / "converted").exists()
    part = run_llm(["kb", "show", "--as-model", "guides/walrus#use"]).stdout
    assert "## Use\n\nUse it." in part
    assert "Installing" not in part
    assert len(list((user_dir / "kb" / "converted").glob("*.md"))) == 1
    found = run_llm(["kb", "search", "be", "brief"]).stdout
    assert found.startswith("guides/rules#rules  guides/rules.docx\n")
    assert "# Rules\n\nBe brief.\n" in found


def test_without_the_extra_one_line_names_it(
    run_llm: RunLlm, guides: Path, without_documents: None
) -> None:
    line = "2 documents (DOCX, PDF); to read them: llm install 'llm-kb[documents]'"
    for arguments, times in [
        (["kb", "check"], 1),
        (["kb", "search", "walrus"], 1),
    ]:
        result = run_llm(arguments)
        assert (result.stdout + result.stderr).count(line) == times, arguments
    checked = run_llm(["kb", "check"])
    assert (checked.exit_code, checked.stdout) == (
        0,
        f"guides/rules.docx: note: {line} [skipped]\n  {UNSEARCHED.advice}\n1 note in 1 subject\n",
    )
    catalog = DirectoryTopic(TopicConfig(id="guides", root=guides / "guides"))
    (walrus,) = catalog.list("walrus").subjects
    with pytest.raises(UnreadableError, match="to read it: llm install"):
        catalog.read(walrus)


def test_a_document_has_the_size_of_its_text_once_it_is_converted(
    run_llm: RunLlm, guides: Path
) -> None:
    large = BOOK.replace(b"startxref", b"%" * 400_000 + b"\nstartxref")
    (guides / "guides" / "walrus.pdf").write_bytes(large)

    def size(name: str) -> int:
        listed = json.loads(run_llm(["kb", "list", "guides", "--json"]).stdout)
        return int({each["slug"]: each["tokens"] for each in listed}[name])

    assert size("walrus") > 100_000
    text = run_llm(["kb", "show", "--as-model", "guides/walrus"]).stdout
    assert 0 < size("walrus") < len(text) / 3
    assert "- walrus: Installing\n" in run_llm(["kb", "show", "--as-model", "guides"]).stdout


def test_the_size_of_a_text_is_kept_without_reading_the_document(guides: Path) -> None:
    conversions = Conversions(guides / "kept")
    topic = DirectoryTopic(
        TopicConfig(id="guides", root=guides / "guides"), lambda: conversions, sized_bytes=0
    )
    (walrus,) = topic.list("walrus").subjects
    assert topic.find_size(walrus) == len(BOOK)
    text = topic.read(walrus)
    assert topic.find_size(walrus) == text.size
    (guides / "guides/walrus.pdf").write_bytes(BOOK + b"%\n")
    assert topic.find_size(walrus) == len(BOOK) + 2


def test_a_document_of_pictures_alone_is_a_note(run_llm: RunLlm, guides: Path) -> None:
    for name in ("1.pdf", "2.pdf", "3.pdf"):
        (guides / "guides" / name).write_bytes(make_pdf([""]))

    checked = run_llm(["kb", "check"])

    line = "guides/1.pdf: note: it has no text, perhaps only pictures of it (2 more like it)"
    assert checked.exit_code == 0
    assert f"{line} [skipped]\n  {UNSEARCHED.advice}\n" in checked.stdout


def test_a_pointer_to_git_lfs_is_named_and_no_document(run_llm: RunLlm, guides: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9000\n"
    for name in ("book.pdf", "logo.png", "page.md"):
        (guides / "guides" / name).write_text(pointer)

    checked = run_llm(["kb", "check"])
    learned = run_llm(["kb", "show", "--as-model", "guides/page"]).stdout

    assert f"guides/book.pdf: error: {POINTER} (1 more like it) [skipped]" in checked.stdout
    assert POINTER in learned
    assert "sha256" not in learned
    assert POINTER in run_llm(["kb", "search", "sha256"]).stderr
