"""Core of the mixed-integer programs with event slots: jobs that run once, without interruption, and slow each other down.

Sets: jobs j = 1..n; events q = 0..2n-1, each the start or the end of one job, in order of time; the interval q lies between
the events q and q+1. Data, in units of the longest time alone and counted from the first arrival, so that tolerances depend
neither on the unit of the data nor on their clock: r_j release; e_j least seconds alone; H_j a latest completion of j, H the
latest of all.
Variables: t_q >= 0 time of event q; s_jq, f_jq = 1 if q is the start, the end of j; C_j in [r_j + e_j, H_j].

    min  sum_j C_j
    s.t. sum_j (s_jq + f_jq) = 1                                              every q             one
         sum_q s_jq = 1, sum_q f_jq = 1                                       every j             once
         t_q >= r_j s_jq                                                      every j, q          released
         C_j >= t_q - (H - r_j - e_j) (1 - f_jq)                              every j, q          ended

The formulations `link_contention` and `gpu_sharing` add the rows for the intervals between events.

Latest completions: in a schedule of value V or better C_j <= V - sum_{i != j} (r_i + e_i). V is the value of a known
schedule. Without one, V is the value of the schedule that runs one job at a time and always takes the shortest released
job next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo

from optsched.errors import InputError

SLACK = 1e-6  # relative; a known value is a float from another sum, and rounding must not exclude its own schedule
ULPS = 16  # the same for the value, in units in the last place


def event_model(
    name: str, release: Sequence[float], alone: Sequence[float], unit: float, part: float, value: float | None
) -> pyo.ConcreteModel:
    """Build the part of the model that does not depend on the intervals between events.

    The model has ``jobs``, ``events``, ``intervals``, ``horizon`` (H) and ``unit``.

    Parameters
    ----------
    name
        Name of the model.
    release
        Releases, in seconds from the first arrival.
    alone
        Least seconds that each job takes alone.
    unit
        Unit of time of the model, in seconds.
    part
        Part of sum C_j that the clock of the log adds, in seconds.
    value
        sum C_j of a known schedule on the clock of the log, in seconds; None: none is known.
    """
    H = [at / unit for at in latest_completions(release, alone, None if value is None else value - part)]
    r, e = [at / unit for at in release], [seconds / unit for seconds in alone]

    m = pyo.ConcreteModel(name)
    m.unit, m.horizon, m.jobs, m.events = unit, max(H), range(len(r)), range(2 * len(r))
    m.intervals = m.events[:-1]
    m.t = pyo.Var(m.events, bounds=(0, m.horizon))
    m.s, m.f = pyo.Var(m.jobs, m.events, domain=pyo.Binary), pyo.Var(m.jobs, m.events, domain=pyo.Binary)
    m.C = pyo.Var(m.jobs, bounds=lambda _, j: (r[j] + e[j], H[j]))
    m.objective = pyo.Objective(expr=part + unit * sum(m.C[j] for j in m.jobs), sense=pyo.minimize)

    @m.Constraint(m.events)
    def one(m: Any, q: int) -> Any:
        return sum(m.s[j, q] + m.f[j, q] for j in m.jobs) == 1

    @m.Constraint(m.jobs, [0, 1])
    def once(m: Any, j: int, end: int) -> Any:
        return sum((m.s, m.f)[end][j, q] for q in m.events) == 1

    @m.Constraint(m.jobs, m.events)
    def released(m: Any, j: int, q: int) -> Any:
        return m.t[q] >= r[j] * m.s[j, q]

    @m.Constraint(m.jobs, m.events)
    def ended(m: Any, j: int, q: int) -> Any:
        return m.C[j] >= m.t[q] - (m.horizon - r[j] - e[j]) * (1 - m.f[j, q])

    return m


def begun(m: Any, j: int, q: int) -> Any:
    """Return the expression that is 1 if job j is active in interval q: its starts minus its ends up to event q.

    Parameters
    ----------
    m
        The model.
    j
        Number of the job.
    q
        Number of the interval.
    """
    return sum(m.s[j, before] - m.f[j, before] for before in range(q + 1))


def start_events(m: Any) -> list[int]:
    """Return the event at which every job starts, from the values loaded in the model.

    Parameters
    ----------
    m
        The model, with values loaded.
    """
    return [max(m.events, key=lambda q: m.s[j, q].value) for j in m.jobs]


def one_at_a_time(release: Sequence[float], alone: Sequence[float]) -> float:
    """Return sum C_j of the schedule that runs one job at a time and takes the shortest released job next.

    Parameters
    ----------
    release
        Releases in seconds.
    alone
        Seconds that each job takes alone.
    """
    now, total, left = 0.0, 0.0, set(range(len(release)))
    while left:
        now = max(now, min(release[j] for j in left))
        seconds, j = min((alone[j], j) for j in left if release[j] <= now)
        left.remove(j)
        now += seconds
        total += now
    return total


def latest_completions(release: Sequence[float], alone: Sequence[float], value: float | None = None) -> list[float]:
    """Return H_j in seconds: no schedule with the given value or a better one ends job j later.

    Parameters
    ----------
    release
        Releases in seconds.
    alone
        Seconds that each job takes alone.
    value
        sum C_j of a known schedule in seconds; None: the value of `one_at_a_time`.

    Raises
    ------
    InputError
        If no schedule can have this value.
    """
    least = [r + a for r, a in zip(release, alone, strict=True)]
    reference = one_at_a_time(release, alone) if value is None else value
    if not math.isfinite(reference) or reference < sum(least) * (1 - SLACK):
        legal = f"sum C_j of a schedule, at least {sum(least)!r}"
        raise InputError("no schedule has this value", field="value", value=value, legal=legal)
    spare = max(reference - sum(least), 0.0) + SLACK * sum(alone) + ULPS * math.ulp(reference)
    return [earliest + spare for earliest in least]
