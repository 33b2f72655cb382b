"""Requests on which policies are examined."""
