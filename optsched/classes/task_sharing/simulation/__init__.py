"""Runs of the class ``task-sharing``."""
