"""The commits a model looks at: their choice, their prompts and the record of results."""
