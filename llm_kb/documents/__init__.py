"""Documents and notebooks, converted into Markdown."""
