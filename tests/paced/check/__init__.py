"""The referee of the class ``paced``."""
