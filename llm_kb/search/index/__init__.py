"""The index of a topic: a disposable SQLite database."""
