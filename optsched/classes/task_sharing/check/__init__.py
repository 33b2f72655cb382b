"""The referee of the class ``task-sharing``."""
