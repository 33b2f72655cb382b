"""`attack`: search for the instance on which a policy is worst, shrink it, prove its ratio, and find a similar family."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product
from math import gcd
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from optsched.adversary.attack_method import METHODS, TOLERANCE, TOLERANCE_LEGAL, Budget, Found
from optsched.adversary.evaluation import Confirmed, Evaluation, confirmed
from optsched.adversary.space import Candidate, Row, SearchSpace, put, space_of
from optsched.classes import usual_class
from optsched.deadline import NEVER, Deadline
from optsched.errors import OptschedError, check_legal
from optsched.guarantees.family import FAMILIES, Member
from optsched.policies.simulate import PolicyLike, specify
from optsched.problem.arrays import Floats
from optsched.problem.atomic_files import file_name
from optsched.problem.html import html_of, number
from optsched.problem.instance import Instance
from optsched.problem.objectives import DEFAULT, get_objective
from optsched.rounding import significant
from optsched.speeds.duration import seconds_alone

OPTIMUM = "opt"
SHOWN = ("arrival", "gpus", "duration", "iterations", "profile", "weight")  # where they are not the same for all jobs
SECONDS = 45.0  # budget where none is given
SEARCH, SHRINK, PROOF = 0.65, 0.6, 0.6  # parts of the time that is left then; what is left at last is for words
Advance = Callable[[int, int], None]
Best = Callable[[float, Instance], None]


@dataclass(frozen=True)
class Attack:
    """Result of an attack.

    ``searched``: the largest ratio of the search, before shrinking; ``tries``: their number. ``proved``: no instance of the
    ``space`` with at most this number of jobs has a larger ratio; 0: not proved.
    """

    confirmed: Confirmed
    against: str
    searched: float
    tries: int
    resembles: Resemblance | None
    method: str
    space: SearchSpace
    proved: int

    @property
    def instance(self) -> Instance:
        """The small instance; with its optimum if that is proved."""
        return self.confirmed.instance

    @property
    def ratio(self) -> float:
        """Value of the policy / value of the best known schedule, or of the other policy, on that instance."""
        return self.confirmed.ratio

    @property
    def policy(self) -> str:
        """Text of the policy."""
        return self.confirmed.policy.text

    @property
    def knowledge(self) -> str:
        """Knowledge of the policy."""
        return str(self.confirmed.policy.policy.knowledge)

    def __repr__(self) -> str:
        other = f"{self.confirmed.objective} of the {self.confirmed.ratio_to}"
        return f"Attack({self.policy!r}: {self.ratio:.6g} times the {other}, {self.instance.n} jobs)"

    def _repr_html_(self) -> str:
        return html_of("attack", self)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``attack --json``."""
        best, near = self.confirmed, self.resembles
        like = None if near is None else {"family": near.member, "distance": near.distance, "ratio": near.ratio}
        return {
            "policy": self.policy,
            "knowledge": self.knowledge,
            "against": self.against,
            "objective": best.objective,
            "ratio": self.ratio,
            "ratio_exact": str(best.exact),
            "ratio_to": best.ratio_to,
            "ratio_at_most": best.most,
            "value": float(best.value),
            "other": float(best.other),
            "searched": self.searched,
            "tries": self.tries,
            "method": self.method,
            "space": self.space.text,
            "proved_jobs": self.proved,
            "resembles": like,
            "guarantees": [each.to_json() for each in best.judged],
            "instance": self.instance.to_json(),
        }

    @property
    def headline(self) -> str:
        """Return the ratio and its reference in words."""
        best = self.confirmed
        to = {"optimum": "the optimum", "schedule": "what another schedule reaches"}.get(best.ratio_to, best.ratio_to)
        exact = f" = {best.exact}" if best.exact.denominator < 10**6 else ""
        return (
            f"{self.policy}: {significant(self.ratio, 6, 'down')}{exact} times {to} "
            f"({best.objective} {number(float(best.value))} against {number(float(best.other))})"
        )

    @property
    def columns(self) -> list[str]:
        """Return the informative columns of the table of jobs."""
        rows = self.instance.table.to_dicts()
        shown = [name for name in SHOWN if any(row[name] is not None for row in rows)]
        return [name for name in shown if name in ("arrival", "duration") or len({row[name] for row in rows}) > 1]

    @property
    def facts(self) -> list[str]:
        """Return a line on the policy's knowledge, the bound, each theorem, the family, and the search or the proof."""
        best, lines = self.confirmed, [f"knowledge of {self.policy}: {self.knowledge}"]
        if best.ratio_to == "schedule":
            most = "nothing bounds it" if best.most is None else f"at most {significant(best.most, 6, 'up')}"
            lines.append(f"the optimum is not proved: the ratio to it is at least the one above, and {most}")
        for judged in best.judged:
            most = f"<= {significant(judged.ratio, 6, 'up')} x the optimum of {judged.objective}"
            lines.append(f"{judged.id}: {most}, {judged.verdict}")
        if self.resembles is not None:
            lines.append(f"it {self.resembles.text}")
        return [*lines, self._effort()]

    def _effort(self) -> str:
        if self.method == "search":
            return f"found in {self.tries:,} tries; before it was made small: {significant(self.searched, 6, 'down')}"
        where, solved = f"no instance of {self.space.text}", f"{self.tries:,} mixed-integer programs"
        if self.proved == self.space.jobs:
            return f"{where} is worse: proved by HiGHS, {solved}"
        if self.proved == 0:
            return f"{solved}: the budget ended before anything was proved"
        return f"{where} with at most {self.proved} jobs is worse: proved by HiGHS, {solved}, when the budget ended"


