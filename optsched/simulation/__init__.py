"""The engines of whole jobs and of tasks: continuous time, state as arrays of records, compiled loops."""
