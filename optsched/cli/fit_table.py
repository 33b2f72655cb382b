"""The table of ``fit``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from optsched.cli.layout import Sheet
from optsched.rounding import counted
from optsched.speeds.least_squares import Fitted


def fits_view(fits: Mapping[str, Fitted[Any]]) -> Group:
    """Return a row for every constant, and for every fit a line with its error and its assumptions.

    Parameters
    ----------
    fits
        The fits by name; a single fit has the name "".
    """
    sheet, notes = Sheet(("constant", "value", "std error", "95 % from", "to", "unit"), texts=("unit",)), []
    for name, fit in fits.items():
        prefix = f"{name}: " * bool(name)
        for row in fit.constants:
            numbers = (row.value, row.error, *fit.interval(row.name))
            sheet.add(prefix + row.name, *("-" if math.isnan(x) else f"{x:.4g}" for x in numbers), row.unit)
        explained = "-" if math.isnan(fit.r_squared) else f"{fit.r_squared:.6g}"
        error = f"largest relative error {100 * fit.largest_error:.2g} %"
        quality = f"{counted(len(fit.measured), 'row')}, R^2 {explained}, {error}"
        notes += [prefix + note for note in (quality, *fit.notes)]
    return Group(sheet, *map(Text, notes))
