"""Charts of jobs with tasks."""
