"""The referee of requests."""
