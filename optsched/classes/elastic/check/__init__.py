"""The referee of the class ``elastic``."""
