"""Bounds of the class ``paced``."""
