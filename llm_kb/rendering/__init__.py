"""Renders the texts that a model reads: subjects, menu, section and listings. Pure."""
