"""Sweeps over the class ``gpu-sharing``."""
