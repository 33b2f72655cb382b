"""The checks, one a file; each registers itself under its name."""
