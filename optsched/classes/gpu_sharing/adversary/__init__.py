"""The search for bad instances of the class ``gpu-sharing``."""
