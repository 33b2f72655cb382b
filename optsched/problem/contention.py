"""`Contention` and `IterationTasks`: what an iteration of a job is made of, and what its all-reduces cost each other.

A distributed job repeats: on each of its GPUs a forward and a backward task, a barrier over the gang, one all-reduce of M
bytes. Beside k - 1 others on a network interface the all-reduce takes **T(k) = a + k b M + (k - 1) eta M** seconds: with
eta > 0 sharing an interface costs more than taking turns. The fabric between the nodes does not block; a gang on one node
sends nothing over the network. When two should overlap: `optsched.speeds.sharing_pair`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import is_number
from optsched.problem.documents import Part

T = TypeVar("T")
LARGEST = 1e18  # seconds, bytes, seconds a byte: beyond it sums overflow


def legal_number(value: Any, field: str, legal: str, least: float = 0.0, *, above: bool = False) -> float:
    """Return a number that is legal for a field.

    Parameters
    ----------
    value
        Value of the field.
    field
        Name of the field, for the error.
    legal
        Description of legal values, for the error.
    least
        Least legal value; the largest is `LARGEST`.
    above
        The value must be larger than ``least``.

    Raises
    ------
    InputError
        If the value is no such number.
    """
    if not is_number(value) or not least <= value <= LARGEST or (above and value == least):
        raise InputError("invalid", field=field, value=value, legal=f"{legal}, at most {LARGEST:g}")
    return float(value)


def legal_fields(part: Part, legal: str, *names: str, least: float = 0.0, above: bool = False) -> None:
    """Check fields of a part with `legal_number` and store them as floats.

    Parameters
    ----------
    part
        Frozen dataclass whose fields are set.
    legal
        Description of legal values, for the error.
    names
        Names of the fields.
    least
        Least legal value.
    above
        The values must be larger than ``least``.

    Raises
    ------
    InputError
        If a field is no such number.
    """
    for name in names:
        object.__setattr__(part, name, legal_number(getattr(part, name), name, legal, least, above=above))


@dataclass(frozen=True, slots=True)
class IterationTasks(Part):
    """One iteration: ``forward`` and ``backward`` seconds on each GPU, then an all-reduce of ``message`` bytes.

    ``message`` None: nothing is reduced. (A message of 0 bytes is refused: it would be a transfer that transfers nothing.)
    """

    forward: float
    backward: float
    message: float | None = None

    def __post_init__(self) -> None:
        legal_fields(self, "a number of seconds >= 0", "forward", "backward")
        if self.message is not None:
            legal_fields(self, "a number of bytes > 0 (or no message at all)", "message", above=True)
        elif self.compute == 0:
            raise InputError("an iteration takes no time", field="forward", value=0, legal="seconds > 0, or a message")

    @property
    def compute(self) -> float:
        """t = forward + backward, seconds."""
        return self.forward + self.backward


@dataclass(frozen=True)
class Contention(Part):
    """Cost of k all-reduces at once on a network interface, in seconds for M bytes each.

    The cost is T(k) = a + k b M + (k - 1) eta M. ``seconds_per_byte`` is b > 0, ``penalty`` is eta in seconds a
    byte, and ``latency`` is a >= 0, the seconds before the bytes move, in which transfers do not contend.
    Measurements may give eta < 0. Then eta must be more than -b (k transfers at once are never faster than
    one), and the theorems on AdaDUAL, which need eta >= 0, do not apply (`require_penalty`).

    ``ratios`` replace the formula by measurements. ``ratios[i][j]`` in (0, 1] is the fraction of its speed that
    a transfer of ``kinds[i]`` keeps next to one of ``kinds[j]``; next to several it keeps the product, which is
    an assumption. b is then the cost alone, and eta is not used. The kind of a job is the name of its profile.
    """

    seconds_per_byte: float
    penalty: float = 0.0
    latency: float = 0.0
    kinds: tuple[str, ...] = ()
    ratios: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        b = legal_number(self.seconds_per_byte, "contention.seconds_per_byte", "a number > 0", above=True)
        legal = f"a number > {-b:g} (k at once are never faster than one)"
        eta = legal_number(self.penalty, "contention.penalty", legal, -b, above=True)
        a = legal_number(self.latency, "contention.latency", "a number of seconds >= 0")
        ratios = square("contention", self.kinds, self.ratios, _kept_speed)
        self._set(seconds_per_byte=b, penalty=eta, latency=a, kinds=tuple(self.kinds), ratios=ratios)

    @property
    def measured(self) -> bool:
        """True for a table of measured ratios."""
        return bool(self.kinds)

    @property
    def theta(self) -> float:
        """AdaDUAL's threshold b / (2 (b + eta)) on the ratio of sizes new / old."""
        return self.seconds_per_byte / (2 * (self.seconds_per_byte + self.penalty))

    def require_penalty(self, what: str, *, latency: bool = True) -> None:
        """Refuse a model that a theorem or a program cannot take.

        Parameters
        ----------
        what
            Theorem or program that needs eta >= 0 and no measured ratios, for the error.
        latency
            False if it also needs a latency a = 0.

        Raises
        ------
        InputError
            If the model is another one.
        """
        if self.measured:
            raise InputError(
                f"{what} needs the linear model of contention, not measured ratios",
                field="contention.ratios",
                legal="seconds_per_byte and penalty",
            )
        if self.penalty < 0:
            raise InputError(
                f"{what} needs a penalty eta >= 0: with eta < 0 contention makes the link faster",
                field="contention.penalty",
                value=self.penalty,
                legal="a number >= 0",
            )
        if self.latency > 0 and not latency:
            raise InputError(f"{what} knows no latency", field="contention.latency", value=self.latency, legal="0")


def _kept_speed(value: Any, field: str) -> float:
    legal = "a number in (0, 1]"
    check_legal(legal_number(value, field, legal, above=True) <= 1, field, value, legal)
    return float(value)


def square(
    part: str, kinds: Sequence[str], ratios: Sequence[Sequence[Any]], legal: Callable[[Any, str], T]
) -> tuple[tuple[T, ...], ...]:
    """Return a table with a row and a column for each kind.

    Parameters
    ----------
    part
        Name of the part of the instance file, for errors.
    kinds
        Names of the rows and columns.
    ratios
        Rows of values.
    legal
        Function of a value and of its field that returns the legal value or raises.

    Raises
    ------
    InputError
        If the table has another shape or an illegal value.
    """
    if len(set(kinds)) < len(kinds):
        raise InputError("a kind is given twice", field=f"{part}.kinds", value=list(kinds), legal="different names")
    if len(ratios) != len(kinds) or any(len(row) != len(kinds) for row in ratios):
        wanted = f"{len(kinds)} rows of {len(kinds)} numbers, one for each of the kinds"
        raise InputError("not a square table", field=f"{part}.ratios", legal=wanted)
    return tuple(
        tuple(legal(value, f"{part}.ratios[{kind!r}, {other!r}]") for other, value in zip(kinds, row, strict=True))
        for kind, row in zip(kinds, ratios, strict=True)
    )


# V100 servers on 10 GbE (NCCL, two nodes), and the 1 GbE constants of the same authors: public code HKBU-HPML/dl-scheduling.
ETHERNET_10G = Contention(0.856e-9, 0.235e-9)
ETHERNET_1G = Contention(7.8125e-9, 0.7e-9)
