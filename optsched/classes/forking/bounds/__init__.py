"""Bounds of the class ``forking``."""
