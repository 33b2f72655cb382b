"""Measurements of jobs with tasks."""
