"""Topics and subjects, their names, and their selection by patterns. Pure."""
