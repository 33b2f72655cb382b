"""Formulations: each file is one scheduling problem as one mathematical program, found by name in `FORMULATIONS`."""

from __future__ import annotations

from optsched.models.formulation import FORMULATIONS, Formulation

__all__ = ["FORMULATIONS", "Formulation"]
