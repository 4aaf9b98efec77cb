"""The index of a topic: an SQLite database beside its files, disposable."""
