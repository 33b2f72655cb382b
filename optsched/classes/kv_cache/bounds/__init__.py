"""Bounds of requests."""
