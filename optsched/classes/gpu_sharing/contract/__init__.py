"""The policy contract on the class ``gpu-sharing``."""
