"""HTML pages: their tree, their properties and their Markdown."""
