"""Classes gang and gang-nonpreemptive: rigid gangs that are alone on their GPUs, with and without preemption."""

from __future__ import annotations

from .certified_case import Case
from .document_fields import Data, read_exponent, read_field
from .exact_numbers import floors
from .refusal import DUAL
from .tick_machine import Machine, fill, machine_on_grid


class GangCase(Case):
    """Rigid gangs that may be preempted."""

    schedule_class = "gang"

    def machine(self, data: Data) -> Machine:
        """Return the machine of prices of GPU types for the kinds ``typed-``, else that of a threshold of gangs.

        Parameters
        ----------
        data
            Data of the certificate.
        """
        return self.priced_machine(data) if self.kind.startswith("typed-") else self.threshold_machine(data)

    def threshold_machine(self, data: Data) -> Machine:
        """Return the machine of a threshold e of gangs.

        A machine of U units holds a job on u_j of them: 0 for gangs below e, U for gangs above G - e, else g_j. U is the
        most GPUs that these last gangs fill.

        Parameters
        ----------
        data
            Data of the certificate: ``threshold``, ``grid_exponent``.
        """
        total, sizes = self.total, set(self.gpus)
        threshold = read_field(int, data, "threshold", DUAL, least=1, most=(total + 1) // 2)
        exponent = read_exponent(data, "grid_exponent")
        middle = {gang for gang in sizes if threshold <= gang <= total - threshold}
        capacity = fill([gang for gang in self.gpus if gang in middle], total) if middle else 1
        width = {gang: capacity if gang > total - threshold else gang if gang in middle else 0 for gang in sizes}
        steps = floors(self.length, self.unit, exponent)
        work = [width[gang] * p for gang, p in zip(self.gpus, steps, strict=True)]
        release = floors(self.release, self.unit, exponent)
        return machine_on_grid(release, work, capacity, exponent, {"threshold": threshold})


class NonpreemptiveGangCase(GangCase):
    """Rigid gangs that run in one piece."""

    schedule_class = "gang-nonpreemptive"
    preemptive = False
