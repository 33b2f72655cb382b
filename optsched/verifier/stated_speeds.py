"""Speeds of jobs: seconds of a unit of work by GPU type, and the ways in which a job can do its work.

A *mode* is a way to do work on one GPU type: seconds a unit of work, and the GPUs that are paid for.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import NamedTuple, Protocol

from .document_fields import Data
from .scaling_seconds import Needs
from .stated_instance import StatedJobs

ModeRows = tuple[tuple[str, Fraction, Fraction], ...]  # of a job: GPU type, seconds a unit of work, GPUs paid for
Rates = tuple[tuple[str, Fraction, Fraction], ...]  # of a job: GPU type, units of work a second, GPUs paid for
Steps = list[tuple[Fraction, Fraction]]  # price of a unit of work, units a second


class Speed(NamedTuple):
    """The speed of jobs that are alike.

    ``pace`` has the seconds of a unit of work by GPU type, ``least`` the fewest seconds. ``rates`` has (GPUs, units of work
    a second) of an elastic job; None for a job that is not elastic.
    """

    pace: dict[str, float]
    least: float
    rates: list[tuple[int, float]] | None = None


class SpeedSource(Protocol):
    """A program that vouches for an instance and gives what this verifier cannot read of it."""

    @property
    def given(self) -> Collection[int]:
        """The jobs whose speed it gives."""

    def document(self) -> Data:
        """Return the instance as a file has it, without its jobs and without what is given otherwise."""

    def stated_jobs(self) -> StatedJobs:
        """Return the jobs."""

    def speed(self, job: int, *, elastic: bool) -> Speed:
        """Return the speed of a job.

        Parameters
        ----------
        job
            Index of the job, one of ``given``.
        elastic
            True if rates on any number of GPUs are wanted.
        """

    def needs(self, job: int) -> Needs:
        """Return (bytes, least factor by which an iteration gets longer) of the sub-batches of a job.

        Parameters
        ----------
        job
            Index of the job, one of ``given``.
        """


class PricesByType(NamedTuple):
    """Prices of GPU types.

    ``of``: price by type. ``capacity``: price of all GPUs for a second. ``modes``: what every job may do at these prices.
    ``stated``: what certificates state of it.
    """

    of: dict[str, int]
    capacity: int
    modes: list[ModeRows]
    stated: Data

    def cost(self, modes: ModeRows, own: int = 0) -> Fraction:
        """Return the least price of a unit of work.

        Parameters
        ----------
        modes
            What the job may do.
        own
            Price of a second of the job's own time.
        """
        return min((a * (own + n * self.of[t]) for t, a, n in modes), default=Fraction(0))


def distinct(rows: list[ModeRows]) -> list[ModeRows]:
    """Return the modes of a list of jobs once each, by identity.

    Parameters
    ----------
    rows
        Modes of every job; jobs that are alike share one object.
    """
    return list({id(row): row for row in rows}.values())


def lower_hull(points: list[tuple[Fraction, Fraction]]) -> Steps:
    """Return (slope, width) of the pieces of the largest convex function below points and (0, 0).

    Parameters
    ----------
    points
        Points (rate, cost).
    """
    # in whole multiples of common fractions: a comparison of fractions takes many times as long
    rates, costs = lcm(*(rate.denominator for rate, _ in points)), lcm(*(cost.denominator for _, cost in points))
    scaled = [(int(rate * rates), int(cost * costs)) for rate, cost in points]
    hull = [(0, 0)]
    for rate, cost in sorted(scaled, key=lambda point: (point[0], -point[1])):
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            if c != rate and (cost - b) * (c - a) > (d - b) * (rate - a):  # the way over the last one is convex
                break
            hull.pop()
        hull.append((rate, cost))
    return [(Fraction((d - c) * rates, (b - a) * costs), Fraction(b - a, rates)) for (a, c), (b, d) in pairwise(hull)]


def useful(options: Rates) -> Rates:
    """Return the options that are the cheapest at some prices: of every type those on the hull of GPUs over rate.

    Parameters
    ----------
    options
        Options of a job.
    """
    best = list[tuple[str, Fraction, Fraction]]()
    for name in dict.fromkeys(t for t, _, _ in options):
        rate, gpus = Fraction(0), Fraction(0)
        for slope, more in lower_hull([(x, n) for t, x, n in options if t == name]):
            rate, gpus = rate + more, gpus + slope * more
            best.append((name, rate, gpus))
    return tuple(best)
