"""``milp``: the worst instance of a queue order on one machine, by mixed-integer programs that prove that it is.

Dinkelbach's method: for the largest ratio a / b that is known, a program (`optsched.models.worst_for_an_order`) finds a
larger one or proves that there is none. Programs with few jobs come first; their ratio is where the larger ones begin.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from optsched.adversary.attack_method import Budget, Found, Watch, add_method
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.space import Candidate
from optsched.adversary.spaces.whole_jobs import SUMS, WholeJobs
from optsched.errors import InputError, SimulationError
from optsched.models.worst_for_an_order import QueueOrder, build, rows
from optsched.policies.simulate import Specification
from optsched.problem.arrays import Floats, Ints
from optsched.problem.objectives import get_objective
from optsched.simulation.policy import KnownJobs, Order
from optsched.solvers.compile_model import compile
from optsched.solvers.linear_program import FEASIBILITY
from optsched.solvers.session import Session

MOST_KINDS = 200_000  # of jobs in a range


def queue_ranks(policy: Specification, space: WholeJobs) -> Ints:
    """Return the ranks of the keys of jobs by duration, weight and arrival; equal keys have equal ranks.

    Parameters
    ----------
    policy
        A queue order without preemption.
    space
        Space whose limits define the table.

    Returns
    -------
    Ints
        Ranks, i64[P, W, R + 1].

    Raises
    ------
    InputError
        If the policy is no queue order without preemption, if its keys depend on other jobs or on the order of the
        rows, or if the range is too large for a table.
    """
    limits = [(each.least, each.most) for each in space.quantities[:3]]
    shape = tuple(most - least + 1 for least, most in limits)
    kinds = int(np.prod(shape))
    if kinds > MOST_KINDS:
        value, legal = f"{kinds} kinds of jobs", f"<= {MOST_KINDS}"
        raise InputError("the range is too large", field="space", value=value, legal=legal)
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


FEWEST = 2  # jobs of the first program: one job alone has one schedule
# switches of rows with a large constant must be off where they are off
STRICT = dict.fromkeys(("mip_feasibility_tolerance", "primal_feasibility_tolerance"), FEASIBILITY)


class Answer(NamedTuple):
    """``ratio``: a larger one, the instance with these jobs shows it; None: there is none, if ``proved``."""

    proved: bool
    ratio: Fraction | None = None
    value: int = 0
    jobs: tuple[tuple[int, int, int], ...] = ()


class RatioProgram:
    """The program of one number of jobs, live; `above` asks it about a ratio."""

    def __init__(self, order: QueueOrder) -> None:
        self.order, self.model = order, build(order)
        self._program = compile(self.model)
        self._session = Session(self._program, options=STRICT)
        place = {id(variable): column for column, variable in enumerate(self._program.columns)}
        self._two = np.array([place[id(self.model.value)], place[id(self.model.best)]])

    def above(self, ratio: Fraction, seconds: float) -> Answer:
        """Search for an instance with a larger ratio than ``ratio``, or prove that there is none.

        Parameters
        ----------
        ratio
            The ratio to exceed.
        seconds
            Time limit. If it is too short, the answer is neither a larger ratio nor a proof.
        """
        self._session.set_cost(np.array([ratio.denominator, -ratio.numerator], dtype=np.float64), self._two)
        outcome = self._session.solve(time_limit=seconds, objective_step=1)
        if outcome.bound is not None and outcome.bound <= 0:
            return Answer(proved=True)
        if outcome.x is None:
            return Answer(proved=False)
        self._program.load(outcome.x)
        value, best = (round(total.value) for total in (self.model.value, self.model.best))
        larger = Fraction(value, best)
        return Answer(True, larger, value, rows(self.model, self.order)) if larger > ratio else Answer(proved=False)


def run(evaluation: Evaluation, budget: Budget, watch: Watch) -> Found:
    """Find the worst candidates of 2, 3, ... jobs; ``proved`` is the number of jobs up to which no candidate is worse.

    Parameters
    ----------
    evaluation
        Policy, objective and space: whole jobs on one GPU.
    budget
        Seconds of the search; it cannot be given in tries.
    watch
        Function to which the best candidates so far are reported.

    Raises
    ------
    InputError
        If the method does not apply to the space, the objective, the reference, the budget or the policy.
    """
    space, goal = _served(evaluation, budget), get_objective(evaluation.objective)
    ranks = queue_ranks(evaluation.policy, space)
    found, ratio = Found(), Fraction(1)
    found.offer(1.0, Candidate(((1, 1, 0, 1),) * FEWEST))  # equal jobs: every order is the best
    for jobs in range(FEWEST, space.jobs + 1):
        program = RatioProgram(QueueOrder(jobs, ranks, goal.weighted, goal.completion_form is not None))
        while (answer := program.above(ratio, budget.deadline.left)).ratio is not None:
            ratio = answer.ratio
            found.offer(float(ratio), _agreed(evaluation, answer))
            found.tries += 1
            watch(found, 0)
        found.tries += 1
        if not answer.proved:
            break
        found.proved = jobs
    return found


def _served(evaluation: Evaluation, budget: Budget) -> WholeJobs:
    """The space, where the method is for it."""
    space = evaluation.space
    if type(space) is not WholeJobs or space.gpus != 1:
        raise InputError("the method is for one machine", field="space", value=space.text, legal="whole-jobs on 1 GPU")
    if evaluation.objective not in SUMS:
        raise InputError("not with milp", field="objective", value=evaluation.objective, legal=" or ".join(SUMS))
    if evaluation.against is not None:
        raise InputError("not with milp", field="against", value=evaluation.against.text, legal="opt")
    if budget.tries is not None:
        raise InputError("not with milp", field="tries", value=budget.tries, legal="a budget in seconds")
    return space


def _agreed(evaluation: Evaluation, answer: Answer) -> Candidate:
    """The candidate, which the engine runs to the value that the program says."""
    candidate = Candidate(tuple((*job, 1) for job in answer.jobs))
    value = evaluation.value(candidate)
    if value != answer.value:
        run = f"{evaluation.policy.text} costs {value:.12g} on {answer.jobs}"
        raise SimulationError(f"{run}, by its order it would be {answer.value}")
    return candidate


add_method(
    "milp",
    "mixed-integer programs, for queue orders without preemption on one machine: the worst instance of a range, proved",
    run,
    {"gpus": 1},
    0.0,
)
