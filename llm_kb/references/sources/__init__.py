"""What can be fetched: git, web pages and local files, and the rules they must keep."""
