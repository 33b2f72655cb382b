"""Spaces of instances whose jobs may share GPUs."""
