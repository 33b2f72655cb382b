"""Runs of the class ``gpu-sharing``."""
