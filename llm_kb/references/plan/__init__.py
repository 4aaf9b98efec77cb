"""Plans: find out what would be fetched, and show it, before anything is kept."""
