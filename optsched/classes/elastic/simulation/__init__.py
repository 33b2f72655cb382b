"""Runs of the class ``elastic``."""
