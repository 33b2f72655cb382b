"""Policies for jobs with tasks."""
