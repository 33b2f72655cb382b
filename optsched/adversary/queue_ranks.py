"""The ranks of the keys of a queue order over all jobs of a range: what a program has to know of a policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.adversary.candidate import Candidate
from optsched.adversary.spaces.whole_jobs import WholeJobs
from optsched.errors import InputError
from optsched.policies.specification import Specification
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import KnownJobs, Order

MOST_KINDS = 200_000  # of jobs in a range


def queue_ranks(policy: Specification, space: WholeJobs) -> Ints:
    """Ranks i64[P, W, R + 1] of the keys of jobs by duration, weight and arrival; equal keys, equal ranks.

    Raises `InputError` where the policy is no queue order without preemption, where its keys depend on other jobs or on the
    order of the rows, and where the range is too large for a table.
    """
    limits = [(each.least, each.most) for each in space.quantities[:3]]
    shape = tuple(most - least + 1 for least, most in limits)
    kinds = int(np.prod(shape))
    if kinds > MOST_KINDS:
        raise InputError(
            "the range is too large", field="space", value=f"{kinds} kinds of jobs", legal=f"<= {MOST_KINDS}"
        )
    grid = np.stack(np.meshgrid(*(np.arange(least, most + 1) for least, most in limits), indexing="ij"), axis=-1)
    rows = [(*row, 1) for row in grid.reshape(-1, 3).tolist()]
    keys = _keys(policy, space, rows)
    if not np.array_equal(keys, _keys(policy, space, rows[::-1])[::-1]):
        raise _unfit(policy, "keys that depend on the job alone, not on the others or on the order of the rows")
    return np.unique(keys, return_inverse=True)[1].reshape(shape).astype(np.int64)


def _keys(policy: Specification, space: WholeJobs, rows: list[tuple[int, ...]]) -> Floats:
    ordered: Any = policy.policy
    if not callable(getattr(ordered, "order", None)):
        raise _unfit(policy, "a policy with order(jobs)")
    order: Order = ordered.order(KnownJobs(space.instance(Candidate(tuple(rows))), ordered.knowledge))
    changes = order.slope is not None or order.thresholds or order.starvation or order.round
    if changes or order.preemptive or order.first or order.rule is not None:
        raise _unfit(policy, "keys that do not change, and no preemption, rounds or overheads")
    return order.key


def _unfit(policy: Specification, legal: str) -> InputError:
    return InputError("the method is for queue orders", field="policy", value=policy.text, legal=legal)
