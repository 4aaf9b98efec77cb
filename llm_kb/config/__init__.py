"""The configuration: its keys, its layers, where its files are, and which are trusted."""
