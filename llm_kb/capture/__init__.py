"""Knowledge captured in a repository."""
