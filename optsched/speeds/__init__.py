"""How fast a job runs: one rate model a file."""
