"""Notes on requests."""
