"""Transfers on shared links, and logs of tasks."""
