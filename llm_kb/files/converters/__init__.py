"""Pages and documents as Markdown."""

PROGRAM = "llm_kb.files.converters.office"
"""The program that converts one document, run in a process of its own."""

NO_TEXT = "it has no text, perhaps only pictures of it"
"""Why a document is not converted that was scanned, or is a picture."""

TOO_SLOW = "converting it takes too long"
"""Why pages of a document are missing."""

MAX_BYTES = 20_000_000
"""Size limit for a document, and for its text."""
