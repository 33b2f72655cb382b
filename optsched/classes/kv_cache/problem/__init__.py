"""Requests of a language model, as arrays."""
