"""The pictures that models can look at: recognized by their first bytes. Pure."""

from __future__ import annotations

from llm_kb.texts.formats import find_extension

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
