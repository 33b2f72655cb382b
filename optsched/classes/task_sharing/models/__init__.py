"""Formulations of transfers on links."""
