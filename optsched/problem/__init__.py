"""Jobs, clusters, instances, objectives and schedules, and their files."""
