"""What every policy keeps, whoever wrote it: checks of runs on small random instances.

The policies of the registry pass them in the tests; ``optsched check-policy`` asks them of anybody's.
"""