MORE_TIME = "give a larger budget, or run optsched warm-up once: what is compiled takes some of it"


def attack(
    policy: PolicyLike,
    against: PolicyLike = OPTIMUM,
    *,
    objective: str = DEFAULT,
    space: str = "",
    jobs: int | None = None,
    gpus: int | None = None,
    seconds: float | None = None,
    tries: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    tolerance: float | None = None,
    method: str = "search",
    progress: Advance | None = None,
    best: Best | None = None,
    deadline: Deadline = NEVER,
) -> Attack:
    """Find an instance on which ``policy`` is far from the optimum, or from another policy.

    Parameters
    ----------
    policy
        Policy, as for `optsched.simulate`; ``MODULE:CLASS`` for your own.
    against
        ``"opt"``, the best schedule of the class of the policy's schedules; or another policy.
    objective
        Name of the objective.
    space
        Kind of instances, ``NAME[:key=value,...]`` (``optsched list spaces``); "": the kind for the policy.
    jobs, gpus
        Largest number of jobs, and GPUs of the cluster; None: those of the space.
    seconds, tries
        Budget: time, or number of simulated instances (then the result depends only on ``seed``); both None: 45 seconds.
    seed
        Seed of the search.
    workers
        Number of processes; None: one for each processor.
    tolerance
        Part of the ratio that a smaller instance may lose; None: 1 %, and nothing if the worst instance is proved.
    method
        ``"search"``, or ``"milp"``, which proves that no instance of the space is worse; for queue orders on one machine.
    progress
        Function called with (tries done, all tries, or 0 if not known).
    best
        Function called with the largest ratio so far and its instance, whenever it grows.
    deadline
        Deadline set by the caller, in addition to ``seconds``.

    Returns
    -------
    Attack
        With ``.instance``, ``.ratio``, ``.confirmed`` (what is proved) and ``.resembles``.

    Raises
    ------
    InputError
        If the policy, objective, space or a parameter is unknown, or the budget is not valid.
    OptschedError
        If no instance with a ratio was found.

    Examples
    --------
    >>> import optsched as osd
    >>> found = osd.attack("list", objective="makespan", space="whole-jobs:arrivals=false,gangs=false", tries=400, workers=1)
    >>> found.ratio, found.confirmed.ratio_to
    (1.5, 'optimum')
    """
    chosen, goal = specify(policy), get_objective(objective).name
    rival = None if isinstance(against, str) and against == OPTIMUM else specify(against)
    whole = "an integer >= 1"
    check_legal(seconds is None or 0 < seconds < float("inf"), "budget", seconds, "seconds > 0")
    check_legal(tries is None or tries >= 1, "tries", tries, whole)
    check_legal(workers is None or workers >= 1, "workers", workers, whole)
    check_legal(tolerance is None or 0 <= tolerance < 1, "tolerance", tolerance, TOLERANCE_LEGAL)
    method = METHODS.canonical(method)
    way = METHODS.get(method)
    sizes = {**way.usual, **{key: value for key, value in (("jobs", jobs), ("gpus", gpus)) if value is not None}}
    kind = space_of(chosen.policy, space, weights=get_objective(goal).weighted, **sizes)
    evaluation, name = Evaluation(kind, chosen, rival, goal), f"worst-{file_name(chosen.text)}"
    if deadline is NEVER:
        deadline = Deadline.after(SECONDS if seconds is None and tries is None else seconds)
    reported = [0.0]

    def watch(found: Found, every: int) -> None:
        if progress is not None:
            progress(found.tries, every)
        if best is not None and found.elites and found.elites[0][0] > reported[0]:
            reported[0], candidate = found.elites[0]
            best(reported[0], kind.instance(candidate, name).replace(objective=goal))

    found = way.run(evaluation, Budget(deadline.share(SEARCH), tries, seed, workers or _processors()), watch)
    if not found.elites or found.elites[0][0] <= 0:
        more = "" if found.tries else f": {MORE_TIME}"
        raise OptschedError(f"no instance with a ratio was found in {found.tries} tries{more}")
    searched, worst = found.elites[0]
    small = shrunk(evaluation, worst, way.tolerance if tolerance is None else tolerance, deadline.share(SHRINK))
    shown = confirmed(evaluation, small, name, deadline.share(PROOF))
    other, near = OPTIMUM if rival is None else rival.text, resemblance(shown.instance, goal)
    return Attack(shown, other, searched, found.tries, near, method, kind, found.proved)


