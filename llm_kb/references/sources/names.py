"""The names of fetched files: which are safe to write, and how pages are named. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from urllib.parse import unquote, urlsplit

from llm_kb.subjects.names import is_portable

MAX_NAME = 100
MAX_PATH = 1000


def is_safe_path(path: str) -> bool:
    """Tell whether a `/`-separated path may be written below a topic, on any system.

    Such a path cannot lead out of the directory, is not misread by git, a terminal or Windows,
    has names that a topic can hold, and is of bounded length.
    """
    return len(path) <= MAX_PATH and all(
        is_portable(name) and name.lower() != ".git" for name in path.split("/")
    )


def page_key(url: str) -> str:
    """Return an address in the form by which pages are compared: `/index.html` becomes `/`."""
    return re.sub(r"/index\.html?$", "/", url.partition("#")[0])


def page_name(url: str) -> str:
    """Return the file name of a page: `https://e.org/learn/0.6/` → `e-org-learn-0-6.md`."""
    split = urlsplit(url)
    return f"{slug_text(f'{split.netloc} {unquote(split.path)} {split.query}', url)}.md"


def page_path(url: str) -> str:
    """Return the path of a crawled page, below a folder named after its host."""
    split = urlsplit(url)
    folder = slug_text(split.netloc, url)
    parts = [slug_text(unquote(part), part) for part in split.path.split("/") if part]
    if not parts or split.path.endswith("/"):
        parts.append("index")
    parts[-1] = re.sub(r"-(?:html?|md|markdown|txt|php)$", "", parts[-1])
    if split.query:
        parts[-1] += f"-{slug_text(unquote(split.query), url)}"
    if len(parts) > 12:
        return f"{folder}/{slug_text(split.path, url)}.md"
    return f"{folder}/{'/'.join(parts)}.md"


def slug_text(text: str, whole: str, most: int = MAX_NAME) -> str:
    """Return a text as lower-case letters, digits and dashes; a long or empty one gets a digest."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if slug and len(slug) <= most:
        return slug if is_portable(slug) else f"{slug}-1"  # such as `aux`, a device on Windows
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[:most].rstrip('-')}-{digest}".lstrip("-")


def unused_name(name: str, taken: Collection[str]) -> str:
    """Return a name, with a number before its extension if it is taken (ignoring case)."""
    folded = {other.casefold() for other in taken}
    stem, dot, extension = name.rpartition(".")
    if not dot or "/" in extension:
        stem, dot, extension = name, "", ""
    candidate, number = name, 1
    while candidate.casefold() in folded:
        number += 1
        candidate = f"{stem}-{number}{dot}{extension}"
    return candidate
