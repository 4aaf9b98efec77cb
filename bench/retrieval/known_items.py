"""Known-item sets: questions of which the place that answers is known, in real projects.

headings: the words of a heading, deleted there, ask for its section (Markdown, reST, HTML).
code: the first sentence of what is said of a function, deleted, asks for it, without its name.
messages: an error message, with values in its blanks, asks for the line that raises it.
names: the name of a definition, or an option, as it is written, asks for its definition.
words: the same as words, as somebody types who half remembers.
misspelled: those words, or those of a heading, with one letter wrong.
own words: questions of `questions/`, written by hand for passages drawn at random, once as a
user asks and once as a model does.
chinese, japanese: the words of a deleted heading, in documentation of these languages.
"""

from __future__ import annotations

import ast
import json
import random
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sources import CACHE, SPLITS, read_source

QUESTIONS = Path(__file__).with_name("questions")
HELD_OUT, AS_IT_IS = 100, 40
"""At most so many questions of a kind are asked of one source."""

MIN_BODY = 200
"""Characters of a section that is asked for."""

HELD_OUT_SHARE = 0.4
PLACEHOLDER = "§"

DOCS = {".md": "Markdown", ".rst": "reST", ".html": "HTML"}
CODE = {".py": "Python", ".ts": "TypeScript", ".tsx": "TypeScript", ".go": "Go", ".rs": "Rust"}
CJK = {"vue-zh": "Chinese", "react-zh": "Chinese", "react-ja": "Japanese"}


class Query(NamedTuple):
    """A question and the lines of the file that answer it."""

    text: str
    path: str
    first_line: int
    last_line: int

    def is_answered_by(self, path: str, first_line: int, last_line: int) -> bool:
        """Whether most of a chunk is of the answer, or most of the answer in the chunk."""
        if path != self.path:
            return False
        shared = min(last_line, self.last_line) - max(first_line, self.first_line) + 1
        return 2 * shared > min(last_line - first_line, self.last_line - self.first_line) + 1


class Tree(NamedTuple):
    """A directory to search, and the questions asked of it by kind."""

    directory: Path
    questions: dict[str, list[Query]]


def build_trees(sources: Iterable[str]) -> Iterator[Tree]:
    """Write the trees of some sources and yield them with their questions."""
    for source in sources:
        files = list(read_source(source))
        suffix = Path(files[0][0]).suffix
        held_out = _hold_out_headings if suffix in DOCS else _hold_out_docstrings
        held_kind = (
            CJK[source] if source in CJK
            else f"headings, {DOCS[suffix]}" if suffix in DOCS
            else f"code, {CODE[suffix]}"
        )  # fmt: skip
        yield _write(source, "held-out", _ask(held_out, files, source, {held_kind}))
        if source not in CJK:
            asked = _ask(_find_as_it_is, files, source, set())
            own = _read_questions(source)
            yield _write(source, "as-it-is", (asked[0], asked[1] | own))


Held = tuple[str, list[tuple[str, Query]]]
"""A text as it is searched, and the kinds of the questions asked of it."""

Files = list[tuple[str, str]]


def _ask(
    ask: Callable[[str, str, random.Random], Held], files: Files, source: str, kinds: set[str]
) -> tuple[Files, dict[str, list[Query]]]:
    """Return what is searched, and questions of each kind whose words are asked only once."""
    chance = random.Random(source)
    written: Files = []
    found: dict[str, list[Query]] = {}
    for path, text in files:
        kept, queries = ask(path, text, chance)
        written.append((path, kept))
        for kind, query in queries:
            found.setdefault(kind or next(iter(kinds)), []).append(query)
    for kind, queries in found.items():
        counts = Counter(query.text.casefold() for query in queries)
        once = [query for query in queries if counts[query.text.casefold()] == 1]
        found[kind] = chance.sample(once, min(HELD_OUT if kinds else AS_IT_IS, len(once)))
    return written, found


