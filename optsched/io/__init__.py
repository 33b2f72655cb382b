"""Sources of instances: files, shipped instances by name, traces by dialect, recipes by seed."""
