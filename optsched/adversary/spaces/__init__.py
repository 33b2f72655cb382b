"""Kinds of instances that can be searched: one a file, registered under its name."""
