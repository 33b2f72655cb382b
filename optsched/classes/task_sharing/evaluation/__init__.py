"""Evaluation of runs of the class ``task-sharing``."""
