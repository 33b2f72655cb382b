"""Theorems about policies for requests."""
