"""Class kv-cache: requests of a language model, which hold a cell more of the cache in every round."""

from __future__ import annotations

from .certified_case import Case
from .document_fields import Data, read_exponent
from .exact_numbers import floors, quotient_below
from .refusal import KIND, UNJUDGED, need
from .tick_machine import Machine, machine_on_grid

PROMPT, AFFINE = "prompt-", "2xa100-70b"
TICK, ROUND, REQUEST, CELL, NEW = 10**7, 446_000, 5_200, 27, 3_780  # rounds of affine length, in ticks of 1e-7 s
MOST = 10**7  # tokens


class KvCacheCase(Case):
    """Requests on one worker of ``cells``; they may be thrown out, and then lose their tokens.

    ``prompt`` s and ``output`` o are numbers of tokens, ``affine`` tells if rounds have affine length; else it is 1. Request
    i has ``needs[i]`` of the machine and ``moments[i]``, the sum over rounds j of (2 j - 1) times what it needs there.
    """

    schedule_class = "kv-cache"

    def read_lengths(self, link: Data, stated: bool) -> list[float]:
        """Return the seconds or rounds that every request takes alone.

        Parameters
        ----------
        link
            Contention on a network interface; not used.
        stated
            True if the instance states it; not used.
        """
        if self.source is not None and self.source.given:
            self.digest = None
        need(all(str(name).startswith(PROMPT) for name in self.by_profile), "these jobs are no requests", KIND)
        memory = self.nodes[0].get("gpu_memory", 0)
        need(self.total == 1 and int(memory) == memory >= 1, "requests need one worker with cells", UNJUDGED)
        self.cells, self.affine = int(memory), self.nodes[0]["gpu"].casefold() == AFFINE
        digits = [name[len(PROMPT) :] for name in self.by_profile]
        need(all(text.isascii() and text.isdigit() for text in digits), "a prompt is no number", UNJUDGED)
        self.prompt, self.output = [int(text) for text in digits], [int(x) for x in self.amount]
        need(all(0 < x == o <= MOST for x, o in zip(self.amount, self.output, strict=True)), "no tokens", UNJUDGED)
        rows = list(zip(self.prompt, self.output, strict=True))
        need(all(s + o <= self.cells and s <= MOST for s, o in rows), "a peak is larger than the cache", UNJUDGED)
        whole = self.affine or all(x == int(x) for x in self.jobs.stated("arrival"))
        need(whole, "an arrival is no boundary between rounds", UNJUDGED)
        volume = [s * o + o * (o + 1) // 2 for s, o in rows]
        moment = [s * o * o + o * (o + 1) * (4 * o - 1) // 6 for s, o in rows]
        self.needs, self.moments = volume, moment
        if not self.affine:
            return [float(o) for o in self.output]
        m = self.cells
        columns = list(zip(self.prompt, self.output, volume, moment, strict=True))
        self.needs = [m * (REQUEST * o + CELL * v + NEW * s) + ROUND * v for s, o, v, _ in columns]
        self.moments = [m * (REQUEST * o * o + CELL * w + NEW * s) + ROUND * w for s, o, _, w in columns]
        return [quotient_below((ROUND + REQUEST) * o + CELL * v + NEW * s, TICK) for s, o, v, _ in columns]

    def machine(self, data: Data) -> Machine:
        """Return the machine of all cells: a request needs its volume, and a part of the time of rounds of affine length.

        Parameters
        ----------
        data
            Data of the certificate: ``grid_exponent``.
        """
        exponent = read_exponent(data, "grid_exponent")
        capacity, unit = self.cells * (TICK if self.affine else 1), TICK if self.affine else 1
        reach = []
        for s, o, v, w in zip(self.prompt, self.output, self.needs, self.moments, strict=True):
            least = ROUND + REQUEST + CELL * (s + 1) if self.affine else 1  # a round with it
            reach.append(quotient_below(least * (2 * o * v - w), unit * v))
        release, work = floors(self.release, self.unit, exponent), floors(self.needs, 1, exponent)
        return machine_on_grid(release, work, capacity, exponent, {}, reach=reach)
