"""Known-item sets: real trees in which the place that answers each query is known.

Sources are sdists from the package index, downloaded once by pip into a cache
outside the repository (`LLM_KB_BENCH_CACHE`, else the temporary directory). Every
query is held out: it is taken from the text and deleted there.

docs: a section's heading asks for the section. The heading, its underline and the
link targets above it are deleted.
code: the first sentence of a docstring asks for its function. The docstring is deleted.
errors: a message, with values in its blanks, asks for the line that raises it. Nothing is deleted.
names: the name of a class or function, as it is, asks for its definition. Nothing is deleted.
"""

from __future__ import annotations

import ast
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.documents import TopicDocuments
from llm_kb.subjects.topics import Topic

CACHE = Path(os.environ.get("LLM_KB_BENCH_CACHE") or Path(tempfile.gettempdir(), "llm-kb-bench"))

_DOCS_TUNE = [
    "sqlalchemy==2.1.9:doc",
    "celery==5.7.0:docs",
    "scrapy==2.19.0:docs",
    "mkdocs==1.6.1:docs",
    "mypy==2.4.1:docs",
    "aiohttp==3.14.5:docs",
    "coverage==7.17.3:doc",
    "setuptools==84.2.1:docs",
    "flask==3.1.3:docs",
    "twisted==26.10.0:docs",
    "pip==26.3:docs",
]
_DOCS = ["django==5.2.19:docs", "sphinx==9.0.4:doc", "hatch==1.18.2:docs", "pytest==9.2.0:doc"]
SETS = {
    # name: (kind, what of which sdist). Only on sets whose name ends in `tune` anything is tuned;
    # no source of theirs is in another set.
    "links-tune": ("links", _DOCS_TUNE),
    "headings-tune": ("headings", _DOCS_TUNE),
    "code-tune": ("code", ["sqlalchemy==2.1.9:lib/sqlalchemy/orm", "celery==5.7.0:celery",
                           "scrapy==2.19.0:scrapy", "networkx==3.6.1:networkx/algorithms",
                           "mypy==2.4.1:mypy", "aiohttp==3.14.5:aiohttp",
                           "coverage==7.17.3:coverage", "pip==26.3:src/pip/_internal"]),
    "links": ("links", _DOCS),
    "headings": ("headings", _DOCS),
    "code": ("code", ["django==5.2.19:django", "sphinx==9.0.4:sphinx", "tornado==6.6.1:tornado",
                      "black==26.10.1:src"]),
    # Small enough to embed on a CPU.
    "headings-small-tune": ("headings", ["mkdocs==1.6.1:docs", "scrapy==2.19.0:docs",
                                         "flask==3.1.3:docs", "coverage==7.17.3:doc",
                                         "pip==26.3:docs"]),
    "code-small-tune": ("code", ["scrapy==2.19.0:scrapy"]),
    "headings-small": ("headings", ["hatch==1.18.2:docs", "pytest==9.2.0:doc"]),
    "code-small": ("code", ["tornado==6.6.1:tornado"]),
    "errors-small-tune": ("errors", ["scrapy==2.19.0:scrapy"]),
    "errors-small": ("errors", ["tornado==6.6.1:tornado"]),
    "names-small-tune": ("names", ["scrapy==2.19.0:scrapy"]),
    "names-small": ("names", ["tornado==6.6.1:tornado"]),
}  # fmt: skip

DOCUMENTS = frozenset({".rst", ".txt", ".md"})
QUERIES = 1000
MIN_BODY = 200
PLACEHOLDER = "§"
HELD_OUT_SHARE = 0.4


def folder(directory: Path, database: Path | None = None) -> TopicDocuments:
    """Return all files below a directory as what an index is of."""
    catalog = DirectoryCatalog(Topic(id=directory.name, root=directory))
    place = database or directory.parent / ".index" / f"{directory.name}.sqlite3"
    return TopicDocuments(directory.name, directory, catalog, place, hidden=True)


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


def fetch(requirement: str) -> Path:
    """Download and unpack an sdist, once."""
    name, _, version = requirement.partition("==")
    target = CACHE / f"{name}-{version}"
    if not target.exists():
        archives = CACHE / "sdists"
        archives.mkdir(parents=True, exist_ok=True)
        pattern = f"{name.replace('-', '[-_]')}-{version}.tar.gz"
        if not list(archives.glob(pattern)):
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name,
                 "-d", archives, requirement],
                check=True,
            )  # fmt: skip
        with tarfile.open(next(archives.glob(pattern))) as archive:
            archive.extractall(CACHE, filter="data")
    return target


