"""Where instances come from: files, shipped ones by name, traces by dialect, recipes by seed."""
