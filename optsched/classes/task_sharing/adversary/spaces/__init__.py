"""Instances that an attack on a policy for tasks searches."""
