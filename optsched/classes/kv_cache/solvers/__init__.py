"""Exact search for requests."""
