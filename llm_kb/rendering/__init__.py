"""What a model reads: presentation, menu, section and listings. Pure."""
