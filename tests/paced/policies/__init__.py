"""Policies of the class ``paced``."""
