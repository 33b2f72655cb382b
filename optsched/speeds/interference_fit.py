"""Slow-downs xi of pairs of models on one GPU from measurements: seconds of an iteration alone, and beside another model.

The model is T = t_A alone and T = xi_{A|B} t_A beside B, xi >= 1: linear in the logarithms u_A = ln t_A and z_{A|B} =
ln xi >= 0, so that the fit is a non-negative least-squares problem, in which errors count as shares of what was measured.
Where pairs seem to run faster than alone, which is noise, xi is 1 and their seconds tell of t_A, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optsched.errors import InputError
from optsched.problem.interference import TURNS, Interference
from optsched.speeds.least_squares import Constant, Fitted, checked, non_negative


def fit_interference(
    models: Sequence[str], beside: Sequence[str | None], seconds: Sequence[float], *, ratio: float = TURNS
) -> Fitted[Interference]:
    """Slow-downs of pairs; one measurement: an iteration of ``models[i]`` beside ``beside[i]`` (None: alone) in seconds.

    Standard errors take all measurements to err by the same share; they need some that were repeated. ``ratio`` >= 1 is for
    pairs that were not measured; by default 2, as if the two took turns.

    Raises
    ------
    InputError
        Lists of unequal length, seconds that are invalid, a model that was not measured alone, no pair at all.

    >>> import optsched as osd
    >>> fit = osd.fit_interference(["vgg", "lstm", "vgg", "lstm"], [None, None, "lstm", "vgg"], [0.1, 0.2, 0.15, 0.24])
    >>> [round(fit.model.slowdown(*pair), 9) for pair in (("vgg", "lstm"), ("lstm", "vgg"))]
    [1.5, 1.2]
    """
    ones = {"models": [1.0] * len(models), "beside": [1.0] * len(beside)}  # only to be counted
    *_, T = checked({**ones, "seconds": seconds})
    cells = [(one, other or None) for one, other in zip(models, beside, strict=True)]
    kinds, pairs = sorted({name for cell in cells for name in cell if name}), sorted({c for c in cells if c[1]})
    for name in sorted(set(kinds) - {one for one, other in cells if other is None}):
        raise InputError("it was not measured alone", field="model", value=name, legal="every model alone, too")
    if not pairs:
        raise InputError("no two models were measured together", field="beside", legal="the name of another model")
    own = np.array([kinds.index(one) for one, _ in cells])
    X = np.zeros((len(cells), len(kinds) + len(pairs)))
    X[np.arange(len(cells)), own] = 1
    for i, cell in enumerate(cells):
        X[i, len(kinds) :] = [cell == pair for pair in pairs]
    logs, least = np.log(T), np.full(len(kinds), math.inf)
    np.minimum.at(least, own, logs)
    # t_A is never below the least seconds of A: counted from 1 below them, u has the sign that non-negative asks for
    found, spread = non_negative(X, logs - least[own] + 1, "every model alone and in pairs")
    xi, errors = np.exp(found[len(kinds) :]), np.sqrt(np.diag(spread)[len(kinds) :])
    constants = tuple(
        Constant(f"{one} beside {other}", *numbers)
        for (one, other), *numbers in zip(pairs, xi.tolist(), (xi * errors).tolist(), strict=True)
    )
    known = dict(zip(pairs, xi.tolist(), strict=True))
    table = tuple(tuple(known.get((one, other), ratio) for other in kinds) for one in kinds)
    made = Interference(ratio, tuple(kinds), table, "fitted to measurements")
    note = f"{len(kinds) ** 2 - len(pairs)} of {len(kinds) ** 2} pairs were not measured: {ratio:g} for these"
    residuals, notes = T - np.exp(X @ found + least[own] - 1), (note,) if len(pairs) < len(kinds) ** 2 else ()
    return Fitted(made, constants, T, residuals, len(T) - X.shape[1], notes)
