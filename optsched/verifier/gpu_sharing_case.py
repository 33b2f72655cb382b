"""Class gpu-sharing: at most two jobs on a GPU, each slowed down by the other; of its GPUs a job pays a charge."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .certified_case import Case
from .document_fields import Data
from .refusal import KIND, need
from .scaling_seconds import Needs
from .sharing_charges import Charges
from .stated_speeds import ModeRows, PricesByType, Rates


class GpuSharingCase(Case):
    """Two jobs on a GPU where that is allowed."""

    schedule_class = "gpu-sharing"

    def read_partners(self, given: Data) -> None:
        """Read the interference of the instance.

        Parameters
        ----------
        given
            JSON object of the interference.

        Raises
        ------
        Refused
            If the instance has none.
        """
        need(given, "no two jobs of this instance share a GPU", KIND)
        super().read_partners(given)

    def charges(self, data: Data) -> Charges:
        """Return what gangs pay of GPUs that they may share: of a GPU that two jobs share no more than it costs.

        Parameters
        ----------
        data
            Data of the certificate: ``classes``, ``charges``.
        """
        batches = self.jobs.labels["batch_size"]
        first = dict(zip(reversed(self.row), reversed(range(self.n)), strict=True))
        needs, runs = list[Needs](), list[list[int]]()
        names = [self.types[node["gpu"].casefold()] for node in self.nodes]
        for row, speed in enumerate(self.speeds):
            j = first[row]
            scaling = self.scaled[j]
            if self.source is not None and j in self.source.given:
                needs.append(self.source.needs(j))
            elif scaling is None:
                needs.append({(Fraction(self.memory[j]), Fraction(1))})
            else:
                needs.append(scaling.stretches(batches[j], self.gpus[j], self.memory[j]))
            runs.append([g for g in self.suits[j] if names[g] in speed.pace])
        rooms = [node.get("gpu_memory", float("inf")) for node in self.nodes]
        return self.partners.charges(data, self.row, needs, runs, list(zip(names, rooms, strict=True)))

    def prices(self, data: Data) -> PricesByType:
        """Return the prices of GPU types, of which every job pays its charge.

        Parameters
        ----------
        data
            Data of the certificate: ``prices``, ``classes``, ``charges``.
        """
        prices, charges, known = super().prices(data), self.charges(data), dict[tuple[int, int], ModeRows]()
        keys = list(zip(self.row, charges.class_of, strict=True))
        for row, c in dict.fromkeys(keys):
            part = charges.part[c]
            known[row, c] = tuple((t, seconds, n * part[t]) for t, seconds, n in self.row_modes[row])
        charged = [known[key] for key in keys]
        return prices._replace(modes=charged, stated=prices.stated | charges.stated)

    def rates(self, data: Data) -> tuple[list[Any], Data]:
        """Return the options of every job: its full speed in full, or next to a partner for its charge.

        Parameters
        ----------
        data
            Data of the certificate: ``classes``, ``charges``.
        """
        charges, rates = self.charges(data), list[Rates]()
        for modes, c in zip(self.modes, charges.class_of, strict=True):
            part, paired = charges.part[c], charges.paired[c]
            slow = [(t, paired[t] / a, n * part[t] * paired[t]) for t, a, n in modes if paired[t] > 0]
            rates.append((*slow, *((t, 1 / a, n) for t, a, n in modes if paired[t] < 1)))
        return rates, charges.stated
