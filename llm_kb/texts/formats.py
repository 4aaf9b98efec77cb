"""The table of formats: the one place that knows an extension and what follows from it. Pure.

A row says by which names its files are known, how their headings are found, how they are shown
to a model, and where `init` looks for them. All others ask `find_format`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib.util import find_spec

from llm_kb import addons, hookspecs
from llm_kb.texts.decoding import START, open_text

POINTER = "its content is in Git LFS and not here; in a clone of your own: git lfs pull"
"""Why there is nothing to read in a pointer."""


def is_pointer(data: bytes) -> bool:
    """Tell whether a file is what Git LFS keeps in a repository instead of it."""
    is_named = data.startswith(b"version https://git-lfs.github.com/spec/v1\n")
    return is_named and len(data) < 1024 and b"\noid sha256:" in data


class Kind(Enum):
    """What the files of a format are to a reader."""

    PROSE = "prose"
    """Documentation in a markup of its own."""
    PLAIN = "plain"
    """Documentation or anything else: plain text, and pages of HTML."""
    CODE = "code"
    DATA = "data"
    """Text that programs read: tables and settings."""
    MEDIA = "media"
    """Not text, or not text for readers; no search or menu names it."""


class Proposed(Enum):
    """Where `init` takes a format for pages of a project."""

    EVERYWHERE = "everywhere"
    DOCUMENTATION = "documentation"
    """Only in directories of documentation; plain text also in the root."""
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format: a row of the table."""

    name: str
    """Its name in messages."""
    extensions: tuple[str, ...]
    """In lower case, without the dot; an empty one stands for names without an extension."""
    kind: Kind
    names: str = ""
    """Whole names without the extension, as an expression, if only these have the format."""
    confirm: Callable[[str], bool] | None = None
    """Tells by the start of a text whether it has this format, if the extension alone does not."""
    markup: str = ""
    """The markup of its headings or definitions, a key of `OUTLINES`; empty if none is known."""
    is_fenced: bool = True
    """Whether a model sees it as a block of code; Markdown and plain text are shown as they are."""
    converter: str = ""
    """The name of what turns it into Markdown, whose lines it then has; empty if it is text."""
    convert: Callable[[bytes], bytes] | None = None
    """That, if it is quick and safe, so that nothing is kept."""
    program: str = ""
    """The module that does it otherwise, in a process with bounds: its arguments are `converter`
    and the seconds that it may take; it reads standard input and writes standard output. Exit
    code 2 says that the last line of its errors is the reason."""
    package: str = ""
    """The package that the program needs."""
    needs: str = ""
    """The command that installs it."""
    is_page: bool = False
    """Whether sites serve pages in it."""
    media_type: str = ""
    """What servers call it, if they say it by a type of its own."""
    is_table: bool = False
    """Whether it is rows or pairs for programs, in which no search looks."""
    is_built: bool = False
    """Whether it is often made from other pages, so that a link to it may lead nowhere yet."""
    proposed: Proposed = Proposed.NOWHERE

    @property
    def is_prose(self) -> bool:
        """Whether its files are documentation, by their format."""
        return self.kind in {Kind.PROSE, Kind.PLAIN}

    @property
    def is_unread(self) -> bool:
        """Whether it needs a package that is not installed."""
        return bool(self.package) and not has_package(self.package)

    @property
    def is_plain_text(self) -> bool:
        """Whether it is text without a markup that its name tells."""
        return self.kind is Kind.PLAIN and not self.is_built

    @property
    def is_markdown(self) -> bool:
        """Whether it is read as Markdown."""
        return self.markup == "markdown"

    @property
    def is_flowing(self) -> bool:
        """Whether the lines of its paragraphs can be broken elsewhere."""
        return self.markup in {"markdown", "rst"}


_NOT_ASCIIDOC = re.compile(r"\s*(?:-----BEGIN |ncols\s)", re.IGNORECASE)
_MAN_TITLE = re.compile(r"^[.']\s{0,8}(?:TH|Dd)[ \t]", re.MULTILINE)


