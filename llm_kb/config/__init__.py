"""The configuration: its keys, layers and files, and the trust in workspaces."""
