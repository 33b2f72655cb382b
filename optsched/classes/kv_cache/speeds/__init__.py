"""Speeds of requests."""
