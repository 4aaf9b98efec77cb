"""What would be fetched, decided and shown before anything is kept."""
