"""Runs of the class ``paced``."""
