"""Readers of published traces (one dialect a file) and generators of instances (recipes)."""
