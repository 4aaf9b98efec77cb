"""The field test: the plugins of real providers against a model of our own; see `make field`."""
