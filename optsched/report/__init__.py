"""What people read of runs: tables of policies beside each other with bounds and ratios, the files of `run -o`, HTML."""
