"""The commits a model looks at: which ones, what it is shown, and what came of it."""
