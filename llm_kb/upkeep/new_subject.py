"""Creates the file of a new subject in the directory of its topic."""

from __future__ import annotations

import re
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import create_below, replace_file
from llm_kb.files.containment import OutsideError, resolve_links
from llm_kb.subjects.ignore import is_always_ignored
from llm_kb.subjects.names import FORBIDDEN_ON_WINDOWS, UNUSABLE, is_portable
from llm_kb.subjects.topics import Layout, Topic

_WILDCARDS = re.compile(r"[*?\[\]]")
_EXTENSIONS = re.compile(
    r"\.(c|css|go|html|java|js|json|md|py|rs|rst|sh|sql|text|toml|ts|txt|xml|ya?ml)", re.IGNORECASE
)


class BadSlugError(KbError):
    """A slug that a new subject cannot have."""

    def __init__(self, slug: str, reason: str) -> None:
        super().__init__(f"cannot make a subject {slug!r}: {reason}")


class SubjectExistsError(KbError):
    """A new subject whose file exists already."""

    def __init__(self, topic: str, slug: str, path: Path) -> None:
        super().__init__(f"{str(path)!r} exists already; use 'llm kb edit {topic}/{slug}'")


def create_subject(topic: Topic, slug: str, text: bytes = b"") -> Path:
    """Write a new subject, by default with a heading, and return its file.

    The slug gets `.md` unless it ends in an extension. Raises BadSlugError,
    SubjectExistsError, WriteError.
    """
    place = place_subject(slug, topic.layout)
    path = topic.root / place
    outside = BadSlugError(slug, f"it would be outside {str(topic.root)!r}, through a link")
    if not resolve_links(path).is_relative_to(topic.root):  # the file itself may be a link
        raise outside
    try:
        create_below(topic.root, place, text or render_template(path, topic.layout).encode())
    except OutsideError as error:
        raise outside from error
    except FileExistsError as error:
        raise SubjectExistsError(topic.id, slug, path) from error
    return path


def replace_subject(topic: Topic, path: Path, text: bytes) -> None:
    """Replace the text of a subject's file. Raises BadSlugError through a link, WriteError."""
    if not resolve_links(path).is_relative_to(topic.root):
        raise BadSlugError(path.name, f"it is outside {str(topic.root)!r}, through a link")
    replace_file(path, text)


def place_subject(slug: str, layout: Layout) -> str:
    """Return the path of a new subject below its topic. Raises BadSlugError."""
    if ".." in slug.split("/"):
        raise BadSlugError(slug, "'..' leads out of the topic")
    for pattern in (UNUSABLE, _WILDCARDS, FORBIDDEN_ON_WINDOWS):
        if found := pattern.search(slug):
            raise BadSlugError(slug, f"it holds {found[0]!r}")
    parts = slug.split("/")
    if any(not part.strip(". ") or part != part.strip() for part in parts):
        raise BadSlugError(slug, "each part between slashes must be a name")
    path = f"{slug}/SKILL.md" if layout is Layout.SKILLS else _add_extension(slug)
    for part in path.split("/"):
        if is_always_ignored(part):
            raise BadSlugError(slug, f"nothing called {part!r} is ever a subject")
        if not is_portable(part):
            raise BadSlugError(slug, f"{part[:40]!r} cannot be a file name on every system")
    return path


def _add_extension(slug: str) -> str:
    suffix = Path(slug.rpartition("/")[2].lstrip(".")).suffix
    return slug if _EXTENSIONS.fullmatch(suffix) else f"{slug}.md"


def render_template(path: Path, layout: Layout) -> str:
    """Return the first text of a new subject, which is empty unless it is Markdown."""
    if path.suffix.lower() != ".md":
        return ""
    name = path.parent.name if layout is Layout.SKILLS else path.stem.lstrip(".")
    words = re.sub(r"[-_]+", " ", name).strip()
    heading = f"# {words[:1].upper()}{words[1:]}\n\n"
    if layout is not Layout.SKILLS:
        return heading
    return f"---\nname: {name}\ndescription: What it is for, and when to use it.\n---\n\n{heading}"
