"""The policy contract on the class ``task-sharing``."""
