"""Runs of requests."""
