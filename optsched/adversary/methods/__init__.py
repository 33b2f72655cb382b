"""Ways to look for the worst instance, one a file."""
