"""Theorems as checks: guarantees, what is proven about an optimum, verdicts on runs, ratios over suites of instances.

A new theorem is one new file that registers a `Guarantee` under its name, and beside it the `Family` on which it is tight.
"""

from __future__ import annotations

from optsched.guarantees.family import FAMILIES, Family
from optsched.guarantees.guarantee import GUARANTEES, Guarantee, TightFamily
from optsched.guarantees.judge import Judgement

__all__ = ["FAMILIES", "GUARANTEES", "Family", "Guarantee", "Judgement", "TightFamily"]
