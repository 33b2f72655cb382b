"""Sweeps of requests."""
