"""Theorems on the class ``gpu-sharing``."""
