"""What is scheduled, on what, towards what, and what comes out: jobs, clusters, instances, objectives, schedules, and
their files."""
