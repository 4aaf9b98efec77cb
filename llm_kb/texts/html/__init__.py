"""Web pages: their tree, their main part, and that as Markdown. Pure."""
