"""Attacks on policies for jobs with tasks."""