def _write(source: str, variant: str, asked: tuple[Files, dict[str, list[Query]]]) -> Tree:
    directory = CACHE / "trees" / variant / source
    for path, text in asked[0]:
        target = directory / path
        if not target.exists() or target.read_text("utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
    return Tree(directory, asked[1])


def _read_questions(source: str) -> dict[str, list[Query]]:
    """Return the questions written for passages of a source, of a user and of a model."""
    found: dict[str, list[Query]] = {}
    for file in sorted(QUESTIONS.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row.get("source") == source and "user" in row:
                place = (row["path"], row["first_line"], row["last_line"])
                for asker in ("user", "model"):
                    kind = f"own words, {asker}"
                    found.setdefault(kind, []).append(Query(row[asker], *place))
    return found


# Headings

_RST_TITLE = re.compile(r"[=\-~^\"'`#*+.:]{3,}\s*")
_MARKUP = re.compile(
    r":[\w:-]+:`([^`<]*)(?:<[^`]*>)?`|``?([^`]*)``?_{0,2}|\*+([^*]*)\*+|\[([^\]]*)\]\([^)]*\)|\{[^}]*\}"
)
_TAG = re.compile(r"<[^<>]*>")
_HTML_HEADING = re.compile(r"<(h[1-6])\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_UNSPACED = re.compile(r"[\u3041-\u30ff\u4e00-\u9fff]")


def find_headings(path: str, text: str) -> list[tuple[int, int, str]]:
    """Return first line, last line and title of each heading, counting from 0.

    This knows nothing of how our chunks are cut.
    """
    if path.endswith(".html"):
        return [
            (
                text.count("\n", 0, match.start()),
                text.count("\n", 0, match.end()),
                " ".join(_TAG.sub("", match[2]).replace("&para;", "").replace("¶", "").split()),
            )
            for match in _HTML_HEADING.finditer(text)
        ]
    lines = text.split("\n")
    return list(_atx(lines) if path.endswith(".md") else _underlined(lines))


def _atx(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    fence = ""
    for number, line in enumerate(lines):
        opener = re.match(r"\s*(`{3,}|~{3,})", line)
        if opener and (not fence or line.strip() == fence):
            fence = "" if fence else opener[1]
        elif not fence and (found := re.match(r"#{1,6}\s+(.*?)[\s#]*$", line)):
            yield number, number, re.sub(r"\s*\{[^{}]*\}$", "", found[1])


def _underlined(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    for number, (above, line) in enumerate(pairwise(lines), 1):
        if (
            _RST_TITLE.fullmatch(line)
            and len(set(line.strip())) == 1
            and above.strip()
            and not above.startswith((" ", ".."))
            and not _RST_TITLE.fullmatch(above)
            and len(line.rstrip()) >= len(above.rstrip())
        ):
            first = number - 1
            if first and _RST_TITLE.fullmatch(lines[first - 1]):
                first -= 1
            before = first - 1
            while before >= 0 and (
                not lines[before].strip() or re.match(r"\.\. _.*:|\.\. index::", lines[before])
            ):
                first = before if lines[before].strip() else first
                before -= 1
            yield first, number, above.strip()


def _hold_out_headings(path: str, text: str, chance: random.Random) -> Held:
    lines = text.split("\n")
    kept: list[str] = []
    queries: list[tuple[str, Query]] = []
    position = 0
    for heading, following in pairwise([*find_headings(path, text), None]):
        first, last, title = heading
        end = following[0] if following else len(lines)
        query = plain(title)
        is_long = len(_UNSPACED.findall(query)) >= 4 or len(_find_words(query)) >= 3
        body = sum(map(len, lines[last + 1 : end]))
        if first < position or not is_long or body < MIN_BODY or chance.random() > HELD_OUT_SHARE:
            continue
        # What is deleted are the words: the section stays one, with an empty name.
        kept += [*lines[position:first], *_anonymize(path, lines[first : last + 1], title), ""]
        position = last + 1
        while position < len(lines) and not lines[position].strip():
            position += 1
        filled = [number for number, line in enumerate(lines[position:end]) if line.strip()]
        if filled:
            place = (len(kept) + 1, len(kept) + 1 + filled[-1])
            queries.append(("", Query(query, path, *place)))
    written = "\n".join([*kept, *lines[position:]])
    if path.endswith(".html"):
        for _, query in queries:
            # A page's own contents name its sections once more.
            written = re.sub(
                rf"(<a\b[^>]*>[^<]*){re.escape(query.text)}(?=[^<]*</a>)", r"\1", written
            )
    return written, queries


def _find_words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]{3,}", text)


def _anonymize(path: str, heading: list[str], title: str) -> list[str]:
    """Return a heading without its words, its anchor and the link targets above it."""
    if path.endswith(".html"):
        whole = "\n".join(heading)
        return _HTML_HEADING.sub(r"<\1>...</\1>", whole).split("\n")
    if len(heading) == 1:
        return [f"{heading[0].partition(' ')[0]} {PLACEHOLDER}"]
    at = next(number for number, line in enumerate(heading) if line.strip() == title)
    return [PLACEHOLDER, heading[at + 1]]


def plain(markup: str) -> str:
    """Return a title without the marks of Markdown and reStructuredText."""
    return " ".join(_MARKUP.sub(_read_markup, _TAG.sub("", markup)).split())


def _read_markup(markup: re.Match[str]) -> str:
    return next((group for group in markup.groups() if group), "").rpartition("~")[2].strip(". ")


# What is said of functions

_COMMENTED = {
    ".go": re.compile(r"(?:^//[^\n]*\n)+(?=func[ (])", re.MULTILINE),
    ".rs": re.compile(
        r"(?:^[ \t]*///[^\n]*\n)+"
        r"(?=(?:[ \t]*#\[[^\n]*\n)*[ \t]*(?:pub(?:\([a-z]+\))?\s+)?"
        r"(?:const\s+|async\s+|unsafe\s+)*fn\s)",
        re.MULTILINE,
    ),
    ".ts": re.compile(
        r"^[ \t]*/\*\*(?:(?!\*/).)*?\*/[ \t]*\n(?=[ \t]*(?:export|default|async|public|private"
        r"|protected|static|function|const|override|get|set|\*|\s)*[\w$#]+\s*(?:[=(<:]))",
        re.MULTILINE | re.DOTALL,
    ),
}
_COMMENT_MARK = re.compile(
    r"^[ \t]*(?:///?|/\*\*|\*/|\*(?!/))[ \t]?|\*/", re.MULTILINE
)  # fmt: skip
_DEFINED_NAME = {
    ".go": re.compile(r"func\s+(?:\([^)]*\)\s*)?(\w+)"),
    ".rs": re.compile(r"fn\s+(\w+)"),
    ".ts": re.compile(r"([\w$#]+)\s*[=(<:]"),
}


def _hold_out_docstrings(path: str, text: str, _: random.Random) -> Held:
    suffix = Path(path).suffix.replace(".tsx", ".ts")
    spans = list(_python_docstrings(text) if suffix == ".py" else _comments(suffix, text))
    kept: list[str] = []
    queries: list[tuple[str, Query]] = []
    lines = text.split("\n")
    removed = {number for span in spans for number in range(span[1], span[2] + 1)}
    numbers: dict[int, int] = {}
    for number, line in enumerate(lines, 1):
        if number not in removed:
            kept.append(line)
        numbers[number] = len(kept)
    for comment, _, _, first, last in spans:
        sentence = re.split(r"[.!](?:\s|$)|\n\s*\n|:\s*\n", comment.strip())[0]
        sentence = plain(sentence)
        if 4 <= len(sentence.split()) <= 30 and last > first:
            queries.append(("", Query(sentence, path, numbers[first], numbers[last])))
    return "\n".join(kept), queries


Span = tuple[str, int, int, int, int]
"""A comment, its lines, and those of what it is of, counting from 1."""


def _python_docstrings(text: str) -> Iterator[Span]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.body) > 1:
            docstring = ast.get_docstring(node)
            first = node.body[0]
            if docstring and first.lineno > node.lineno:
                yield (
                    docstring, first.lineno, first.end_lineno or 0, node.lineno,
                    node.end_lineno or 0,
                )  # fmt: skip


def _comments(suffix: str, text: str) -> Iterator[Span]:
    lines = text.split("\n")
    for match in _COMMENTED[suffix].finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        after = text.count("\n", 0, match.end()) + 1
        definition = next(
            (n for n in range(after, len(lines) + 1) if not lines[n - 1].lstrip().startswith("#[")),
            after,
        )
        name = _DEFINED_NAME[suffix].search(lines[definition - 1])
        comment = _COMMENT_MARK.sub("", match[0])
        comment = comment.partition("\n@")[0].strip()
        if name:
            comment = re.sub(rf"^{re.escape(name[1])}\b\s*", "", comment)
        if comment.startswith("@"):
            continue
        indent = re.match(r"[ \t]*", lines[definition - 1])
        closing = re.compile(rf"{indent[0] if indent else ''}[}})\]]")
        last = next(
            (n for n in range(definition + 1, len(lines) + 1) if closing.match(lines[n - 1])),
            definition,
        )
        yield comment, first, after - 1, definition, last


# Messages, names, options

_MESSAGE = {
    ".py": r"(?:raise \w+(?:\.\w+)*|log(?:ger)?\.\w+|warn)\(\s*f?\"([^\"\n]{30,160})\"",
    ".ts": r"(?:Error|warn|error)\(\s*[\"'`]([^\"'`\n]{30,160})[\"'`]",
    ".go": r"(?:Errorf|errors\.New|Error|Warn|Info|panic|Fatalf?|Sprintf)"
    r"\(\s*\"([^\"\n]{30,160})\"",
    ".rs": r"(?:bail!|panic!|format!|anyhow!|err_message!|expect|error|write!|ensure!|message!)"
    r"\((?:\s*f,)?\s*\"([^\"\n]{25,160})\"",
}
_BLANK = re.compile(r"%[-+\w.#]*[sdrvqTx]|\$?\{[^}]*\}")
_VALUES = ("foo", "42", "'bar'", "/tmp/x", "example.com", "true")
_DEFINED = {
    ".py": r"^[ \t]*(?:def|class) (\w{6,})",
    ".ts": r"^[ \t]*export (?:default )?(?:async )?(?:abstract )?"
    r"(?:function|class|interface|type|const) (\w{6,})",
    ".go": r"^(?:func (?:\([^)]*\) )?|type )(\w{6,})",
    ".rs": r"^[ \t]*pub (?:const |async |unsafe )*(?:fn|struct|enum|trait|type) (\w{6,})",
    ".rst": r"^[ \t]*\.\. (?:\w+:)?(?:confval|setting|option|directive|role|event|function|method"
    r"|class|attribute|envvar|reqmeta|signal|fixture|decorator)::[ \t]+([-\w.$:]{5,}).*$",
    ".md": r"^#{2,6} +`?\[?`?([-\w.:]*[-_.:][-\w.:]+)`?(?:\]\([^)]*\))?`?(?: +\{[^{}]*\})?$",
    ".html": r"<h[2-6]\b[^>]*>(?:<a\b[^>]*>)?(?:<code>)?(\w+(?:[-_]\w+|[A-Z]\w+))"
    r"(?:</code>)?(?:</a>)?</h"
    r"|<dt\b[^>]*>(?:<[^<>]*>)*(--[\w-]{5,})",
}  # fmt: skip


def _find_as_it_is(path: str, text: str, chance: random.Random) -> Held:
    suffix = Path(path).suffix.replace(".tsx", ".ts")
    lines = text.split("\n")
    queries = list(_find_messages(suffix, path, text, chance))
    for match in re.finditer(_DEFINED[suffix], text, re.MULTILINE):
        name = next(group for group in match.groups() if group)
        line = text.count("\n", 0, match.end()) + 1
        first = line if suffix in DOCS else _find_comment(lines, line)
        queries.append(("names", Query(name, path, first, line)))
        words = _split_name(name)
        if len(words) >= 2:
            queries.append(("words", Query(" ".join(words), path, first, line)))
            if wrong := misspell(words, chance):
                queries.append(("misspelled", Query(wrong, path, first, line)))
    if suffix == ".py":
        queries += _find_dotted(path, text)
    if suffix in DOCS:
        for (_, last, title), following in pairwise([*find_headings(path, text), None]):
            end = following[0] if following else len(lines)
            if len(_find_words(plain(title))) >= 3 and end - last > 3:
                wrong = misspell(plain(title).split(), chance)
                if wrong:
                    queries.append(("misspelled", Query(wrong, path, last + 1, end)))
    return text, queries


def _find_comment(lines: list[str], line: int) -> int:
    """Return where the comment right above a definition begins, which answers as well."""
    while line > 1 and re.match(r"\s*(?:///?|#|@|/?\*)", lines[line - 2]):
        line -= 1
    return line


def _find_messages(
    suffix: str, path: str, text: str, chance: random.Random
) -> Iterator[tuple[str, Query]]:
    for match in re.finditer(_MESSAGE.get(suffix, "(?!)"), text):
        message = _BLANK.sub(lambda _: chance.choice(_VALUES), match[1])
        line = text.count("\n", 0, match.start(1)) + 1
        if len(message.split()) >= 5:
            yield "messages", Query(message, path, line, line)


def _find_dotted(path: str, text: str) -> Iterator[tuple[str, Query]]:
    """Yield methods by their class, and what is at the top of a module by that."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    name = f"{node.name}.{method.name}"
                    yield "dotted", Query(name, path, method.lineno, method.lineno)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            module = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
            name = f"{module}.{node.name}"
            yield "dotted", Query(name, path, node.lineno, node.lineno)


def _split_name(name: str) -> list[str]:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W_]+", parted)]


def misspell(words: list[str], chance: random.Random) -> str:
    """Return words with one letter of a longer one wrong, left out, added or exchanged."""
    long = [number for number, word in enumerate(words) if word.isalpha() and len(word) >= 6]
    if not long:
        return ""
    number = chance.choice(long)
    word = words[number].lower()
    at = chance.randrange(1, len(word) - 1)
    letter = chance.choice(string.ascii_lowercase.replace(word[at], ""))
    wrong = chance.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        ]
    )
    return "" if wrong == word else " ".join([*words[:number], wrong, *words[number + 1 :]])


def main() -> None:
    """Print how many questions there are of each kind."""
    for split in ("tune", "report"):
        counts: Counter[str] = Counter()
        for tree in build_trees(SPLITS[split]):
            counts.update({kind: len(found) for kind, found in tree.questions.items()})
            shown = {kind: len(found) for kind, found in tree.questions.items()}
            print(tree.directory.parent.name, tree.directory.name, shown)
        print(split, dict(counts), "\n")


if __name__ == "__main__":
    main()
