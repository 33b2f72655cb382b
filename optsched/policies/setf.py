"""Shortest elapsed time first; round robin if all jobs arrive at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.ties import leading_of
from optsched.registry import Seconds
from optsched.simulation.next_event import last_of_instant
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, Stop, View, Wake


@POLICIES.register("setf")
@dataclass
class Setf(Policy):
    """SETF: preemptive; the active jobs that have run for the shortest time run, in turns of ``quantum`` seconds.

    A job that has had its turn is stopped if a waiting job has run no longer; ties go by arrival. If all jobs arrive
    at once on one machine, this is round robin. Jobs that do not fit are passed over.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum C_j, sum (C_j - r_j). **Knowledge** non-clairvoyant.

    **Guarantee** 1 | pmtn | sum C_j with durations that are multiples of ``quantum``: 2 - 2/(n + 1), and no
    non-clairvoyant algorithm has less. **Tight family** equal jobs, ``quantum`` -> 0 (``equal-turns``). None known for
    gangs. **Complexity** O(w log w) a turn with w jobs waiting. **Reference** Motwani, Phillips and Torng 1994;
    Kalyanasundaram and Pruhs 2000 for faster machines.

    Parameters
    ----------
    quantum
        Length of a turn, in seconds.
    """

    quantum: Seconds = 60.0

    name = "setf"
    knowledge = Knowledge.NON_CLAIRVOYANT

    def __post_init__(self) -> None:
        check_legal(0 < self.quantum < float("inf"), "setf: quantum", self.quantum, "a finite number of seconds > 0")

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._until: dict[int, float] = {}  # end of the turn of a running job
        self._ran: dict[int, float] = {}  # elapsed time of a waiting job when it was stopped

    def decide(self, view: View) -> Iterator[Decision]:
        """Stop the jobs whose turn is over if a waiting job has run no longer; then start jobs by elapsed time.

        Parameters
        ----------
        view
            State of the run.
        """
        now, ran = view.now, self._ran
        least = min((ran.get(job, 0.0) for job in view.waiting), default=None)
        if least is None:
            return
        for job in [job for job in view.running if self._until[job] <= last_of_instant(now)]:
            elapsed = float(leading_of(view.attained(job) / view.gpus(job)))
            if least <= elapsed:
                ran[job] = elapsed
                yield Stop(job)
            else:
                self._until[job] = now + self.quantum
        for job in sorted(view.waiting, key=lambda job: ran.get(job, 0.0)):
            if view.fits(job):
                self._until[job] = now + self.quantum
                yield Start(job)
        if view.waiting:
            yield Wake(min((self._until[job] for job in view.running), default=now + self.quantum))
