"""What mixed-integer programs with event slots share: jobs that run once, without interruption, and slow each other down.

Sets: jobs j = 1..n; events q = 0..2n-1, each the start or the end of one job, in order of time; the interval q lies between
the events q and q+1. Data, in units of the longest time alone and counted from the first arrival, so that tolerances depend
neither on the unit of the data nor on their clock: r_j release; e_j least seconds alone; H_j a latest completion, H the
latest of all.
Variables: t_q >= 0 time of event q; s_jq, f_jq = 1 if q is the start, the end of j; C_j in [r_j + e_j, H_j].

    min  sum_j C_j
    s.t. sum_j (s_jq + f_jq) = 1                                              every q             one
         sum_q s_jq = 1, sum_q f_jq = 1                                       every j             once
         t_q >= r_j s_jq                                                      every j, q          released
         C_j >= t_q - (H - r_j - e_j) (1 - f_jq)                              every j, q          ended

What happens between two events is each formulation's own: `link_contention`, `gpu_sharing`.

Latest completions: in a schedule of value V or better C_j <= V - sum_{i != j} (r_i + e_i). V is the value of the schedule of
one job at a time, the shortest released one next, unless a better one is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo

from optsched.errors import InputError

SLACK = 1e-6  # relative; a known value is a float that was added up elsewhere, and must not cut itself off
ULPS = 16  # for the same reason, of the value


def event_model(
    name: str, release: Sequence[float], alone: Sequence[float], unit: float, part: float, value: float | None
) -> pyo.ConcreteModel:
    """The model without what happens between events: ``jobs``, ``events``, ``intervals``, ``horizon`` H, ``unit``.

    ``release`` and ``alone`` in seconds from the first arrival; ``part``: what the log's clock adds to sum C_j; ``value``:
    sum C_j of a known schedule, on that clock.
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
    """Is j active in interval q: its starts less its ends up to event q."""
    return sum(m.s[j, before] - m.f[j, before] for before in range(q + 1))


def start_events(m: Any) -> list[int]:
    """The event at which every job starts, from the values loaded in the model."""
    return [max(m.events, key=lambda q: m.s[j, q].value) for j in m.jobs]


def one_at_a_time(release: Sequence[float], alone: Sequence[float]) -> float:
    """sum C_j of the schedule that runs one job at a time, the shortest released one next."""
    now, total, left = 0.0, 0.0, set(range(len(release)))
    while left:
        now = max(now, min(release[j] for j in left))
        seconds, j = min((alone[j], j) for j in left if release[j] <= now)
        left.remove(j)
        now += seconds
        total += now
    return total


def latest_completions(release: Sequence[float], alone: Sequence[float], value: float | None = None) -> list[float]:
    """H_j: no schedule of value ``value`` (default: `one_at_a_time`) or better ends j later, seconds.

    Raises `InputError` for a value that no schedule has.
    """
    least = [r + a for r, a in zip(release, alone, strict=True)]
    known = one_at_a_time(release, alone) if value is None else value
    if not math.isfinite(known) or known < sum(least) * (1 - SLACK):
        legal = f"sum C_j of a schedule, at least {sum(least)!r}"
        raise InputError("no schedule has this value", field="value", value=value, legal=legal)
    spare = max(known - sum(least), 0.0) + SLACK * sum(alone) + ULPS * math.ulp(known)
    return [own + spare for own in least]
