"""HTML pages: their tree, what they say of themselves, and their Markdown."""
