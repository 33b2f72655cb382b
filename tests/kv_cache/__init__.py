"""Requests of a language model."""
