"""The sources of reference topics (git, web pages, local files) and the rules for them."""
