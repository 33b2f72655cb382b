"""Sweeps: a grid of instances, policies, parameters and seeds, run by many processes and stored in one file.

(The package is not named ``optsched.sweep``: it would replace the function of that name once it is imported.)
"""
