"""Bounds of the class ``elastic``."""
