"""Plans: find out what would be fetched, and show it, before any file is kept."""
