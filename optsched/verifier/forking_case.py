"""Class forking: a job may train in several copies at once, whose work adds up."""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Case
from .exact_numbers import quotient_below
from .stated_speeds import ModeRows, Speed


class ForkingCase(Case):
    """Copies of a job on all GPUs of its types at once."""

    schedule_class = "forking"
    copies = True

    def modes_of(self, speed: Speed, gang: int) -> ModeRows:
        """Return the copies on every type, which take a part of all its GPUs.

        Parameters
        ----------
        speed
            Speed of the jobs.
        gang
            GPUs of a copy.
        """
        exact = [(t, Fraction(seconds)) for t, seconds in speed.pace.items()]
        return tuple((t, seconds * gang / self.count[t], Fraction(self.count[t])) for t, seconds in exact)

    def class_lengths(self) -> list[float]:
        """Return the seconds that every job takes with copies on all GPUs."""
        return shortest(self)

    def fastest(self, modes: ModeRows) -> Fraction:
        """Return the units of work a second on all types together.

        Parameters
        ----------
        modes
            What the job may do.
        """
        return sum((1 / seconds for _, seconds, _ in modes), Fraction(0))


def shortest(case: Case) -> list[float]:
    """Return the seconds of every job at its fastest, rounded down to floats.

    Parameters
    ----------
    case
        What the certificate is about.
    """
    fastest = [case.fastest(modes) for modes in case.row_modes]
    parts = [(f.denominator, f.numerator * case.work_unit) for f in fastest]
    rows = (parts[row] for row in case.row)
    return [quotient_below(work * up, down) for work, (up, down) in zip(case.work, rows, strict=True)]
