"""Readers of published traces (one dialect a file) and generators of instances (one recipe a file)."""

from __future__ import annotations

from optsched.io.traces.dialect import DIALECTS, Dialect, TraceRead, TraceRequest

__all__ = ["DIALECTS", "Dialect", "TraceRead", "TraceRequest"]
