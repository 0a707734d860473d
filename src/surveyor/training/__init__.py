"""Training loops and their runners."""