def _processors() -> int:
    # those that this process may use, where the system tells
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# What a person reads: the smallest candidate, by fewer jobs and smaller numbers, that is nearly as bad as the one found.


def shrunk(
    evaluation: Evaluation, candidate: Candidate, tolerance: float = TOLERANCE, deadline: Deadline = NEVER
) -> Candidate:
    """Shrink a candidate step by step while it keeps (1 - ``tolerance``) of the ratio, in O(steps x jobs x quantities) runs.

    Fewer jobs count before smaller numbers. If a step makes the ratio larger, the larger ratio must be kept from then on.

    Parameters
    ----------
    evaluation
        Evaluation of candidates.
    candidate
        First candidate.
    tolerance
        Part of the ratio that may be lost.
    deadline
        Latest end.
    """
    space, least = evaluation.space, (1 - tolerance) * evaluation.ratio(candidate)
    while True:
        for smaller in _smaller(space, candidate):
            if deadline.passed:
                return candidate
            # a job that comes earlier than the first one would make all others later
            real = space.legal(smaller) and _size(smaller) < _size(candidate)
            ratio = evaluation.ratio_above(smaller, least) if real else None
            if ratio is not None and ratio >= least and ratio > 0:
                candidate, least = smaller, max(least, (1 - tolerance) * ratio)
                break
        else:
            return candidate


def _size(candidate: Candidate) -> tuple[int, int]:
    return len(candidate.jobs), candidate.total


def _smaller(space: SearchSpace, candidate: Candidate) -> Iterator[Candidate]:
    """Smaller candidates, those first that are much smaller."""
    rows, quantities = candidate.jobs, space.quantities
    timed = [c for c in space.varied if quantities[c].work or quantities[c].origin]
    tied = [c for c in space.varied if quantities[c].tied]
    summed = [c for c in space.varied if quantities[c].work or quantities[c].tied]

    def with_rows(changed: Iterable[Row]) -> Candidate:
        return space.normal(candidate._replace(jobs=tuple(changed)))

    for j in range(len(rows)):
        yield space.normal(candidate.instead(j))
    for j, k in permutations(range(len(rows)), 2):  # two jobs as one, in the place of either
        both = tuple(value + rows[k][c] if c in summed else value for c, value in enumerate(rows[j]))
        yield space.normal(candidate.instead(j, both).instead(k))
    for chosen in (timed, tied, timed + tied):  # every time by a common divisor, or by 2 or 3 with rounding
        common = gcd(*(row[c] for row in rows for c in chosen)) if chosen else 0
        for divisor in (common, 3, 2):
            divided = rows
            for c in set(chosen) if divisor > 1 else ():
                divided = tuple(put(row, c, max(quantities[c].least, round(row[c] / divisor))) for row in divided)
            if divided != rows:
                yield with_rows(divided)
    for c in space.varied:  # a number that several jobs share, in all of them
        values = [row[c] for row in rows]
        for value in sorted({v for v in values if values.count(v) > 1}, reverse=True):
            for less in _values(value, quantities[c].least):
                yield with_rows(put(row, c, less) if row[c] == value else row for row in rows)
    for j, row in enumerate(rows):
        for c in space.varied:
            for value in _values(row[c], quantities[c].least):
                yield space.normal(candidate.instead(j, put(row, c, value)))
    for c, value in enumerate(candidate.shared):
        for less in _values(value, space.shared[c].least):
            yield candidate._replace(shared=put(candidate.shared, c, less))
    for c, d in product(space.varied, repeat=2):  # one less in two jobs at once, where their balance is what counts
        for j, k in combinations(range(len(rows)), 2):
            changed = list(rows)
            for i, column in ((j, c), (k, d)):
                changed[i] = put(changed[i], column, changed[i][column] - 1)
            yield with_rows(changed)


