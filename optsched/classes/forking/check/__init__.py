"""The referee of the class ``forking``."""
