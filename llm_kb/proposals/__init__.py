"""Pages and edits that models propose, and that wait for a person."""
