"""Measurements of sweep cells that replace metrics and objectives; each file has one kind."""
