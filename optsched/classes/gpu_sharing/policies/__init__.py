"""Policies under which two jobs may be on a GPU."""
