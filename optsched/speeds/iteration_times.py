"""Iteration times by sub-batch, accumulation, replicas and placement: by formula, or as measured.

The formula is that of `optsched.problem.scaling`. Where a scaling has `MeasuredSteps`, a step of m samples on each of
r replicas takes ``step`` seconds, of which ``sync`` are communication; s sub-steps of gradient accumulation take T =
step + (s - 1) (step - sync). Both are looked up

1. by the placement where it was measured: linear in the local batch m, between the least and the largest measured there;
2. else over (nodes, replicas, m): linear on the simplices of a Delaunay triangulation of the means over measured
   placements and of the scalability measurements; more than 16 nodes count as 16;
3. else, outside of everything that was measured, by the formula of the scaling: nothing is extrapolated. A scaling
   without a formula is then an `InputError`.

1 and 2 are the rules of the artifact that the measurements come from, which stops where 3 begins.
Source: petuum/adaptdl, branch osdi21-artifact (Apache-2.0); A. Qiao et al., Pollux, OSDI 2021.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.scaling import MeasuredSteps, Scaling

DIGITS = 18  # of a placement in an int64
MOST_NODES = 16  # that were measured in the artifact
FLAT, TOUCHING = 1e-12, 1e-9  # volume of a simplex that is none, in a box of sides 1; rounding of a point on its border


def iteration_seconds(scaling: Scaling, size: int, steps: int, replicas: int, spans: bool) -> float:
    """Return T(m, s, r) by the formula, in seconds.

    Parameters
    ----------
    scaling
        Scaling profile.
    size
        Samples m of a sub-step on a replica.
    steps
        Sub-steps s.
    replicas
        Replicas r.
    spans
        Replicas are on several nodes.
    """
    computing, network = scaling.compute + scaling.per_sample * size, 0.0
    if replicas > 1:
        first, growth = (scaling.across, scaling.across_growth) if spans else (scaling.within, scaling.within_growth)
        network = first + growth * max(replicas - 2, 0)
    larger, smaller = max(computing, network), min(computing, network)
    # scaled by the larger one: powers of small or large seconds leave the range of floats
    last = larger * (1.0 + (smaller / larger) ** scaling.overlap) ** (1.0 / scaling.overlap) if larger > 0 else 0.0
    return (steps - 1) * computing + last


def computing_seconds(scaling: Scaling, size: int, steps: int) -> float:
    """Return s C(m), the seconds of an iteration without communication; inf if a measured scaling has no formula.

    Parameters
    ----------
    scaling
        Scaling profile.
    size
        Samples m of a sub-step on a replica.
    steps
        Sub-steps s.
    """
    once = scaling.compute + scaling.per_sample * size
    return steps * once if once > 0 else math.inf


def placement_id(counts: Sequence[int]) -> int | None:
    """Return the smallest rotation of the replicas on each node, read as digits.

    Parameters
    ----------
    counts
        Replicas on each node used.

    Returns
    -------
    int or None
        None if a count is not a digit, or there are more than 18.

    Examples
    --------
    >>> placement_id([4, 4, 1])
    144
    """
    if len(counts) > DIGITS or max(counts) > 9:
        return None
    rotations = [(*counts[k:], *counts[:k]) for k in range(len(counts))]
    return int("".join(map(str, min(rotations))))


def _replicas(placement: int) -> int:
    return sum(map(int, str(placement)))


class MeasuredTable:
    """The measurements of one model, with look-up and interpolation.

    Parameters
    ----------
    measured
        The measurements.
    """

    def __init__(self, measured: MeasuredSteps) -> None:
        rows: dict[int, list[tuple[float, float, float]]] = {}
        for placement, local, step, sync in measured.placements:
            normal = placement_id([int(digit) for digit in str(int(placement)) if digit != "0"])
            assert normal is not None  # digits of an integer
            rows.setdefault(normal, []).append((local, step, sync))
        self._placed: dict[int, Floats] = {name: np.array(sorted(steps)).T for name, steps in rows.items()}
        # f64[points, 5] (nodes, replicas, local, step, sync): rising, as the triangulation of a lattice depends on the order
        sums: dict[tuple[float, float, float], list[tuple[float, float]]] = {}
        for name, of_name in self._placed.items():
            for local, step, sync in of_name.T.tolist():
                sums.setdefault((len(str(name)), _replicas(name), local), []).append((step, sync))
        means = [(*key, *np.mean(sums[key], axis=0).tolist()) for key in sorted(sums)]
        self._points = np.array([*means, *measured.scalability], dtype=np.float64).reshape(-1, 5)

    def of_counts(self, counts: Sequence[int], local: float) -> tuple[float, float] | None:
        """Return (step, sync) seconds of a placement by rule 1, else by rule 2; None if neither applies.

        Parameters
        ----------
        counts
            Replicas on each node used.
        local
            Local batch, in samples.
        """
        return self.of_placement(placement_id(counts), local) or self.between(len(counts), sum(counts), local)

    def of_placement(self, placement: int | None, local: float) -> tuple[float, float] | None:
        """Return (step, sync) seconds by rule 1; None if it does not apply.

        Parameters
        ----------
        placement
            Id of the placement (`placement_id`).
        local
            Local batch, in samples.
        """
        rows = None if placement is None else self._placed.get(placement)
        if rows is None or not rows[0][0] <= local <= rows[0][-1]:
            return None
        return float(np.interp(local, rows[0], rows[1])), float(np.interp(local, rows[0], rows[2]))

    def of_gang(self, replicas: int, local: float) -> dict[int, tuple[float, float]]:
        """Return (step, sync) seconds by rule 1 of the placements of a gang to which it applies, by id, rising.

        Parameters
        ----------
        replicas
            Number of replicas.
        local
            Local batch, in samples.
        """
        placed = {name: self.of_placement(name, local) for name in sorted(self._placed) if _replicas(name) == replicas}
        return {name: step for name, step in placed.items() if step is not None}

    @cached_property
    def _simplices(self) -> Simplices | None:
        from scipy.spatial import QhullError  # imported where it is used: it takes longer than most runs

        # at least 5 points: a simplex has four corners, and Qhull does not accept a single one
        try:
            return Simplices(self._points[:, :3], self._points[:, 3:]) if len(self._points) >= 5 else None
        except QhullError:  # all in one plane
            return None

    def between(self, nodes: int, replicas: int, local: float) -> tuple[float, float] | None:
        """Return (step, sync) seconds by rule 2; None if it does not apply.

        Parameters
        ----------
        nodes
            Number of nodes.
        replicas
            Number of replicas.
        local
            Local batch, in samples.
        """
        if self._simplices is None:
            return None
        return self._simplices.at(np.array([min(nodes, MOST_NODES), replicas, local], dtype=np.float64))


class Simplices:
    """Linear interpolation on the simplices of a Delaunay triangulation in three dimensions.

    scipy's `LinearNDInterpolator` computes the same by small LAPACK calls, one a simplex, which make the threads of
    BLAS spin on busy machines for seconds; this class uses determinants. For a lattice, some of Qhull's simplices
    overlap: scipy takes the first that it meets, which depends on earlier calls, this class the one in which the point
    lies deepest. For two points of a hundred they differ, by some per cent.

    Parameters
    ----------
    points
        Points, f64[P, 3].
    values
        Two values at every point, f64[P, 2].
    """

    def __init__(self, points: Floats, values: Floats) -> None:
        from scipy.spatial import Delaunay

        corners = Delaunay(points).simplices
        self._scale = np.ptp(points, axis=0)
        corner = (points / self._scale)[corners]  # f64[S, 4, 3]
        self._last = corner[:, 3]
        a, b, c = (corner[:, k] - self._last for k in range(3))
        self._normals = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
        volume = (a * self._normals[:, 0]).sum(axis=1)
        thick = np.abs(volume) > FLAT
        self._last, self._normals = self._last[thick], self._normals[thick] / volume[thick, None, None]
        self._values = values[corners[thick]]  # f64[S, 4, 2]

    def at(self, point: Floats) -> tuple[float, float] | None:
        """Return the two values at a point; None outside of all simplices. O(simplices).

        Parameters
        ----------
        point
            Point, f64[3].
        """
        if not self._last.size:
            return None
        three = (self._normals * (point / self._scale - self._last)[:, None, :]).sum(axis=2)
        shares = np.concatenate([three, 1 - three.sum(axis=1, keepdims=True)], axis=1)
        inside = shares.min(axis=1)
        best = int(np.argmax(inside))
        if inside[best] < -TOUCHING:
            return None
        step, sync = (shares[best][:, None] * self._values[best]).sum(axis=0).tolist()
        return step, sync


@lru_cache(maxsize=64)
def measured_table(measured: MeasuredSteps) -> MeasuredTable:
    """Return the table of measurements, built once.

    Parameters
    ----------
    measured
        The measurements.
    """
    return MeasuredTable(measured)


def seconds_of(
    found: tuple[float, float] | None, scaling: Scaling, size: int, steps: int, gang: int, spans: bool
) -> float:
    """Return T from a measured step, or by rule 3 if there is none.

    Parameters
    ----------
    found
        (step, sync) seconds by rule 1 or 2, or None.
    scaling
        Scaling profile.
    size
        Samples of a sub-step on a replica.
    steps
        Sub-steps.
    gang
        Number of replicas.
    spans
        Replicas are on several nodes.

    Raises
    ------
    InputError
        Nothing was measured near the placement, and the profile has no formula.
    """
    if found is not None:
        step, sync = found
        return step + (steps - 1) * max(step - sync, 0.0)
    if scaling.compute + scaling.per_sample == 0:
        raise InputError(
            f"nothing was measured near {gang} replicas of {size} samples on {'several nodes' if spans else 'one node'}",
            field="scalings.measured",
            legal="measurements around every placement, or compute and per_sample for a formula",
        )
    return iteration_seconds(scaling, size, steps, gang, spans)


def seconds_on(scaling: Scaling, size: int, steps: int, counts: Sequence[int]) -> float:
    """Return T(m, s) of a gang on some nodes, as measured or by the formula.

    O(log points) after the triangulation of the first call.

    Parameters
    ----------
    scaling
        Scaling profile.
    size
        Samples m of a sub-step on a replica.
    steps
        Sub-steps s.
    counts
        Replicas on each node used, in the order of the nodes.

    Raises
    ------
    InputError
        As in `seconds_of`.
    """
    if scaling.measured is None:
        return iteration_seconds(scaling, size, steps, sum(counts), len(counts) > 1)
    step = measured_table(scaling.measured).of_counts(counts, size)
    return seconds_of(step, scaling, size, steps, sum(counts), len(counts) > 1)
