"""Look after a knowledge base: check it, list it, count its costs, propose topics."""
