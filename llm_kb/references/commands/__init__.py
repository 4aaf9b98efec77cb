"""The `llm kb references` commands."""
