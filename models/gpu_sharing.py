"""Jobs that may share one set of GPUs in pairs: event slots, as a mixed-integer program.

The jobs must be one gang set (`one_gang_set`): every two meet on some GPU and no three fit. The program decides which two
jobs share, when, and with which sub-batches.

Sets: jobs j = 1..n; options o of j (its sub-batches); events q = 0..2n-1, each the start or the end of one job, in order of
time; the interval q lies between the events q and q+1; states S: no job, {jo}, {jo, kp} for pairs that may share and fit.
Data: r_j release; e_jo seconds alone; x_jS = xi_{j|k} in {jo, kp}, 1 in {jo}; H_j a latest completion of j, H = max H_j. In
the program times are in units of max e_jo and count from the first arrival, so that tolerances depend neither on the unit
of the data nor on their clock; the objective is in seconds, on the clock.
Variables: t_q >= 0 time of event q; s_jq, f_jq = 1 if q is the start, the end of j; y_qS = 1 if S are the active jobs in
interval q, d_qS >= 0 its length if so, else 0; z_jo = 1 if j runs with option o; C_j in [r_j + e_j, H_j], e_j = min_o e_jo.

    min  sum_j C_j                                                                                            (0)
    s.t. sum_j (s_jq + f_jq) = 1                                              every q                         (1)  one
         sum_q s_jq = 1, sum_q f_jq = 1                                       every j                         (2)  once
         sum_S y_qS = 1                                                       every interval q                (3)  state
         sum_{S with j} y_qS = sum_{q' <= q} (s_jq' - f_jq')                  every j, interval q             (4)  is_active
         t_{q+1} - t_q = sum_S d_qS                                           every interval q                (5)  length
         d_qS <= H y_qS                                                       every interval q, S             (6)  chosen
         sum_q sum_{S with jo} d_qS / x_jS = e_jo z_jo                        every j, o                      (7)  done
         sum_o z_jo = 1                                                       every j                         (8)  option
         t_q >= r_j s_jq                                                      every j, q                      (9)  released
         C_j >= t_q - (H - r_j - e_j) (1 - f_jq)                              every j, q                      (10) ended
         sum_j C_j >= sum C_j of SRPT at rate S, and others                   (`least_total`)                 (11) least

(11) is implied. It tightens the relaxation, which is weak.
`event_slots` builds (0), (1), (2), (9) and (10) and defines the latest completions.

Optimum: of sum C_j over all starts, at events or not (class gpu-sharing); sum of flow times plus sum r_j.
Size: 4 n^2 binaries and about n^3 more; some 8 n^3 nonzeros. Solved to n = 4 in seconds.
Reference: own formulation; events as in Kone, Artigues, Lopez and Mongeau, Computers & Oper. Res. 38 (2011), 3-13.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from optsched.errors import InputError
from optsched.models.event_slots import begun, event_model, start_events
from optsched.models.fast_building import collector_paused
from optsched.models.program import add_program
from optsched.models.shared_jobs import SharedJobs, first_gangs, on_events, one_gang_set, shared_completions
from optsched.models.sharing_least import least_total, work_rate
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule

NAME = "gpu-sharing"
NEAR = 1e-7  # relative to the value: a start of the solver this close to an event counts as at the event

State = tuple[tuple[int, int], ...]  # (job, option) of the active jobs


@collector_paused
def build(instance: Instance | SharedJobs, *, value: float | None = None) -> pyo.ConcreteModel:
    """Build the model.

    Parameters
    ----------
    instance
        Jobs and cluster, or the jobs as exact methods see them.
    value
        sum C_j of a known schedule, for tighter latest completions; None: none is known.

    Raises
    ------
    InputError
        If there are no jobs, if they are not one gang set, or if ``value`` is below a lower bound.
    """
    given = instance if isinstance(instance, SharedJobs) else SharedJobs.of(instance)
    jobs, part = given.relative, float(given.clock_part)
    reason = "there are no jobs" if jobs.n == 0 else one_gang_set(jobs)
    if reason is not None:
        raise InputError(reason, field="model", value=NAME)
    gangs, states = first_gangs(jobs), _states(jobs)
    options = [(j, o) for j, own in enumerate(jobs.options) for o in own]
    unit = max(jobs.seconds(j, o, gangs[j]) for j, o in options)
    e = {(j, o): jobs.seconds(j, o, gangs[j]) / unit for j, o in options}
    states_of = {j: [k for k, S in enumerate(states) if j in dict(S)] for j in range(jobs.n)}

    # (0), (1), (2), (9), (10)
    m = event_model(NAME, jobs.release, jobs.least_seconds, unit, part, value)
    everyone, intervals, m.given, m.sharing = m.jobs, m.intervals, given, jobs
    m.y = pyo.Var(intervals, range(len(states)), domain=pyo.Binary)
    m.d = pyo.Var(intervals, range(len(states)), domain=pyo.NonNegativeReals)
    m.z = pyo.Var(options, domain=pyo.Binary)

    # (3)
    @m.Constraint(intervals)
    def state(m: Any, q: int) -> Any:
        return sum(m.y[q, k] for k in range(len(states))) == 1

    # (4)
    @m.Constraint(everyone, intervals)
    def is_active(m: Any, j: int, q: int) -> Any:
        return sum(m.y[q, k] for k in states_of[j]) == begun(m, j, q)

    # (5)
    @m.Constraint(intervals)
    def length(m: Any, q: int) -> Any:
        return m.t[q + 1] - m.t[q] == sum(m.d[q, k] for k in range(len(states)))

    # (6)
    @m.Constraint(intervals, range(len(states)))
    def chosen(m: Any, q: int, k: int) -> Any:
        return m.d[q, k] <= m.horizon * m.y[q, k]

    # (7)
    @m.Constraint(options)
    def done(m: Any, j: int, o: int) -> Any:
        rates = {k: 1 / jobs.slowdown(j, dict(states[k])) for k in states_of[j] if dict(states[k])[j] == o}
        return sum(rate * m.d[q, k] for q in intervals for k, rate in rates.items()) == e[j, o] * m.z[j, o]

    # (8)
    @m.Constraint(everyone)
    def option(m: Any, j: int) -> Any:
        return sum(m.z[j, o] for o in jobs.options[j]) == 1

    # (11)
    rate = work_rate(jobs, everyone, [list(row) for row in jobs.xi]) * len(jobs.gpu_node)
    rows = zip(jobs.release, jobs.least_seconds, jobs.gang, strict=True)
    least = float(least_total(0.0, [(r, a, gang * a / rate) for r, a, gang in rows]))
    m.least = pyo.Constraint(expr=sum(m.C[j] for j in everyone) >= least / unit)
    return m


def schedule(model: Any) -> SharedSchedule:
    """Return the schedule of the values loaded in the model.

    A start that misses an event by the solver's tolerance only is moved to the event.

    Parameters
    ----------
    model
        The model, with values loaded.
    """
    jobs: SharedJobs = model.sharing
    at = start_events(model)
    options = [max(jobs.options[j], key=lambda o: model.z[j, o].value) for j in model.jobs]
    start, gangs = [float(model.t[q].value) * model.unit for q in at], first_gangs(jobs)
    span = max(float(model.t[q].value) for q in model.events) * model.unit
    start = on_events(jobs, start, gangs, options, NEAR * span)
    shared = jobs.schedule(start, shared_completions(jobs, start, gangs, options), gangs, options, NAME)
    return shared.on_clock(model.given.instance)


def _states(jobs: SharedJobs) -> list[State]:
    """Return the states: no job, every job with every option, and all pairs of them that may share and fit."""
    options = [(j, o) for j, own in enumerate(jobs.options) for o in own]
    room = min(jobs.node_memory)
    pairs = [
        (one, other)
        for one in options
        for other in options
        if one[0] < other[0] and jobs.pairs(one[0], other[0]) and jobs.memory(*one) + jobs.memory(*other) <= room
    ]
    return [(), *((each,) for each in options), *pairs]


add_program(
    NAME,
    "P | r_j, size_j, two a GPU | sum C_j, by events",
    "seconds, the sum of completions without preemption in the best schedule",
    "gpu-sharing",
    lambda instance: instance,
    build,
    clocked=True,
)
