"""Class task-sharing: iterations of tasks, which take turns on GPUs and share network interfaces."""

from __future__ import annotations

from typing import Any

from .certified_case import Case
from .document_fields import Data
from .priced_cells import PricedCells, RoundMinima
from .task_needs import TaskNeeds
from .tick_machine import Machine


class TaskSharingCase(Case):
    """Gangs whose jobs have tasks."""

    schedule_class = "task-sharing"
    takes_turns = True

    def read_lengths(self, link: Data, stated: bool) -> list[float]:
        """Return the path of every job in seconds, and add tasks and contention to the digest.

        Parameters
        ----------
        link
            Contention on a network interface.
        stated
            True if the instance states it.
        """
        self.needs = TaskNeeds(self, self.document["tasks"], link)
        if self.n:
            self.digest.update(self.needs.text.encode())
            self.learn(link if stated else None)
        self.gang_seconds, self.count = self.needs.gang_seconds, self.needs.capacity
        return self.needs.length

    def machine(self, data: Data) -> Machine:
        """Return the machine of the resource that the data of a certificate name.

        Parameters
        ----------
        data
            Data of the certificate: ``resource``, ``grid_exponent``.
        """
        return self.needs.machine(data)

    def rates(self, data: Data) -> tuple[list[Any], Data]:
        """Return the iteration of every job.

        Parameters
        ----------
        data
            Data of the certificate.
        """
        return self.needs.rounds, {}

    def minima(self, cells: PricedCells) -> RoundMinima:
        """Return what cells of time cost jobs that take GPUs and interfaces in iterations.

        Parameters
        ----------
        cells
            Cells and their prices.
        """
        return RoundMinima(cells)
