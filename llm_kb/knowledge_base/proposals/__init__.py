"""Changes of subjects that models propose, which wait for a person."""
