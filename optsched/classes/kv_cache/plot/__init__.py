"""Charts of requests."""
