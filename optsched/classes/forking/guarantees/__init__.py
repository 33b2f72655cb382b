"""Theorems on the class ``forking``."""
