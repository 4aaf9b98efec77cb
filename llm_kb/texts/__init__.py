"""What a text is: formats, decoding, letters, markup, outlines, and pages. Pure."""