def _prose(name: str, extensions: str, markup: str = "", **more: object) -> Format:
    """Return the row of a markup for documentation."""
    known = {"kind": Kind.PROSE, "proposed": Proposed.EVERYWHERE, **more}
    return Format(name=name, extensions=_words(extensions), markup=markup, **known)  # type: ignore[arg-type]


def _plain(name: str, extensions: str, **more: object) -> Format:
    """Return a row of plain text."""
    return Format(
        name=name, extensions=_words(extensions) or ("",), kind=Kind.PLAIN, markup="rst",
        is_fenced=False, is_page=True, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_DOCUMENTATION = Proposed.DOCUMENTATION

FORMATS = (
    # Markdown; some names of it have always been shown as they are
    _prose(
        "Markdown", "md markdown mdx", "markdown", is_fenced=False, is_page=True,
    ),
    _prose("Markdown", "mkd", "markdown", is_fenced=False, is_page=True),
    _prose("Cursor rules", "mdc", "markdown", is_fenced=False, proposed=Proposed.EVERYWHERE),
    _prose("Quarto", "qmd", "markdown", is_fenced=False),
    _prose("R Markdown", "rmd", "markdown", is_fenced=False),
    _prose("Markdown", "mdown mkdn mkdown livemd cheatmd", "markdown"),
    # Other markup
    _prose("reStructuredText", "rst", "rst", is_page=True),
    _prose("reStructuredText", "rest", "rst", is_page=True),
    _prose("included reStructuredText", "inc", "rst", names=r".*\.rst"),
    _prose("AsciiDoc", "adoc asciidoc", "asciidoc"),
    _prose("AsciiDoc", "asc", "asciidoc", confirm=lambda start: not _NOT_ASCIIDOC.match(start)),
    _prose("Org", "org", "org"),
    _prose("POD", "pod rakudoc", "pod"),
    _prose("LaTeX", "tex ltx latex", "latex"),
    _prose("MediaWiki", "mediawiki wiki wikitext", "mediawiki"),
    _prose("another markup", "creole typ textile lhs rdoc"),
    _prose("Texinfo", "texi texinfo", "texinfo", is_built=True),
    _prose("R documentation", "rd", "rd"),
    _prose(
        "man page",
        "1 2 3 4 5 6 7 8 9 n 1m 1p 1ssl 3p 3pm 3perl 3ssl 3x 5ssl 7ssl man mdoc roff",
        "man",
        is_built=True, proposed=_DOCUMENTATION,
        confirm=lambda start: bool(_MAN_TITLE.search(start)),
    ),
    # Plain text, which underlines titles as reStructuredText does, and may be some
    _plain(
        "page without an extension", "", proposed=Proposed.EVERYWHERE,
        names=r"readme(?:[-_.][\w-]+)?|install|hacking|todo|contributing|architecture|design|agents"
        r"|\.(?:[a-z]+[-_]?)?(?:rules|hints|guidelines|instructions)(?:[-_][a-z]+)?",
    ),
    _plain(
        "list for tools", "txt text", proposed=Proposed.NOWHERE,
        names="(?:.*[_-])?(?:requirements|constraints)(?:[_-].*)?|cmakelists|meson[._]options|robots|humans|runtime"
        "|top_level|sources|entry_points|manifest|(?:.*[_-])?(?:packages|deps|list|words|wordlist|dictionary)",
    ),
    _plain("plain text", "txt text", proposed=_DOCUMENTATION),
    _plain("text without an extension", "", proposed=Proposed.NOWHERE),
    Format(
        name="HTML", extensions=_words("html htm xhtml"), kind=Kind.PLAIN, markup="html",
        is_page=True, is_built=True,
    ),
    # Code, by the shape of its definitions
    Format(name="Python", extensions=_words("py pyi pyx"), kind=Kind.CODE, markup="python"),
    Format(
        name="JavaScript", extensions=_words("js jsx mjs cjs ts tsx mts cts"), kind=Kind.CODE,
        markup="script",
    ),
    Format(name="PHP", extensions=("php",), kind=Kind.CODE, markup="keywords", is_page=True),
    Format(
        name="code", kind=Kind.CODE, markup="keywords",
        extensions=_words(
            "rs go rb kt kts swift scala ex exs lua jl zig nim hs sh bash vue svelte pl pm"
        ),
    ),
    Format(
        name="code", kind=Kind.CODE, markup="braces",
        extensions=_words("c h cc cpp cxx hpp hh java cs m mm dart groovy"),
    ),
    Format(name="server page", extensions=_words("asp aspx"), kind=Kind.CODE, is_page=True),
    Format(
        name="code", kind=Kind.CODE,
        extensions=_words(
            "css scss sass less styl sql fs fsx fsi ml mli elm erl hrl clj cljs cljc edn lisp el"
            " scm rkt v sv vhd vhdl s asm f f90 f95 pas d nix tf tcl awk r coffee astro proto"
            " jsonnet libsonnet hcl raku rakumod rakutest agda eex heex"
            " thrift graphql cmake mk gradle bat cmd ps1 fish zsh bzl bazel tpl tmpl jinja j2 erb"
            " haml ejs hbs mustache pug glsl hlsl wgsl metal cu cuh inc in cl sol vim ino"
        ),
    ),
    # Data
    Format(
        name="settings", kind=Kind.DATA,
        extensions=_words(
            "toml yaml yml json json5 jsonc xml xsd xsl plist ini cfg conf properties env lock sum"
            " mod snap map patch diff log svgz pem crt cer key pub sln csproj vcxproj fsproj props"
            " targets resx desktop service editorconfig bak orig rej tmp"
            " bib bst cabal cff neon golden"
        ),
    ),
    Format(
        name="tables and translations", kind=Kind.DATA, is_table=True,
        extensions=_words("csv tsv jsonl ndjson geojson po pot xlf xlif xliff"),
    ),
    Format(
        name="pictures and fonts", kind=Kind.MEDIA,
        extensions=_words(
            "png jpg jpeg gif webp bmp ico icns tif tiff psd eps svg avif heic xcf pxm sketch"
            " drawio excalidraw ttf otf woff woff2 eot"
        ),
    ),
    Format(
        name="sound and video", kind=Kind.MEDIA,
        extensions=_words("mp3 wav ogg flac m4a mp4 mov avi mkv webm"),
    ),
    Format(
        name="archives and programs", kind=Kind.MEDIA,
        extensions=_words(
            "zip gz tgz bz2 xz zst 7z rar tar jar whl exe dll so dylib o class pyc pyo wasm bin"
        ),
    ),
    Format(
        name="documents and data", kind=Kind.MEDIA,
        extensions=_words(
            "doc epub xls xlsx ppt pptx odt ods odp db sqlite sqlite3 parquet npy npz pkl pickle"
            " inv typed"
        ),
    ),
)  # fmt: skip
"""The formats of the core.

Of several rows with an extension the first that confirms a text is its format."""

MARKDOWN_ENDING = ".md"
"""The extension of what we write ourselves, with its dot."""

_WRITTEN_BY_TOOLS = re.compile(
    r".*\.lockb?|.*-lock\.(?:json|yaml)|packages\.lock\.json|npm-shrinkwrap\.json|go\.sum"
    r"|.*[.-]min\.(?:js|css|mjs)|.*\.(?:map|svg|snap|pb\.(?:go|cc|h)|g\.dart|designer\.cs)"
    r"|.*_pb2(?:_grpc)?\.py",
    re.IGNORECASE,
)
_SERVED = re.compile(r"-(?:html?|md|markdown|txt|php)$")

_LANGUAGES = {"yml": "yaml", "rs": "rust", "py": "python", "js": "javascript", "ts": "typescript"}
"""Languages of fenced code that are not the extension itself."""


@cache
def list_formats() -> Sequence[Format]:
    """Return the rows of the table, and those that add-ons bring."""
    return (*FORMATS, *(row for _, row in addons.gather(hookspecs.converters)))


@cache
def _index() -> dict[str, list[Format]]:
    """Return the rows by extension, those of only some of its files first."""
    rows: dict[str, list[Format]] = {}
    for row in sorted(list_formats(), key=lambda row: not (row.confirm or row.names)):
        for extension in row.extensions:
            rows.setdefault(extension, []).append(row)
    return rows


def find_extension(path: str) -> str:
    """Return the last extension of a file without its dot, in lower case; empty without one."""
    stem, dot, extension = path.rpartition("/")[2].lstrip(".").rpartition(".")
    return extension.lower() if dot and stem else ""


def find_format(path: str, data: str | bytes | None = None) -> Format | None:
    """Return the format of a file by its name and, where that is ambiguous, its start.

    None for an unknown one. Without the data a format that has to be confirmed is unknown.
    """
    for row in _list_rows(path):
        if row.confirm is None or (data is not None and row.confirm(_start(data))):
            return row
    return None


def is_ambiguous(path: str) -> bool:
    """Tell whether the format of a file of this name depends on its start."""
    return any(row.confirm for row in _list_rows(path))


def _list_rows(path: str) -> Sequence[Format]:
    return _list_named(path.rpartition("/")[2])


@lru_cache(maxsize=16_384)
def _list_named(name: str) -> Sequence[Format]:
    """Return the rows that the name of a file admits, which is asked for several times."""
    rows, stem = _index().get(find_extension(name), ()), find_stem(name)
    return [row for row in rows if not row.names or re.fullmatch(row.names, stem, re.IGNORECASE)]


def find_stem(path: str) -> str:
    """Return the name of a file without its last extension."""
    name = path.rpartition("/")[2]
    return name[: -len(extension) - 1] if (extension := find_extension(name)) else name


def _start(data: str | bytes) -> str:
    start = data[:START]
    return start if isinstance(start, str) else open_text(start, whole=False).text


def find_fence_language(path: str) -> str | None:
    """Return the language of the block of code that a model sees; None if it sees no block."""
    row = find_format(path)
    extension = find_extension(path)
    return None if row and not row.is_fenced else _LANGUAGES.get(extension, extension)


def is_prose(path: str, data: str | bytes | None = None) -> bool:
    """Tell whether a file is documentation, by its format."""
    row = find_format(path, data)
    return row is not None and row.is_prose


def has_generated_name(path: str) -> bool:
    """Tell by its name whether a tool writes a file: a lock, minified or generated code."""
    return bool(_WRITTEN_BY_TOOLS.fullmatch(path.rpartition("/")[2]))


def strip_served(slug: str) -> str:
    """Return the slug of an address without the extension that most sites give their pages."""
    return _SERVED.sub("", slug)


def find_converted(path: str) -> Format | None:
    """Return the format of a file that is turned into Markdown; None if it is text."""
    row = find_format(path)
    return row if row and row.converter else None


def find_served(media_type: str) -> Format | None:
    """Return the format of a document by the type that a server gives it."""
    return next((row for row in list_formats() if row.media_type == media_type != ""), None)


@cache
def has_package(name: str) -> bool:
    """Tell whether a package is installed; it is not imported."""
    return find_spec(name) is not None


def is_document(path: str) -> bool:
    """Tell whether a file is a document, which a program turns into Markdown."""
    row = find_format(path)
    return row is not None and bool(row.program)


def is_unread_document(path: str) -> bool:
    """Tell whether a file is a document, and the package that reads it is not installed."""
    row = find_format(path)
    return row is not None and row.is_unread


def list_unread() -> list[str]:
    """Return the names of the formats whose packages are not installed."""
    return sorted(row.name for row in list_formats() if row.is_unread)


def is_readable(path: str) -> bool:
    """Tell by its extension whether a file may be text; listings and menus omit others."""
    row = find_format(path)
    return row is None or (row.kind is not Kind.MEDIA and not row.is_unread)


EXTENSIONS = frozenset({"png", "jpg", "jpeg", "gif", "webp"})

_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def is_picture(path: str) -> bool:
    """Tell by its extension whether a file should be a picture."""
    return find_extension(path) in EXTENSIONS


def find_media_type(data: bytes) -> str | None:
    """Return the media type of a picture, whatever its name is; None for anything else."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), None)
