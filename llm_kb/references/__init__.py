"""Reference topics: fetched, kept and searched."""
