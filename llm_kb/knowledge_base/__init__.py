"""Opens topics of all kinds together, to send, learn and search them."""
