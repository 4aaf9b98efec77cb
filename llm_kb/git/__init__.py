"""Runs git: `run` starts it, `read` reads its output while it runs."""
