"""Runs of the class ``forking``."""
