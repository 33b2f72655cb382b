"""Consolidation of parameters: the copies of a job become one model again at the end of a round.

theta_j <- sum_h steps_jh theta_jh / sum_h steps_jh, the same for the moments of an optimizer: local SGD in which the workers
take different numbers of local steps. One copy: the identity. Equal copies: the same vector, bit for bit.
Source: Sultana et al., arXiv 2503.10918 (HadarE), weights our own; local SGD: Stich, ICLR 2019 (arXiv 1805.09767).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optsched.problem.arrays import Floats


def consolidated(copies: Sequence[Sequence[Floats]], steps: Sequence[float]) -> list[Floats]:
    """The average of the copies' parameters, weighted by the steps that each did.

    Parameters
    ----------
    copies : of every copy its arrays, alike in number and shapes.
    steps : of every copy >= 0, at least one > 0; a copy that did nothing does not count.

    Raises
    ------
    ValueError
        Steps or shapes that do not fit together.

    Complexity O(copies x parameters).
    """
    done = np.asarray(steps, dtype=np.float64)
    if done.shape != (len(copies),) or not (np.isfinite(done).all() and (done >= 0).all() and done.sum() > 0):
        raise ValueError(f"steps {steps!r} of {len(copies)} copies (expected: one number >= 0 a copy, not all 0)")
    if len({tuple(np.shape(array) for array in copy) for copy in copies}) != 1:
        raise ValueError("the copies have parameters of different shapes")
    first = next(h for h, count in enumerate(done) if count > 0)
    weights = done / done.sum()
    # As the first copy plus weighted differences: what all copies agree on is kept exactly.
    return [
        np.asarray(theta, dtype=np.float64)
        + sum(weights[h] * (np.asarray(copies[h][k], dtype=np.float64) - theta) for h in np.flatnonzero(done).tolist())
        for k, theta in enumerate(copies[first])
    ]
