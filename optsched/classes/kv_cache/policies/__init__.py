"""Policies for requests."""
