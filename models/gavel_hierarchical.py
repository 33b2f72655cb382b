"""Gavel's hierarchical fairness: entities share by weight, and inside an entity its jobs share, or queue.

Sets, data, base constraints: `gavel_allocation`. Data: entities e with weights W_e > 0; the entity of each job; what rules
inside each entity, ``fairness`` or ``fifo``; w_m, weights of jobs inside their entity.
Method: water filling (`gavel_water_filling`, whose program a round is), with these weights in a round:

    fairness   W_e w_m / sum of w over the unfixed jobs of e        every unfixed job m of e
    fifo       W_e for the first unfixed job of e, 0 for the others                        (jobs are in order of arrival)

Optimum: levels rise at the speeds of these weights until each is stopped by a bottleneck; what a fixed job would have had
goes to the rest of its entity first, since the entity's weight stays the same as long as a job of it is unfixed. All
entities ``fairness`` with one job each: water filling with weights W_e. One entity, ``fifo``: a strict order.
Size: at most n rounds of n R + 1 columns, 2 n + R rows.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optsched.errors import InputError, check_legal
from optsched.models.gavel_allocation import AllocationProblem, TimeShares
from optsched.models.gavel_water_filling import fill
from optsched.problem.arrays import Bools, Floats, Ints

RULES = ("fairness", "fifo")


@dataclass(frozen=True)
class Entity:
    """An owner of jobs: ``weight`` W_e > 0 and the ``rule`` inside, ``fairness`` or ``fifo``."""

    weight: float = 1.0
    rule: str = "fairness"

    def __post_init__(self) -> None:
        check_legal(0 < self.weight < np.inf, "weight", self.weight, "a number > 0")
        check_legal(self.rule in RULES, "rule", self.rule, ", ".join(RULES))


def round_weights(problem: AllocationProblem, entities: Sequence[Entity], of: Ints, unfixed: Bools) -> Floats:
    """The weights of one round, f64[n]; ``of`` i64[n] is the entity of each job."""
    weights = np.zeros(problem.n)
    for e, entity in enumerate(entities):
        open_jobs = np.flatnonzero((of == e) & unfixed)
        if open_jobs.size and entity.rule == "fifo":
            weights[open_jobs[0]] = entity.weight
        elif open_jobs.size:
            weights[open_jobs] = entity.weight * problem.w[open_jobs] / problem.w[open_jobs].sum()
    return weights


def allocate(problem: AllocationProblem, entities: Sequence[Entity], of: Ints) -> TimeShares:
    """Entity ``of[m]`` owns job m. Value: the smallest sum of levels of an entity, divided by its weight; no prices."""
    of = np.asarray(of, dtype=np.int64)
    if of.shape != (problem.n,) or ((of < 0) | (of >= len(entities))).any():
        legal = f"{problem.n} numbers from 0 to {len(entities) - 1}"
        raise InputError("not an entity for each job", field="of", value=of.tolist(), legal=legal)
    filled = fill(problem, lambda unfixed: round_weights(problem, entities, of, unfixed))
    owned = np.bincount(of, weights=filled.levels, minlength=len(entities))
    value = min(owned[e] / entity.weight for e, entity in enumerate(entities) if (of == e).any())
    return TimeShares(filled.X, float(value), None)
