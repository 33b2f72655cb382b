"""Workloads of the study ``kv-cache``."""
