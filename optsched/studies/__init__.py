"""Repeatable experiments, one in each file."""
