"""`SearchSpace`: a kind of instances that can be searched, the best schedule that is known of each, and how it is proved.

What a search varies is a `Candidate`, a table of integers with a row a job; a `Quantity` is a column. Times and sizes are
integers, so that a ratio found is one of fractions and a reader can check it by hand.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from optsched.check.certain_times import certain_value
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError, check_legal
from optsched.guarantees.optimum import proved_here, stating
from optsched.policies.simulate import Specification
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.registry import Registry, made
from optsched.simulation.policy import BasePolicy
from optsched.solvers.methods.mode_branching import branch, empty_stack, problem_of
from optsched.solvers.solve import solve

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a job, or one that all jobs share: an integer from ``least`` to ``most``.

    ``work``: it may be split between two jobs, and those of two jobs added up (durations, bytes). ``origin``: only
    differences count, so that the least one is 0 (arrivals). ``tied``: it may be made equal to the work of its job, as
    weights are.
    """

    name: str
    least: int
    most: int
    work: bool = False
    origin: bool = False
    tied: bool = False

    def within(self, value: int) -> int:
        """Return the nearest legal value.

        Parameters
        ----------
        value
            Any integer.
        """
        return min(max(value, self.least), self.most)

    def drawn(self, rng: random.Random) -> int:
        """Return a random value.

        Three times out of four it is uniform; otherwise it is uniform on a logarithmic scale, so that small values
        occur often.

        Parameters
        ----------
        rng
            Random number generator.
        """
        if rng.random() < 0.75:
            return rng.randint(self.least, self.most)
        span = self.most - self.least + 1
        return self.within(self.least + int(span ** rng.random()) - 1)


class Candidate(NamedTuple):
    """``jobs``: a row a job, in the order of the instance, a column a `Quantity`; ``shared``: what belongs to no job."""

    jobs: tuple[Row, ...]
    shared: Row = ()

    @property
    def total(self) -> int:
        """The sum of all its numbers: what shrinking makes small."""
        return sum(map(sum, self.jobs)) + sum(self.shared)

    def instead(self, j: int, *rows: Row) -> Candidate:
        """Return the candidate with other rows in the place of a job.

        Parameters
        ----------
        j
            Row of the job that is replaced.
        *rows
            Rows in its place; without any, the job is removed.
        """
        return self._replace(jobs=(*self.jobs[:j], *rows, *self.jobs[j + 1 :]))


def put(row: Row, c: int, value: int) -> Row:
    """Return the row with ``value`` in column ``c``.

    Parameters
    ----------
    row
        The row.
    c
        The column.
    value
        The new number.
    """
    return (*row[:c], value, *row[c + 1 :])


MOST_JOBS = 16
NODES = 20_000  # of branch and bound: some milliseconds
LEAST, SECONDS = 0.01, 60.0  # for a proof: seconds, and those where there is no deadline
Modes = list[list[tuple[tuple[int, ...], float]]]  # of every job: (GPUs held of every node, seconds)
Reached = tuple[Instance, Fraction | None]  # stating its optimum if that is proved; what a schedule reaches


