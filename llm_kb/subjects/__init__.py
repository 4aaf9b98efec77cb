"""What a topic and a subject are, how they are named, and which a pattern selects. Pure."""
