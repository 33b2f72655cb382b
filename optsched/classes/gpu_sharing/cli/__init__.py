"""The command line of the class ``gpu-sharing``."""
