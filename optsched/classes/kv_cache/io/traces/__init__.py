"""Sources of requests."""
