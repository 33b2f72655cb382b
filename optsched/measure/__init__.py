"""Measurements of training steps on a device: pairs of jobs that share it, and batches split into sub-batches."""
