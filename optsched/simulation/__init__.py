"""The engines, of whole jobs and of tasks: continuous time, struct-of-arrays state, compiled loops."""
