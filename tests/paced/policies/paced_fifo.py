"""First come, first served, some seconds apart."""

from collections.abc import Iterator

from optsched.policies import POLICIES
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, View, Wake
from paced import APART


@POLICIES.register("paced-fifo")
class PacedFifo(Policy):
    """The first of the queue, `APART` seconds after the last one."""

    name = "paced-fifo"
    knowledge = Knowledge.NON_CLAIRVOYANT
    uses = ("paced",)

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._next = 0.0

    def decide(self, view: View) -> Iterator[Decision]:
        """Start one job, or wait."""
        for job in view.waiting[:1]:
            if view.now < self._next:
                yield Wake(self._next)
            elif view.fits(job):
                self._next = view.now + APART
                yield Start(job)
                yield Wake(self._next)
