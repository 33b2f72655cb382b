"""Measures of requests."""
