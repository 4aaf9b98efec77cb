"""Topics of all kinds opened together: what is sent, learned, and found by a search."""