def build_set(name: str, directory: Path) -> list[Query]:
    """Write the held-out tree of a set to a directory and return its queries."""
    kind, parts = SETS[name]
    hold_out = {
        "headings": _hold_out_headings, "links": _hold_out_links, "code": _hold_out_docstrings,
        "errors": _find_messages, "names": _find_names,
    }[kind]  # fmt: skip
    suffixes = DOCUMENTS if kind in {"headings", "links"} else {".py"}
    chance = random.Random(name)
    queries: list[Query] = []
    for part in parts:
        requirement, _, folder = part.partition(":")
        root = fetch(requirement)
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in suffixes or not file.is_file() or "locale" in file.parts:
                continue
            path = f"{requirement.partition('==')[0]}/{file.relative_to(root).as_posix()}"
            text, found = hold_out(file.read_text(errors="replace"), path, chance)
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            queries += found
    if kind == "links":
        queries = list(_resolve_links(directory, queries))
    counts = Counter(query.text.casefold() for query in queries)
    queries = [query for query in queries if counts[query.text.casefold()] == 1]
    return chance.sample(queries, min(QUERIES, len(queries)))


_MESSAGE = re.compile(r'(?:raise \w+(?:\.\w+)*|log(?:ger)?\.\w+|warn)\(\s*f?"([^"\n]{30,160})"')
_BLANK = re.compile(r"%[-\w.]*[sdr]|\{[^}]*\}")
_VALUES = ("foo", "42", "'bar'", "/tmp/x")
_DEFINED = re.compile(r"^[ \t]*(?:def|class) (\w{6,})", re.MULTILINE)


def _find_messages(text: str, path: str, chance: random.Random) -> tuple[str, list[Query]]:
    queries = []
    for match in _MESSAGE.finditer(text):
        message = _BLANK.sub(lambda _: chance.choice(_VALUES), match[1])
        line = text.count("\n", 0, match.start()) + 1
        if len(message.split()) >= 5:
            queries.append(Query(message, path, line, line + 1))
    return text, queries


def _find_names(text: str, path: str, _: random.Random) -> tuple[str, list[Query]]:
    return text, [
        Query(match[1], path, line, line)
        for match in _DEFINED.finditer(text)
        if (line := text.count("\n", 0, match.start(1)) + 1)
    ]


_LINK = re.compile(r":(?:std:)?(ref|doc):`([^`<]*?)\s*<([^`>]+)>`")
_LABEL = re.compile(r"^\.\. _([^:\n`]+):[ \t]*$", re.MULTILINE)


def _hold_out_links(text: str, path: str, _: random.Random) -> tuple[str, list[Query]]:
    """Ask with the words of links; where they lead is resolved when all files are known."""
    queries: list[Query] = []

    def hold_out(link: re.Match[str]) -> str:
        words = " ".join(link[2].replace("`", "").split())
        if len(re.findall(r"[^\W\d_]{3,}", words)) < 2:
            return link[0]
        target = link[3].lstrip("!~").casefold()
        project = path.partition("/")[0]
        if link[1] == "doc":
            target = os.path.normpath(f"{path.rpartition('/')[0]}/{target}").casefold()
            target = target if not link[3].startswith("/") else f"*{link[3].casefold()}"
        else:
            target = f"{project}#{target}"
        queries.append(Query(words, target, 0, 0))
        return f":{link[1]}:`{link[3]}`"

    return _LINK.sub(hold_out, text), queries


def _resolve_links(directory: Path, queries: list[Query]) -> Iterator[Query]:
    """Yield the queries with the section each link leads to: its own text, not its children's."""
    places: dict[str, tuple[str, int, int]] = {}
    for file in sorted(directory.rglob("*")):
        if file.suffix not in DOCUMENTS:
            continue
        path = file.relative_to(directory).as_posix()
        lines = file.read_text().split("\n")
        headings = list(_headings(lines, path))
        if not headings:
            continue
        for number, (heading, following) in enumerate(pairwise([*headings, None])):
            first, last, _ = heading
            place = (path, first + 1, following[0] if following else len(lines))
            if number == 0:
                places[path.rpartition(".")[0].casefold()] = place
            for line in lines[first:last]:
                if label := _LABEL.match(line):
                    places[f"{path.partition('/')[0]}#{label[1].casefold()}"] = place
    for query in queries:
        if place := places.get(query.path):
            yield Query(query.text, *place)


