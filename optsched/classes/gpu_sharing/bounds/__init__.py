"""Bounds of the class ``gpu-sharing``."""
