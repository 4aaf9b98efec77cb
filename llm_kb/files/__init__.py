"""A topic's directory on disk: containment, the walk, layouts, atomic writes and the lock."""