_RST_TITLE = re.compile(r"[=\-~^\"'`#*+.:]{3,}\s*")
_MARKUP = re.compile(
    r":[\w:-]+:`([^`<]*)(?:<[^`]*>)?`|``?([^`]*)``?_{0,2}|\*+([^*]*)\*+|\[([^\]]*)\]\([^)]*\)|\{[^}]*\}"
)


def _hold_out_headings(text: str, path: str, chance: random.Random) -> tuple[str, list[Query]]:
    lines = text.split("\n")
    headings = list(_headings(lines, path))
    kept: list[str] = []
    queries: list[Query] = []
    position = 0
    for heading, following in pairwise([*headings, None]):
        first, last, title = heading
        end = following[0] if following else len(lines)
        body = lines[last + 1 : end]
        query = " ".join(_MARKUP.sub(_plain, title).split())
        if (
            len(re.findall(r"[^\W\d_]{3,}", query)) < 3
            or sum(map(len, body)) < MIN_BODY
            or chance.random() > HELD_OUT_SHARE
        ):
            continue
        # What is deleted are the words: the section stays one, with an empty name.
        kept += [*lines[position:first], *anonymize(lines[first : last + 1], title), ""]
        position = last + 1
        while position < len(lines) and not lines[position].strip():
            position += 1
        filled = [number for number, line in enumerate(lines[position:end]) if line.strip()]
        queries.append(Query(query, path, len(kept) + 1, len(kept) + 1 + filled[-1]))
    return "\n".join([*kept, *lines[position:]]), queries


def anonymize(heading: list[str], title: str) -> list[str]:
    """Return a heading without its words and the link targets above it."""
    if len(heading) == 1:
        return [f"{heading[0].partition(' ')[0]} {PLACEHOLDER}"]
    at = heading.index(title)
    return [PLACEHOLDER, heading[at + 1]]


def _headings(lines: list[str], path: str) -> Iterator[tuple[int, int, str]]:
    """Yield (first line, last line, title) of each heading, what names it included."""
    fenced = False
    for number, line in enumerate(lines):
        if path.endswith(".md"):
            fenced ^= line.lstrip().startswith(("```", "~~~"))
            if not fenced and (found := re.match(r"#{1,6}\s+(.*?)[\s#]*$", line)):
                yield number, number, found[1]
        elif (
            number
            and _RST_TITLE.fullmatch(line)
            and len(set(line.strip())) == 1
            and lines[number - 1].strip()
            and not lines[number - 1].startswith((" ", ".."))
            and not _RST_TITLE.fullmatch(lines[number - 1])
            and len(line.rstrip()) >= len(lines[number - 1].rstrip())
        ):
            first = number - 1
            if first and _RST_TITLE.fullmatch(lines[first - 1]):
                first -= 1
            above = first - 1
            while above >= 0 and (
                not lines[above].strip() or re.match(r"\.\. _.*:|\.\. index::", lines[above])
            ):
                first = above if lines[above].strip() else first
                above -= 1
            yield first, number, lines[number - 1].strip()


def _plain(markup: re.Match[str]) -> str:
    return next((group for group in markup.groups() if group), "").rpartition("~")[2].strip(". ")


def _hold_out_docstrings(text: str, path: str, _: random.Random) -> tuple[str, list[Query]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text, []
    lines = text.split("\n")
    removed: set[int] = set()
    found: list[tuple[str, int, int]] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or len(node.body) < 2:
            continue
        docstring = ast.get_docstring(node)
        sentence = re.split(r"\.(?:\s|$)|\n\s*\n|:\s*\n", docstring or "")[0]
        sentence = " ".join(_MARKUP.sub(_plain, sentence).split())
        if not 4 <= len(sentence.split()) <= 30:
            continue
        expression = node.body[0]
        if (
            expression.lineno == node.lineno
            or expression.end_lineno is None
            or node.end_lineno is None
        ):
            continue
        removed.update(range(expression.lineno, expression.end_lineno + 1))
        found.append((sentence, node.lineno, node.end_lineno))
    numbers: dict[int, int] = {}
    kept = []
    for number, line in enumerate(lines, 1):
        if number not in removed:
            kept.append(line)
        numbers[number] = len(kept)
    return "\n".join(kept), [
        Query(sentence, path, numbers[first], numbers[last]) for sentence, first, last in found
    ]
