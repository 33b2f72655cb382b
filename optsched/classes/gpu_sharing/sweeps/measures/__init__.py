"""Measures of runs that share GPUs."""
