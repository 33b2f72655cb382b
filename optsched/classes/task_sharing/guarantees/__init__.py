"""Theorems on transfers on a link, and a suite of small instances."""
