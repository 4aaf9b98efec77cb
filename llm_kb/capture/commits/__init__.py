"""Chooses commits for a model to look at, writes the prompts and records the results."""
