"""Transfers on links that slow each other down: event slots, as a mixed-integer program.

Sets: transfers j = 1..n; events e = 0..2n-1, each the start or the end of one transfer, in order of time; the interval e
lies between the events e and e+1; links l; L_j the links of j; n_l the number of transfers that use l.
Data: r_j release, p_j = b M_j seconds alone, eta / b; q_k = k + (k - 1) eta / b, the stretch of each of k transfers; H_j a
latest completion of j, H = max H_j. In the program times are in units of max p_j, so that tolerances do not depend on the
unit of the data; the objective is in seconds.
Variables: t_e >= 0 time of event e; s_je, f_je = 1 if e is the start, the end of j; a_je in [0, 1], is j active in
interval e; y_lek = 1 if k transfers are active on l in interval e; d_lek >= 0 its length if so, else 0; m_je >= 0 the
amount that j moves in it, in seconds alone; C_j in [r_j + p_j, H_j].

    min  sum_j C_j                                                                                            (0)
    s.t. sum_j (s_je + f_je) = 1                                              every e                         (1)  one
         sum_e s_je = 1, sum_e f_je = 1                                       every j                         (2)  once
         a_je = sum_{e' <= e} (s_je' - f_je')                                 every j, interval e             (3)  is_active
         sum_k y_lek = 1, sum_k k y_lek = sum_{j on l} a_je        every l, interval e                (4)  one_count, count
         t_{e+1} - t_e = sum_k d_lek                                          every l, interval e             (5)  length
         d_lek <= H y_lek                                                     every l, interval e, k          (6)  chosen
         m_je <= sum_{k >= 1} d_lek / q_k                                     every j, l in L_j, interval e   (7)  rate
         m_je <= p_j a_je                                                     every j, interval e             (8)  if_active
         sum_e m_je = p_j                                                     every j                         (9)  moved
         t_e >= r_j s_je                                                      every j, e                      (10) released
         C_j >= t_e - (H - r_j - p_j) (1 - f_je)                              every j, e                      (11) ended
         sum_j C_j >= the SRPT bound                                                                          (12) srpt

`event_slots` builds (0), (1), (2), (10) and (11) and defines the latest completions. (7) lets an active
transfer idle, which never helps: `transfer_search` has the proof. A transfer on several links has one
row (7) for each, so it moves at the rate of its slowest link. (12) is implied. It tightens the relaxation, which is weak.

Optimum: of sum C_j over all starts, at events or not; sum of flow times plus sum r_j. Not a `Formulation` of an instance.
Size: 4 n^2 binaries and sum_l 2 n (n_l + 1) more; about 16 n^3 nonzeros on one link. Solved to n = 4 in seconds.
Reference: own formulation; events as in Kone, Artigues, Lopez and Mongeau, Computers & Oper. Res. 38 (2011), 3-13.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from optsched.classes.task_sharing.bounds.transfer_srpt import srpt_per_link
from optsched.classes.task_sharing.problem.transfers import TransferProblem, transfers_of
from optsched.errors import InputError
from optsched.models.event_slots import begun, event_model, start_events
from optsched.models.fast_building import collector_paused
from optsched.models.program import add_program

NAME = "link-contention"


@collector_paused
def build(problem: TransferProblem, *, value: float | None = None) -> pyo.ConcreteModel:
    """Build the model.

    Parameters
    ----------
    problem
        Transfers and links.
    value
        sum C_j of a known schedule in seconds, for tighter latest completions; None: none is known.

    Raises
    ------
    InputError
        If there are no transfers, or if ``value`` is below a lower bound.
    """
    if problem.n == 0:
        raise InputError(f"{NAME} needs transfers", field="n", value=0, legal="at least 1")
    unit, part = float(problem.alone.max()), problem.n * problem.epoch
    given, problem = problem, problem.relative
    p = (problem.alone / unit).tolist()
    eta = problem.contention.penalty / problem.contention.seconds_per_byte
    links = problem.link_numbers
    users = {link: problem.users(link) for link in links}
    counts = [(link, k) for link in links for k in range(len(users[link]) + 1)]

    # (0), (1), (2), (10), (11)
    m = event_model(NAME, problem.release.tolist(), problem.alone.tolist(), unit, part, value)
    transfers, intervals, m.epoch = m.jobs, m.intervals, given.epoch
    m.a = pyo.Var(transfers, intervals, bounds=(0, 1))
    m.y = pyo.Var(counts, intervals, domain=pyo.Binary)
    m.d = pyo.Var(counts, intervals, domain=pyo.NonNegativeReals)
    m.m = pyo.Var(transfers, intervals, domain=pyo.NonNegativeReals)

    # (3)
    @m.Constraint(transfers, intervals)
    def is_active(m: Any, j: int, e: int) -> Any:
        return m.a[j, e] == begun(m, j, e)

    # (4)
    @m.Constraint(links, intervals)
    def one_count(m: Any, link: int, e: int) -> Any:
        return sum(m.y[link, k, e] for k in range(len(users[link]) + 1)) == 1

    @m.Constraint(links, intervals)
    def count(m: Any, link: int, e: int) -> Any:
        several = range(1, len(users[link]) + 1)
        return sum(k * m.y[link, k, e] for k in several) == sum(m.a[j, e] for j in users[link])

    # (5)
    @m.Constraint(links, intervals)
    def length(m: Any, link: int, e: int) -> Any:
        return m.t[e + 1] - m.t[e] == sum(m.d[link, k, e] for k in range(len(users[link]) + 1))

    # (6)
    @m.Constraint(counts, intervals)
    def chosen(m: Any, link: int, k: int, e: int) -> Any:
        return m.d[link, k, e] <= m.horizon * m.y[link, k, e]

    # (7)
    @m.Constraint([(j, link) for j in transfers for link in problem.links[j]], intervals)
    def rate(m: Any, j: int, link: int, e: int) -> Any:
        several = range(1, len(users[link]) + 1)
        return m.m[j, e] <= sum(m.d[link, k, e] / (k + (k - 1) * eta) for k in several)

    # (8)
    @m.Constraint(transfers, intervals)
    def if_active(m: Any, j: int, e: int) -> Any:
        return m.m[j, e] <= p[j] * m.a[j, e]

    # (9)
    @m.Constraint(transfers)
    def moved(m: Any, j: int) -> Any:
        return sum(m.m[j, e] for e in intervals) == p[j]

    # (12)
    m.srpt = pyo.Constraint(expr=sum(m.C[j] for j in transfers) >= srpt_per_link(problem).exact_float / unit)
    return m


def starts(model: Any) -> list[float]:
    """Return S_j in seconds from the values loaded in the model.

    The starts are exact up to the solver's tolerance: a start may lie that much before its release.

    Parameters
    ----------
    model
        The model, with values loaded.
    """
    return [model.epoch + float(model.t[e].value) * model.unit for e in start_events(model)]


add_program(
    NAME,
    "1 | r_j, transfers that slow each other down | sum C_j",
    "seconds, the sum of completions of transfers that are never interrupted, in the best starts",
    "transfers",
    transfers_of,
    build,
    clocked=True,
)