@dataclass(frozen=True)
class SearchSpace(ABC):
    """Instances of up to ``jobs`` jobs on ``gpus`` GPUs, each made from a `Candidate`; with ``weights``, or all of weight 1.

    None is longer than ``longest`` or comes after ``latest``, in units of the kind. A new kind is one file in
    ``optsched/adversary/spaces`` whose class says what the numbers are (`quantities`, `shared`), what instance they make,
    and a value that some schedule of it reaches (`reached`): the smaller, the sharper the search. One that no schedule
    reaches would make it claim too much, so the last word is `optsched.adversary.evaluation`'s.
    """

    jobs: int = 8
    gpus: int = 2
    weights: bool = True
    longest: int = 24
    latest: int = 24

    def __post_init__(self) -> None:
        check_legal(2 <= self.jobs <= MOST_JOBS, "jobs", self.jobs, f"an integer from 2 to {MOST_JOBS}")
        check_legal(self.gpus >= 1, "gpus", self.gpus, "an integer >= 1")
        check_legal(1 <= self.longest <= 10**6, "longest", self.longest, "an integer from 1 to 1000000")
        check_legal(0 <= self.latest <= 10**6, "latest", self.latest, "an integer from 0 to 1000000")

    @property
    @abstractmethod
    def quantities(self) -> tuple[Quantity, ...]:
        """The columns of a candidate."""

    @cached_property
    def varied(self) -> tuple[int, ...]:
        """The columns in which there is a choice."""
        return tuple(c for c, each in enumerate(self.quantities) if each.least < each.most)

    @property
    def shared(self) -> tuple[Quantity, ...]:
        """Quantities that all jobs share."""
        return ()

    @classmethod
    @abstractmethod
    def serves(cls, policy: BasePolicy) -> bool:
        """Return whether this kind may be searched for a policy; the first kind that may is the default.

        Parameters
        ----------
        policy
            The policy.
        """

    @abstractmethod
    def instance(self, candidate: Candidate, name: str = "") -> Instance:
        """Return the instance of a candidate.

        Parameters
        ----------
        candidate
            The candidate.
        name
            Name of the instance.
        """

    @abstractmethod
    def reached(self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool) -> float:
        """Return the value of a good schedule of the class that the policy's own schedules belong to.

        It is the optimum wherever that is cheap.

        Parameters
        ----------
        candidate
            The candidate.
        instance
            Its instance.
        objective
            Name of the objective.
        preemptive
            Whether schedules of the class may preempt.
        """

    def has_run(self, policy: Specification, instance: Instance, objective: str, value: float) -> None:
        """Receive the value of the attacked policy before `reached` and `may_reach` are called for the instance.

        Parameters
        ----------
        policy
            The policy.
        instance
            Instance of a candidate.
        objective
            Name of the objective.
        value
            Value of the run; nan if a job never finishes.
        """
        return

    def may_reach(
        self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool, limit: float
    ) -> bool:
        """Return False if it is certain that `reached` is at least a limit, and that takes less time to find out.

        Parameters
        ----------
        candidate
            The candidate.
        instance
            Its instance.
        objective
            Name of the objective.
        preemptive
            Whether schedules of the class may preempt.
        limit
            Value of the objective.
        """
        return True

    def proved(self, instance: Instance, objective: str, deadline: Deadline = NEVER) -> Reached:
        """Prove the optimum of an instance, if possible.

        This implementation uses `optsched.solve`, among schedules without preemption.

        Parameters
        ----------
        instance
            The instance.
        objective
            Name of the objective.
        deadline
            Time at which the proof ends; it has at least `LEAST` and at most `SECONDS` seconds.

        Returns
        -------
        tuple
            The instance, which states its optimum if it is proved (`optsched.guarantees.optimum.proved_here`), and a
            value that a schedule certainly reaches (a fraction), or None.
        """
        best = solve(instance, objective, time_limit=max(min(SECONDS, deadline.left), LEAST))
        found = best.schedule
        reached = None if found is None else certain_value(instance, found, objective, preemptive=False)
        if best.status != "optimal" or best.value is None:
            return instance, reached
        stated = stating(best.value, objective, "gang-nonpreemptive", best.model)
        return proved_here(instance.replace(optimum=stated)), reached

    @property
    def text(self) -> str:
        """The space as text, ``NAME:key=value,...``, without parameters at their defaults."""
        name = next(name for name, kind in SPACES.items() if kind is type(self))
        values = {
            each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) != each.default
        }
        given = ",".join(f"{key}={str(value).lower()}" for key, value in values.items())
        return f"{name}:{given}" if given else name

    def specification(self, policy: Specification, candidate: Candidate) -> Specification:
        """Return the policy to run: the one that is attacked, or a variant of it that the shared numbers define.

        Parameters
        ----------
        policy
            The policy that is attacked.
        candidate
            The candidate with the shared numbers.
        """
        return policy

    def drawn(self, rng: random.Random) -> Candidate:
        """Return a random candidate.

        Parameters
        ----------
        rng
            Random number generator.
        """
        rows = tuple(self.row(rng) for _ in range(rng.randint(2, self.jobs)))
        return self.normal(Candidate(rows, tuple(each.drawn(rng) for each in self.shared)))

    def row(self, rng: random.Random) -> tuple[int, ...]:
        """Return a random job.

        Parameters
        ----------
        rng
            Random number generator.
        """
        return tuple(each.drawn(rng) for each in self.quantities)

    def normal(self, candidate: Candidate) -> Candidate:
        """Return the candidate with every origin shifted to 0.

        Parameters
        ----------
        candidate
            The candidate.
        """
        rows = candidate.jobs
        for c, each in enumerate(self.quantities):
            first = min((row[c] for row in rows), default=0) if each.origin else 0
            if first:
                rows = tuple(put(row, c, row[c] - first) for row in rows)
        return Candidate(rows, candidate.shared)

    def legal(self, candidate: Candidate) -> bool:
        """Return whether the number of jobs and every number are within their limits.

        Parameters
        ----------
        candidate
            The candidate.
        """
        return 1 <= len(candidate.jobs) <= self.jobs and all(
            each.least <= value <= each.most
            for row, quantities in (
                *((row, self.quantities) for row in candidate.jobs),
                (candidate.shared, self.shared),
            )
            for value, each in zip(row, quantities, strict=True)
        )


