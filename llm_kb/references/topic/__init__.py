"""A reference topic on disk: its description, its provenance and its files."""
