"""Exchange of entries with remotes, with git-chronicle and with Markdown files."""
