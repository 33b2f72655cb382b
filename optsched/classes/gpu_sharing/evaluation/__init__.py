"""Evaluation of runs of the class ``gpu-sharing``."""
