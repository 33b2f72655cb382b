"""Shortest job first with release dates: who starts whatever is there loses without limit.

Folklore: a long job alone at 0, and many short ones a second later. Delayed SPT (`optsched.guarantees.delayed_spt`) is what
to do about it.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.errors import check_legal
from optsched.guarantees.family import family
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.instance import Instance, Job


def _long_first(n: int, times: int) -> int:
    long = times * n
    return long + n * long + n * (n + 1) // 2


def _long_last(n: int, times: int) -> int:
    return n + n * (n + 1) // 2 + 1 + n + times * n


@of_a_theorem
def greedy_start(n: int = 10, times: int = 10) -> Instance:
    """A job of ``times`` n seconds at 0 and n unit jobs at 1: sjf starts the long one at once.

    A schedule that starts it before 1 can do no better than sjf; among the others, which leave the first second idle,
    shortest first is best.
    """
    check_legal(n >= 1, "n", n, "an integer >= 1")
    check_legal(times >= 1, "times", times, "an integer >= 1")
    jobs = [Job("long", duration=times * n), *(Job(f"{i}", arrival=1, duration=1) for i in range(n))]
    best = min(_long_first(n, times), _long_last(n, times))
    optimum = stating(best, "total_completion_time", "gang-nonpreemptive", "the long job first or last")
    return Instance(jobs, "1x1", f"greedy-start-{n}-{times}", "total_completion_time", optimum=optimum)


GREEDY_START = family(
    name="greedy-start",
    summary="a job of 10 n seconds at 0, n unit jobs a second later, on one machine",
    policy="sjf",
    objective="total_completion_time",
    make=greedy_start,
    ratio=lambda n, times: max(Fraction(1), Fraction(_long_first(n, times), _long_last(n, times))),
    limit="2 times + 1 for many jobs: no constant",
    sizes=(2, 10, 100),
)
