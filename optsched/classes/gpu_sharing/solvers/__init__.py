"""Exact methods of the class ``gpu-sharing``."""
