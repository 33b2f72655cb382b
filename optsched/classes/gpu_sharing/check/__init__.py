"""The referee of the class ``gpu-sharing``."""
