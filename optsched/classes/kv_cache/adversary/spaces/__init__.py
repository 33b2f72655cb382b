"""Spaces of instances of requests."""
