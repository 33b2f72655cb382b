"""Exact searches for transfers on links."""
