"""Thinning a time-indexed program: an incumbent and LP bounds remove columns, cuts raise the bound, until little is left.

**Elimination.** Let z be the LP's optimum and c_jt >= 0 the reduced cost of a column that is 0. Every solution that uses it
costs at least z + c_jt. Where that exceeds ``upper - step`` (values differ by multiples of ``step``) no better schedule
than the incumbent uses it. **Cuts** are the rows of `start_program.violated_rows`, valid for every schedule.

What is left after a few rounds is a program of a few hundred columns that HiGHS finishes in seconds, or none at all:
then the incumbent is optimal.

References: reduced cost fixing is from Dantzig, Fulkerson and Johnson, Operations Research 2 (1954); the time-indexed LP,
Dyer and Wolsey (1990).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Certificate
from optsched.deadline import NEVER, Deadline
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.session import Session
from optsched.solvers.start_program import RowFamily, SlotJobs, StartProgram, violated_rows

ROUNDS = 12
ROWS = 3000  # new rows a round
BUILDING = 2e-6  # seconds a nonzero, before the LP can begin
POLISHED = 3_000_000  # nonzeros of the LP that makes the last certificate
STALLED = 0.02  # of the gap: cuts that gain less in a round are not worth another
TOLERANCE = 1e-6  # relative: an LP's optimum and reduced costs are floats


@dataclass(frozen=True)
class Thinned:
    """What is left. ``program`` None: nothing, the incumbent is optimal.

    ``bound``: no schedule that is better than the incumbent is below it (a float that HiGHS vouches for);
    ``certificate``: the best exact bound on the way; ``rows``: those that had a price in the last LP.
    """

    program: StartProgram | None
    bound: float
    certificate: Certificate | None
    finished: bool
    rows: tuple[RowFamily, ...] = ()


def thin(
    jobs: SlotJobs,
    job: Ints,
    start: Ints,
    *,
    upper: Fraction,
    step: Fraction | None,
    keep: Ints | None = None,
    deadline: Deadline = NEVER,
    on_bound: Callable[[float], None] | None = None,
) -> Thinned:
    """Remove columns (job[i], start[i]) that no schedule better than ``upper`` uses.

    Parameters
    ----------
    step : every two values differ by a multiple of it; None: unknown, then only what cannot be better goes.
    keep : slot of every job in the incumbent; those columns stay, so that it remains a solution.
    deadline : when to stop; ``finished`` is then False.
    """
    cutoff = float(upper - step) if step is not None else float(upper)
    slack = TOLERANCE * max(1.0, abs(cutoff))
    families = {jobs.gpus.tobytes(): RowFamily(jobs.gpus, jobs.instance.cluster.gpus)}  # GPUs held, at most G of them
    bound, gained, certificate = -np.inf, np.inf, None
    program: StartProgram | None = None
    active: tuple[RowFamily, ...] = ()
    for _ in range(ROUNDS):
        if deadline.left <= BUILDING * int(jobs.length[job].sum()):
            return Thinned(program, bound, certificate, False)
        program = StartProgram.build(jobs, job, start, list(families.values()))
        session = Session(program.program, relax=True)
        outcome = session.solve(time_limit=deadline.left)
        if outcome.status == "infeasible":
            return Thinned(None, float(upper), certificate, True, active)
        if outcome.status != "optimal" or outcome.x is None or outcome.value is None:
            return Thinned(program, bound, certificate, False)
        active = _active(program, session.duals())
        found = program.certificate(session.duals())
        certificate = found if certificate is None or found.value > certificate.value else certificate
        gained, bound = outcome.value - bound, max(bound, outcome.value)
        if on_bound is not None:
            on_bound(bound)
        if bound > cutoff + slack or (certificate is not None and certificate.value >= upper):
            return Thinned(None, float(upper), certificate, True, active)
        alive = outcome.value + session.reduced_costs() <= cutoff + slack
        if keep is not None:
            alive |= start == keep[job]
        new = violated_rows(jobs, program.in_process(outcome.x), ROWS)
        job, start, few = job[alive], start[alive], bool(np.mean(alive) > 0.9)
        if not new or (few and gained < STALLED * (float(upper) - bound)):
            break
        for family in new:
            key = family.width.tobytes()
            known = families.get(key)
            if known is not None and known.slots is not None and family.slots is not None:
                family = replace(family, slots=np.union1d(known.slots, family.slots))
            families[key] = family
    program = StartProgram.build(jobs, job, start, list(families.values()))
    return Thinned(program, bound, certificate, True, active)


def polish(thinned: Thinned, jobs: SlotJobs, job: Ints, start: Ints, deadline: Deadline = NEVER) -> Certificate | None:
    """A certificate nearly as high as the bound: the LP of **all** columns with the rows that mattered.

    Prices of a thinned LP may be too low where columns were removed; those of all columns are feasible everywhere.
    None when the LP is too large or the time is up.
    """
    families = thinned.rows
    nonzeros = len(families) * int(jobs.length[job].sum())
    if not families or nonzeros > POLISHED or deadline.left <= BUILDING * nonzeros:
        return None
    program = StartProgram.build(jobs, job, start, families)
    session = Session(program.program, relax=True)
    outcome = session.solve(time_limit=deadline.left)
    return program.certificate(session.duals()) if outcome.status == "optimal" else None


def _active(program: StartProgram, row_dual: Floats) -> tuple[RowFamily, ...]:
    """The rows that have a price, family by family."""
    priced = row_dual[program.jobs.release.size :] < 0
    slots = [program.row_slot[priced & (program.row_family == f)] for f in range(len(program.families))]
    plain = program.families[:1]
    return plain + tuple(
        replace(family, slots=at) for family, at in zip(program.families[1:], slots[1:], strict=True) if at.size
    )
