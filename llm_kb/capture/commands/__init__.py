"""The `llm kb knowledge` commands."""