SPACES: Registry[type[SearchSpace]] = Registry("space", package="optsched.adversary.spaces")


def space_of(policy: BasePolicy, text: str = "", **usual: int | bool | None) -> SearchSpace:
    """Return the space that a text names, or the default space of a policy.

    Parameters
    ----------
    policy
        Policy to be attacked.
    text
        ``NAME[:key=value,...]``; without a name, the default space of the policy.
    **usual
        Parameters that hold unless the text gives them; None: not given.

    Raises
    ------
    InputError
        If the name or a parameter is unknown or the space does not serve the policy; without a name, if no space
        serves it.
    """
    head, _, rest = text.partition(":")
    name = head.strip() or _usual(policy)
    named = {part.partition("=")[0].strip() for part in rest.split(",")}
    given = [f"{key}={value}" for key, value in usual.items() if value is not None and key not in named]
    space: SearchSpace = made(SPACES.get, "space", f"{name}:{','.join(filter(None, [rest, *given]))}")
    if not space.serves(policy):
        legal = ", ".join(each for each, kind in SPACES.items() if kind.serves(policy))
        raise InputError(f"its instances are not for {policy.name}", field="space", value=name, legal=legal)
    return space


def _usual(policy: BasePolicy) -> str:
    found = [name for name, kind in SPACES.items() if kind.serves(policy)]
    if not found:
        raise InputError("there are no instances to search for it yet", field="policy", value=policy.name)
    return found[0]


def branched(instance: Instance, objective: str, modes: Modes) -> float:
    """Return the best value without preemption that `NODES` nodes of branch and bound find.

    It is the optimum if the search ends before.

    Parameters
    ----------
    instance
        The instance.
    objective
        Name of the objective.
    modes
        Modes of every job, at least one each: (GPUs held of every node, seconds).
    """
    return _searched(instance, objective, modes, np.inf)[0]


def may_be_below(instance: Instance, objective: str, modes: Modes, limit: float) -> bool:
    """Return False if branch and bound shows that no schedule without preemption has a value below a limit.

    It takes less time than `branched`, which has no value to begin with; True if `NODES` nodes are too few.

    Parameters
    ----------
    instance
        The instance.
    objective
        Name of the objective.
    modes
        Modes of every job, at least one each: (GPUs held of every node, seconds).
    limit
        Value of the objective.
    """
    best, done = _searched(instance, objective, modes, limit)
    return best < limit or not done


def _searched(instance: Instance, objective: str, modes: Modes, limit: float) -> tuple[float, bool]:
    # (best value below the limit that is found, else the limit; whether the search is complete)
    flat = [mode for own in modes for mode in own]
    count = [len(own) for own in modes]
    problem = problem_of(
        instance,
        get_objective(objective),
        np.array([0, *accumulate(count)], dtype=np.int64),
        np.array([held for held, _ in flat], dtype=np.int64),
        np.array([seconds for _, seconds in flat], dtype=np.float64),
    )
    stack = empty_stack(instance.n, len(flat), limit)
    owner = np.repeat(np.arange(instance.n, dtype=np.int64), count)
    done, _ = branch(problem, stack, owner, 0.0, NODES)
    return float(stack.best[0]), bool(done)
