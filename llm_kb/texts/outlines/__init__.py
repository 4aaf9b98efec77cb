"""The headings and definitions of texts, by their markup. Pure."""
