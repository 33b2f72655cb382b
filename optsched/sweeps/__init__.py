"""Sweeps: a grid of instances, policies, parameters and seeds, run by many processes and kept in one file.

(Not ``optsched.sweep``: that is the function, and a package of its name would take its place once it is imported.)
"""