def _values(value: int, least: int) -> Iterator[int]:
    """Smaller values, the smallest first."""
    yield from dict.fromkeys(v for v in (least, (value + least) // 2, value - 1) if least <= v < value)


# Which known family does an instance resemble? Jobs are compared as points, whatever their order and unit.

NEAR = 0.12  # distance up to which two instances are said to be alike
MOST_JOBS = 200  # of a member that is compared
UNMATCHED = 1.0  # what a job without a partner costs


@dataclass(frozen=True)
class Resemblance:
    """The nearest member of a family; ``distance`` from 0, the same up to order and unit, to about 1."""

    member: str
    distance: float
    ratio: float | None

    @property
    def text(self) -> str:
        """Return the resemblance in words."""
        ratio = "" if self.ratio is None else f", whose ratio is {self.ratio:.6g}"
        how = "is" if self.distance < 1e-9 else "resembles"
        return f"{how} {self.member}{ratio}"


def resemblance(instance: Instance, objective: str) -> Resemblance | None:
    """Return the nearest member of the families with an objective, or None if none is near, in O(members n^3).

    Parameters
    ----------
    instance
        The instance.
    objective
        Name of the objective.
    """
    own = _points(instance)
    found = [
        Resemblance(member.text, distance(own, _points(other)), None if member.ratio is None else float(member.ratio))
        for member, other in _members(instance, objective)
    ]
    near = min(found, key=lambda each: each.distance, default=None)
    return near if near is not None and near.distance <= NEAR else None


def distance(first: Floats, second: Floats) -> float:
    """Return the mean distance of the best pairs of two sets of points; a job without a partner counts `UNMATCHED`.

    Parameters
    ----------
    first, second
        Points, f64[n, 4] and f64[m, 4].
    """
    cost = np.abs(first[:, None, :] - second[None, :, :]).sum(axis=2)
    rows, columns = linear_sum_assignment(cost)
    most = max(len(first), len(second))
    return float(cost[rows, columns].sum() + UNMATCHED * (most - len(rows))) / most


def _members(instance: Instance, objective: str) -> Iterator[tuple[Member, Instance]]:
    goal = _completion_form(objective)
    for name in FAMILIES.names():
        family = FAMILIES.get(name)
        if _completion_form(family.objective) != goal:
            continue
        for size in family.sizes:
            member = family.of_size(size)
            other = member.instance
            if other.n > MOST_JOBS or other.n > 4 * instance.n:
                break
            if _kind(other) == _kind(instance):
                yield member, other


def _completion_form(objective: str) -> str:
    goal = get_objective(objective)
    return goal.completion_form or goal.name


def _kind(instance: Instance) -> tuple[str, bool]:
    return usual_class(instance).name, instance.cluster.gpus == 1


def _points(instance: Instance) -> Floats:
    """Arrival, time alone, gang and weight of every job, each as a part of the largest; arrivals in the unit of times."""
    alone = (
        instance.message + instance.forward + instance.backward
        if instance.jobs_at("tasks").size == instance.n
        else seconds_alone(instance)
    )
    longest = float(alone.max()) or 1.0
    arrival, weight = instance.arrival - instance.arrival.min(), instance.weight / max(instance.weight.max(), 1.0)
    part = np.column_stack([arrival / longest, alone / longest, instance.gpus / instance.cluster.gpus, weight])
    points: Floats = np.minimum(part, 2.0)
    return points
