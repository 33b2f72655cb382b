"""Mathematical programs of requests."""
