"""Searches for the worst instances of policies for requests."""
