"""`run_policy`: an instance, a policy and a placement go in, a `Run` comes out."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from numbers import Real
from typing import Any, cast

import numba
import numpy as np

from optsched.classes import CLASSES, PREEMPTIVE, class_of_means
from optsched.compiled import Function, Stopwatch, foresee, quick_call, slice_of, worked
from optsched.errors import InputError, KnowledgeError, OptschedError, SimulationError
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.simulation.adopted import adopt
from optsched.simulation.colocation import ColocationContext
from optsched.simulation.decisions import Decisions
from optsched.simulation.entry_points import EntryPoints
from optsched.simulation.neighbourhood import Neighbourhood
from optsched.simulation.next_event import last_of_instant
from optsched.simulation.ordered import RULE_SIGNATURE, ordered_loop, run_rule
from optsched.simulation.placement import Placement
from optsched.simulation.policy import (
    PLACES,
    BasePolicy,
    Knowledge,
    KnownJobs,
    Order,
    OrderedPolicy,
    Policy,
    Use,
    View,
    most_copies,
    uses_of,
)
from optsched.simulation.predictor import JobFacts, Predictor
from optsched.simulation.records import ASKED, LOG_FULL, PAUSED, SIZE, THRASHES, WAITING
from optsched.simulation.reservations import planned_loop
from optsched.simulation.run import (
    RUNS,
    Run,
    RunKind,
    RunLog,
    completions,
    gang_class,
    result,
    run_log,
    schedule_of,
    shared_schedule_of,
)
from optsched.simulation.state import Residents, RunContext, State, grown, new_state
from optsched.simulation.view import EngineView, News
from optsched.simulation.wakes import Rounds, require_rounds_of
from optsched.speeds.duration import seconds_alone
from optsched.speeds.partner_rates import SharingRates

Advance = Callable[[int, int], None]
SLICE = 200_000  # events between two reports of progress
PLAIN_SLICE = 1_000  # of a policy in plain Python


def run_policy(
    instance: Instance,
    policy: BasePolicy,
    placement: Placement,
    *,
    name: str | None = None,
    progress: Advance | None = None,
) -> Run:
    """Replay an instance under a policy and a placement rule.

    The engine applies events in order of (time, kind, job): completions, changes of level and promotions, then
    arrivals, then the policy's own wakes. Times that differ by rounding alone are one instant
    (`optsched.simulation.next_event`): all events of an instant are applied, each at its own time, before the policy is
    asked once, at the last of them. Its decisions are carried out one after the other. A job that it stops and starts
    again at that instant on the same GPUs goes on without interruption and pays no restart
    (`optsched.simulation.kernel`).

    Parameters
    ----------
    instance
        Jobs and a cluster.
    policy
        An `OrderedPolicy` (compiled), a `Policy` in plain Python, or a plain object with the methods of either.
    placement
        The rule that chooses GPUs.
    name
        Name of the run in reports (default: the policy's name).
    progress
        Called with (finished jobs, all jobs) from time to time.

    Returns
    -------
    Run
        The schedule, with counts of events and preemptions and the CPU time.

    Raises
    ------
    InputError
        A job has no duration, or a queue order has illegal values.
    SimulationError
        A policy took a decision that is not possible, jobs stop each other for ever before their restart is over, or
        work was not conserved.

    Notes
    -----
    Problem: P | r_j, size_j, online-r_j (, pmtn) | any objective, in continuous time, deterministic.

    Complexity: O((kinds + log n) per start and event) for queue orders, plus O(running jobs) per decision if
    preemptive; see `optsched.simulation.ordered`.
    """
    return play(instance, policy, placement, name=name, progress=progress).run()


@dataclass(frozen=True, eq=False)
class Played:
    """State of a run that has ended, as far as its result needs it.

    Attributes
    ----------
    log
        Log of the run.
    instance
        Jobs and a cluster.
    name
        Name of the run.
    knowledge
        What the policy could ask.
    preemptive
        Whether the policy's rule is preemptive.
    pooled
        Whether alike nodes were one pool.
    kind
        Kind of the runs of the class of schedules.
    kept
        Further fields of the `Run`.
    clock
        CPU time since the start.
    rates
        Costs of sharing GPUs; None if every job has its GPUs alone.
    colocation
        Jobs on every GPU at the end, if GPUs are shared.
    """

    log: RunLog
    instance: Instance
    name: str
    knowledge: Knowledge
    preemptive: bool
    pooled: bool
    kind: RunKind
    kept: dict[str, Any]
    clock: Stopwatch
    rates: SharingRates | None = None
    colocation: ColocationContext | None = None

    def run(self) -> Run:
        """Return the run, with the GPUs of every segment named."""
        if self.rates is not None:
            colocation = cast(ColocationContext, self.colocation)
            schedule: Schedule = shared_schedule_of(self.log, colocation, self.instance, self.rates, self.name)
        else:
            schedule = schedule_of(self.log, self.instance, self.pooled, self.name)
        run = result(self.log, schedule, self.knowledge, self.preemptive, self.kind.run, **self.kept)
        return replace(run, seconds=self.clock.seconds)

    def value(self, objective: str) -> tuple[float, str]:
        """Return the value of an objective on the instance's own clock, and the class of the schedule.

        The GPUs of rigid gangs alone on their GPUs get no names for it, which saves a quarter of a run of few jobs.

        Parameters
        ----------
        objective
            Name of the objective.
        """
        if self.rates is not None or self.kind.run is not Run:
            run = self.run()
            return run.value(objective), run.schedule_class
        return get_objective(objective).of(self.instance, completions(self.log, self.instance)), gang_class(
            self.preemptive or self.log.engine[0].stops > 0
        )


def play(
    instance: Instance,
    policy: BasePolicy,
    placement: Placement,
    *,
    name: str | None = None,
    progress: Advance | None = None,
) -> Played:
    """Play a run as `run_policy` does, and return it before it is made a `Run`.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    policy
        Policy, as for `run_policy`.
    placement
        The rule that chooses GPUs.
    name
        Name of the run in reports (default: the policy's name).
    progress
        Called with (finished jobs, all jobs) from time to time.
    """
    policy = adopt(policy)
    name = name or policy.name
    knowledge = Knowledge(policy.knowledge)
    clock, alone = Stopwatch(), seconds_alone(instance)  # says what is wrong with speeds
    hooks, uses = PolicyHooks(policy, instance), uses_of(policy)
    kind = class_of_means(uses)
    if not (isinstance(policy, Policy) or (isinstance(policy, OrderedPolicy) and not kind.alone)):
        kind = CLASSES.get(PREEMPTIVE)  # a queue order neither resizes jobs nor runs them in copies
    made = RUNS.of(kind.name)
    rates = made.rates(instance, name)
    jobs = KnownJobs(instance, knowledge, alone if rates is None else rates.alone)
    with _Blaming(policy.name, instance.zero):
        given: Any = hooks.order(jobs)
    if isinstance(policy, OrderedPolicy) and not isinstance(given, Order):
        raise InputError("order(jobs) gives no order", field=name, value=given, legal="optsched.Order(...)")
    if given is not None:
        order = _legal(given, name, instance.n)
        residents = Residents(listed=order.plan is not None and order.loop is None)
        if rates is not None:
            residents = Residents(rates, _legal_rule(order, name).numbers, listed=True)
        if isinstance(policy, Policy):
            require_rounds_of(instance, policy, name)
        state, context = new_state(instance, order, placement, residents, uses=uses & {Use.NODES})
        if rates is None and Use.NODES not in uses:
            _leave_out_hopeless(state, context, placement)
        state = _run_order(state, context, order, placement, name, progress)
        waits = np.flatnonzero(state.jobs["status"] == WAITING)
        if order.rule is not None and waits.size:  # one that lets a job wait in an idle cluster does so for ever
            raise SimulationError(f"policy {name}: job {instance.ids[int(waits[0])]!r} waits for ever")
        preemptive = order.preemptive
    else:
        assert isinstance(policy, Policy)  # one that gives no order decides itself
        order = _legal(Order(key=instance.arrival, restart=float(policy.restart)), name, instance.n)
        first_start = float(policy.first_start)
        _require_seconds(first_start, f"{name}: first_start")
        state, context = new_state(instance, order, placement, Residents(rates), uses=uses)
        state.engine[0].first_start = first_start
        if not uses & PLACES:
            _leave_out_hopeless(state, context, placement)
        state = _run_python(state, context, placement, hooks, name, progress)
        preemptive = False
    return Played(
        log=run_log(state),
        instance=instance,
        name=name,
        knowledge=knowledge,
        preemptive=preemptive and rates is None,
        pooled=placement.pooled and not uses & PLACES,
        kind=made,
        kept={**hooks.results(), **made.facts(policy, instance)},
        clock=clock,
        rates=rates,
        colocation=context.colocation,
    )


def _legal(order: Order, name: str, n: int) -> Order:
    # The compiled loop trusts shapes and values: what is wrong must be found here.
    for field, values in (("key", order.key), ("slope", order.slope)):
        if values is None:
            continue
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            array = np.zeros(0)
        if array.shape != (n,) or np.isnan(array).any():
            raise InputError("invalid", field=f"{name}: {field}", legal=f"one number for each of {n} jobs")
    for field in ("starvation", "round", "restart"):
        _require_seconds(getattr(order, field), f"{name}: {field}")
    given = order.thresholds
    if not (
        isinstance(given, tuple | list)
        and all(isinstance(value, Real) for value in given)
        and all(value > least for least, value in pairwise((0.0, *given)))
    ):
        value = given[0] if isinstance(given, tuple) and len(given) == 1 else given
        legal = "GPU-seconds > 0, increasing"
        raise InputError("invalid", field=f"{name}: threshold", value=value, legal=legal)
    return order


def _require_seconds(value: Any, field: str) -> None:
    if not (isinstance(value, int | float | np.integer | np.floating) and 0 <= value <= sys.float_info.max):
        raise InputError("invalid", field=field, value=value, legal="a finite number of seconds >= 0")


def _legal_rule(order: Order, name: str) -> Order:
    # A policy that shares GPUs needs a rule, which chooses the GPUs.
    declared = order.rule.declared if isinstance(order.rule, Function) else ()
    if not ((numba.config.DISABLE_JIT and order.rule is not None) or declared == (RULE_SIGNATURE,)):
        legal = "a function under @optsched.simulation.ordered.sharing_rule"
        raise InputError("not compiled", field=f"{name}: rule", value=order.rule, legal=legal)
    return order


def _leave_out_hopeless(state: State, context: RunContext, placement: Placement) -> None:
    # A job that does not fit on an empty cluster never will (rules are monotone): it never arrives, and blocks no job.
    if placement.any_free:
        return
    entry, random, jobs = EntryPoints(state, context), context.random.copy(), state.jobs
    kinds, first = np.unique(jobs["kind"], return_index=True)
    never = [kind for kind, j in zip(kinds, first.tolist(), strict=True) if entry.place(placement.place, j, SIZE) == 0]
    context.random[:] = random
    if never:
        jobs["arrival"][np.isin(jobs["kind"], never)] = np.inf
        jobs["nth"] = np.argsort(jobs["arrival"], kind="stable")


def _run_order(
    state: State, context: RunContext, order: Order, placement: Placement, name: str, progress: Advance | None
) -> State:
    planned = order.plan is not None
    if order.loop is not None:
        loop = order.loop(context)
    else:
        loop = planned_loop(context) if planned else ordered_loop(context) if order.rule is None else run_rule
    foresee(loop, int(2 * np.isfinite(state.jobs["arrival"]).sum()))  # an arrival and a completion
    call: Callable[..., int] = loop
    while True:
        before = int(state.engine[0].events)
        if planned:
            status = call(placement.place, state, context, order.plan, slice_of(loop, SLICE))
        elif order.rule is None:
            status = quick_call(loop, placement.place, state, context, slice_of(loop, SLICE))
        else:
            status = quick_call(loop, order.rule, state, context, slice_of(loop, SLICE), not order.skip)
        worked(loop, int(state.engine[0].events) - before)
        if progress is not None:
            progress(int(state.engine[0].finished), state.jobs.size)
        if status == LOG_FULL:
            state = grown(state)
        elif status == THRASHES:
            raise _thrashes(state, name)
        elif status == ASKED and order.step is not None:
            order = replace(order, plan=order.step(state, order.plan))
            call = partial(quick_call, loop)  # the first call has checked the types, which takes as long as many events
        elif status != PAUSED:
            return state


def _thrashes(state: State, name: str) -> SimulationError:
    w = state.engine[0]
    return SimulationError(
        f"policy {name} at {w.now:g} s after the first arrival: {w.livelock:,} segments in a row did no work "
        "to speak of, jobs are stopped before their restart is over or do less than a ten-millionth of what is left"
    )


def _run_python(
    state: State, context: RunContext, placement: Placement, hooks: PolicyHooks, name: str, progress: Advance | None
) -> State:
    policy, instance, uses = hooks.deciding, hooks.instance, uses_of(hooks.policy)
    beside, kind = None, class_of_means(uses)
    if context.colocation is not None and not kind.alone:
        beside = Neighbourhood(state, context.colocation.neighbours, instance)
    engine, news, knowledge = EntryPoints(state, context), News(), Knowledge(policy.knowledge)
    view = EngineView(
        engine, placement, instance, knowledge, news, hooks.predicted, beside, knows_rates=policy.knows_rates
    )
    copies = most_copies(policy, instance) if kind.copies else 1
    decisions = Decisions(engine, placement, instance, policy.name, beside, view, uses, copies)
    rounds = Rounds(policy, name, instance, uses) if Use.ROUNDS in uses else None
    require_rounds_of(instance, policy, name)
    hooks.begin(view)
    return _ask_at_events(engine, hooks, view, news, decisions, rounds, progress)


def _ask_at_events(
    engine: EntryPoints,
    hooks: PolicyHooks,
    view: EngineView,
    news: News,
    decisions: Decisions,
    rounds: Rounds | None,
    progress: Advance | None,
) -> State:
    policy, instance, wakes, planned = hooks.deciding, hooks.instance, decisions.wakes, decisions.planned
    # fields of the engine's record, to be read at every event
    fields = ("now", "tick", "active", "queued", "segments", "starts", "stops", "finished", "livelock", "events")
    w = engine.state.engine
    now, tick, active, queued, ended, starts, stops, finished, livelock, events = (w[name] for name in fields)
    livelock_limit, reported = int(w[0].livelock_limit), 0
    while True:
        engine.make_room()
        first_stop = planned.next_time()
        t = min(engine.next_time(), first_stop)
        if t == math.inf or finished[0] == instance.n:
            return engine.state
        if livelock[0] >= livelock_limit:
            raise _thrashes(engine.state, policy.name)
        end, wake, moves = last_of_instant(t), float(tick[0]), int(starts[0] + stops[0])
        if rounds is None:
            tick[0] = wakes.of_instant(end)
        if first_stop <= end:
            tick[0] = planned.with_wake(float(tick[0]), end)
        arrived, done = engine.apply_events(t)
        planned.drop_all(done)
        if first_stop <= end:
            planned.carry_out(end)
            if wake > end and not (arrived or done):
                tick[0] = wake
                continue
        present = float(now[0])
        hooks.hear(present, arrived, done)
        if rounds is not None:
            if not rounds.begins(present, arrived, done):
                tick[0] = rounds.waits(present, news=bool(arrived))
                continue
            arrived, done = rounds.news()
            rounds.watch(present, engine.paid())
        news.arrived, news.finished = arrived, done
        engine.lists.refresh(arrived, done)
        if rounds is None or active[0] or queued[0]:
            with _Blaming(policy.name, present + instance.zero):
                decisions.apply(policy.decide(view))
        news.heard = int(ended[0])
        if rounds is not None:
            tick[0] = rounds.asked(present, busy=bool(active[0]))
        else:
            quiet, acted = not (arrived or done), int(starts[0] + stops[0]) != moves
            tick[0] = math.inf
            event = min(engine.next_time(), planned.first) if quiet else math.inf
            tick[0] = wakes.due(present, event, quiet=quiet, acted=acted)
        if progress is not None and events[0] - reported > PLAIN_SLICE:
            reported = int(events[0])
            progress(int(finished[0]), instance.n)


@dataclass(slots=True)
class _Blaming:
    """A context in which a policy is asked at ``now``; errors from it report the policy and the time.

    A policy's own exception keeps its type and gets a note ("policy NAME at T s"). A question that the policy may not
    ask, or an attempt to end the program, becomes an error of the package with that text in front.
    """

    policy: str
    now: float

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or not isinstance(error, Exception | SystemExit):
            return
        where = f"policy {self.policy} at {self.now:.12g} s"
        if isinstance(error, KnowledgeError):
            raise KnowledgeError(f"{where}: {error}") from error.__cause__
        if isinstance(error, SystemExit):
            raise SimulationError(f"{where}: SystemExit: a policy may not end the program") from error.__cause__
        if not isinstance(error, OptschedError):
            error.add_note(where)


class PolicyHooks:
    """The calls to a policy around a run: its order or accelerator, ``begin``, ``make_predictor`` and ``notes``.

    The predictor learns the length of a job when the job completes, and is asked for one when the job arrives. At one
    instant completions come before arrivals.

    Parameters
    ----------
    policy
        The policy that runs.
    instance
        Jobs and a cluster.
    """

    def __init__(self, policy: BasePolicy, instance: Instance) -> None:
        self.policy, self.instance = policy, instance
        self._predictor = policy.make_predictor()
        self.predicted: Floats | None = None
        if self._predictor is not None:
            revealed = bool(getattr(self._predictor, "oracle", False))
            self._predictor.begin(JobFacts(instance, revealed=revealed))
            self.predicted = np.full(instance.n, np.nan)

    @property
    def deciding(self) -> Policy:
        """The policy, which decides in plain Python."""
        assert isinstance(self.policy, Policy)
        return self.policy

    def begin(self, view: View) -> None:
        """Start a new run: the policy forgets the last one.

        Parameters
        ----------
        view
            What the policy may see, before the first event.
        """
        with _Blaming(self.policy.name, self.instance.zero):
            self.deciding.begin(view)

    def hear(self, now: float, arrived: list[int], finished: list[int]) -> None:
        """Pass completions and arrivals to the predictor, and keep its predictions.

        Parameters
        ----------
        now
            Time of the events, in seconds since the first arrival.
        arrived
            Jobs that arrived.
        finished
            Jobs that completed.

        Raises
        ------
        SimulationError
            A predicted length is not a finite number > 0.
        """
        if self._predictor is None or self.predicted is None:
            return
        with _Blaming(self.policy.name, now + self.instance.zero):
            for j in finished:
                self._predictor.observe(j, now, float(self.instance.work[j]))
            for j in arrived:
                self._predict(self._predictor, self.predicted, j, now)

    def _predict(self, predictor: Predictor, predicted: Floats, j: int, now: float) -> None:
        length = predictor.predict(j, now)
        if not (math.isfinite(length) and length > 0):
            raise SimulationError(
                f"predictor {predictor.name} at {now + self.instance.zero:.12g} s: "
                f"job {self.instance.ids[j]!r} is predicted to have the length {length!r} (expected: a finite number > 0)"
            )
        predicted[j] = length

    def order(self, jobs: KnownJobs) -> Order | None:
        """Return the order that runs compiled: that of an `OrderedPolicy`, or the accelerator of a `Policy`.

        An accelerator is not asked if a predictor learns during the run.

        Parameters
        ----------
        jobs
            What the policy may know of the jobs; predictions are added to it.

        Returns
        -------
        Order | None
            The order; None if the policy decides in plain Python.
        """
        if isinstance(self.policy, OrderedPolicy):
            return self.policy.order(jobs)
        if getattr(self._predictor, "learns", self._predictor is not None):
            return None
        if self._predictor is not None and self.predicted is not None:
            for j, now in enumerate(self.instance.arrival.tolist()):
                self._predict(self._predictor, self.predicted, j, now)
        jobs.predicted = self.predicted
        return self.deciding.accelerator(jobs)

    def results(self) -> dict[str, Any]:
        """Return the fields of a `Run` that come from the policy: predictions, notes, and which notes are times."""
        if not isinstance(self.policy, Policy):
            return {"predicted": self.predicted}
        return {
            "predicted": self.predicted,
            "notes": dict(self.policy.notes()),
            "noted_times": tuple(self.policy.noted_times),
        }
