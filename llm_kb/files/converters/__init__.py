"""Pages and documents as Markdown."""

PROGRAM = "llm_kb.files.converters.documents"
"""The program that converts one document, run in a process of its own."""

MAX_BYTES = 20_000_000
"""Size limit for a document, and for its text."""
