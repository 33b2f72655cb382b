"""Class elastic: jobs at scaling profiles may run on any number of GPUs, which may change, with any batch."""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Case
from .document_fields import Data, read_exponent
from .exact_numbers import floors, integers, quotient_below
from .forking_case import shortest
from .refusal import KIND, need
from .stated_speeds import ModeRows, Speed
from .tick_machine import Machine, machine_on_grid

MOST_GPUS = 4096


class ElasticCase(Case):
    """Some jobs are elastic; the others are rigid gangs."""

    schedule_class = "elastic"
    any_width = True

    def check_speeds(self) -> None:
        """Refuse an instance without elastic jobs."""
        need(any(speed.rates is not None for speed in self.speeds), "there are no elastic jobs", KIND)
        self.few(self.total, MOST_GPUS, "GPUs of elastic jobs")

    def modes_of(self, speed: Speed, gang: int) -> ModeRows:
        """Return the widths of an elastic job on every type that suits it.

        Parameters
        ----------
        speed
            Speed of the jobs.
        gang
            GPUs of their gangs, for jobs that are not elastic.
        """
        if speed.rates is None:
            return super().modes_of(speed, gang)
        widths = [(Fraction(gpus), 1 / Fraction(rate)) for gpus, rate in speed.rates if rate > 0]
        return tuple((t, seconds, gpus) for t in speed.pace for gpus, seconds in widths)

    def class_lengths(self) -> list[float]:
        """Return the seconds that every job takes at its best width."""
        elastic = [speed.rates is not None for speed in self.speeds]
        columns = zip(self.row, shortest(self), self.gang_seconds, strict=True)
        return [best if elastic[row] else seconds for row, best, seconds in columns]

    def machine(self, data: Data) -> Machine:
        """Return the machine of prices of GPU types, or of the fewest GPU-seconds if the data state a threshold.

        Parameters
        ----------
        data
            Data of the certificate.
        """
        if "threshold" not in data:
            return self.priced_machine(data)
        exponent = read_exponent(data, "grid_exponent")
        work = floors(*integers(self.gpu_seconds()), exponent)
        release = floors(self.release, self.unit, exponent)
        return machine_on_grid(release, work, self.total, exponent, {"threshold": 1})

    def gpu_seconds(self) -> list[float]:
        """Return the fewest GPU-seconds of the work of every job, rounded down to floats."""
        area = [min(seconds * gpus for _, seconds, gpus in modes) for modes in self.row_modes]
        elastic = [speed.rates is not None for speed in self.speeds]
        areas = list[float]()
        for row, work, seconds, gang in zip(self.row, self.work, self.gang_seconds, self.gpus, strict=True):
            if elastic[row]:
                areas.append(quotient_below(work * area[row].numerator, self.work_unit * area[row].denominator))
            else:
                p, q = seconds.as_integer_ratio()
                areas.append(quotient_below(p * gang, q))
        return areas
