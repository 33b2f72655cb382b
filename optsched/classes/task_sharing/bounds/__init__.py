"""Bounds of the class ``task-sharing``."""
