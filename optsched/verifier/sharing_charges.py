"""Jobs that share GPUs: how much they slow each other down, and the charges that they pay.

At most two jobs are on a GPU, where their memory fits. A job of kind a takes xi_ab times as long next to one of kind b, and
the slowest GPU of a gang rules. Jobs are put into classes of one kind each, which pay charges 0 <= c <= 1 of a GPU of a type
for their full speed, such that

    c_a / (xi_ab s_a) + c_b / (xi_ba s_b) <= 1

for any two jobs that can be on a GPU together, with sub-batches that take s times as long: the payment for a GPU is at most
its price.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement
from typing import Any, NamedTuple

from .document_fields import Data, read_field, whole
from .refusal import DUAL, UNJUDGED, Few, need
from .scaling_seconds import Needs

UNIT, ENOUGH = 1 << 30, 1 + Fraction(1, 1 << 29)  # of charges; this factor of the memory of a GPU counts as enough
MOST_KINDS, MOST_CLASSES = 1000, 100
Group = tuple[str, float]  # GPU type, memory


class Charges(NamedTuple):
    """By class of jobs and GPU type: the charge, and the largest part of its full speed that a job has next to another.

    ``class_of`` is the class of every job, ``stated`` what certificates state of the charges.
    """

    class_of: list[int]
    part: dict[int, dict[str, Fraction]]
    paired: dict[int, dict[str, Fraction]]
    stated: Data


class Partners:
    """The kinds of jobs, and how many times as long one takes next to another; infinite if they never share a GPU.

    ``stated`` is what the digest has of it.

    Parameters
    ----------
    labels
        Columns ``profile`` and ``model`` of the jobs.
    given
        JSON object of the interference.
    few
        Check of counts.
    """

    def __init__(self, labels: dict[str, list[Any]], given: Data, few: Few) -> None:
        row = {name: k for k, name in enumerate(given.get("kinds") or [])}
        usual, rows = read_field(float, given, "ratio", UNJUDGED, 2.0, 1), given.get("ratios") or []
        self.kinds = [
            profile if profile in row else model if model in row else None
            for profile, model in zip(labels["profile"], labels["model"], strict=True)
        ]
        kinds = list(dict.fromkeys(self.kinds))
        few(len(kinds), MOST_KINDS, "kinds of jobs")

        def slower(one: Any, other: Any) -> float:
            ratio = usual if None in (one, other) else rows[row[one]][row[other]]
            return math.inf if ratio is None else float(read_field(float, {"ratio": ratio}, "ratio", UNJUDGED, None, 1))

        both = [[(slower(a, b), slower(b, a)) for b in kinds] for a in kinds]
        table = [[math.inf if math.inf in pair else pair[0] for pair in pairs] for pairs in both]
        self.slower = {(a, b): table[i][k] for i, a in enumerate(kinds) for k, b in enumerate(kinds)}
        self.stated = [usual, self.kinds, table]

    def charges(
        self, data: Data, alike: list[int], needs: list[Needs], runs: list[list[int]], groups: list[Group]
    ) -> Charges:
        """Return the charges that the data of a certificate state, after all pairs of classes were tried.

        Parameters
        ----------
        data
            Data of the certificate: ``classes``, ``charges``.
        alike
            Row of every job; jobs of a row are alike.
        needs
            Memory and stretch of the sub-batches of every row.
        runs
            Node groups on which the jobs of every row run.
        groups
            GPU type of every node group, and memory of its GPUs.

        Raises
        ------
        Refused
            If two jobs can pay more than a whole GPU on one that they share.
        """
        class_of, charges = read_field(list, data, "classes", DUAL), read_field(dict, data, "charges", DUAL)
        types = {name for name, _ in groups}
        size = max((len(row) for row in charges.values() if type(row) is list), default=0)
        legal = charges.keys() == types and len(class_of) == len(alike) and whole(class_of, size - 1)
        legal = legal and all(type(row) is list and len(row) == size and whole(row, UNIT) for row in charges.values())
        need(legal, "data: a class for every job, and charges from 0 to 2^30, one for every class and GPU type", DUAL)
        members = dict[int, list[tuple[Any, int]]]()  # kind and row of the jobs of every class
        for c, kind, row in zip(class_of, self.kinds, alike, strict=True):
            members.setdefault(c, []).append((kind, row))
        need(len(members) <= max(MOST_CLASSES, len(set(self.kinds))), "data.classes: too many to try all pairs", DUAL)
        kinds = {c: {kind for kind, _ in jobs} for c, jobs in members.items()}
        need(all(len(members_of) == 1 for members_of in kinds.values()), "a class mixes kinds of jobs", DUAL)
        kind_of = {c: next(iter(members_of)) for c, members_of in kinds.items()}
        rows = {c: {row for _, row in jobs} for c, jobs in members.items()}
        where = {c: set[int]().union(*(runs[row] for row in members_of)) for c, members_of in rows.items()}
        needed = {c: sorted(set[Any]().union(*(needs[row] for row in members_of))) for c, members_of in rows.items()}
        fastest = {(c, name): Fraction(0) for c in members for name in types}
        for a, b in combinations_with_replacement(sorted(members), 2):
            x, y = self.slower[kind_of[a], kind_of[b]], self.slower[kind_of[b], kind_of[a]]
            meet = (a != b or len(members[a]) > 1) and x < math.inf
            largest: dict[str, float] = {}  # the largest memory of every type where both may be
            for name, memory in (groups[g] for g in where[a] & where[b]) if meet else ():
                largest[name] = max(memory, largest.get(name, 0.0))
            for name, memory in largest.items():
                paid = charges[name][a] / Fraction(x), charges[name][b] / Fraction(y)
                legal = most_paid(needed[a], needed[b], memory, paid) <= UNIT
                need(legal, f"the classes {a} and {b} pay more than all of a GPU on a shared GPU {name}", DUAL)
                for c, partner, slowed in ((a, b, x), (b, a, y)):
                    best = fastest_paired(needed[c], needed[partner], memory) / Fraction(slowed)
                    fastest[c, name] = max(fastest[c, name], best)
        part = {c: {name: Fraction(row[c], UNIT) for name, row in charges.items()} for c in members}
        paired = {c: {name: fastest[c, name] for name in types} for c in members}
        return Charges(class_of, part, paired, {"classes": class_of, "charges": charges})


def fits(memory: Fraction, others: list[Any], room: float) -> int:
    """Return the number of sub-batches of another job next to which one fits.

    Parameters
    ----------
    memory
        Bytes that the sub-batch needs.
    others
        (bytes, stretch) of the other job's sub-batches, bytes rising.
    room
        Memory of a GPU in bytes.
    """
    left = room if room == math.inf else Fraction(room) * ENOUGH - memory
    return bisect_right(others, left, key=lambda other: other[0])


def most_paid(one: list[Any], other: list[Any], room: float, paid: tuple[Fraction, Fraction]) -> Fraction:
    """Return the most that two jobs pay with sub-batches that fit on a GPU together.

    Parameters
    ----------
    one
        (bytes, stretch) of one job's sub-batches, bytes rising.
    other
        The same of the other job.
    room
        Memory of a GPU in bytes.
    paid
        What each pays with its largest sub-batch.
    """
    least, most = list(accumulate((s for _, s in other), min)), Fraction(0)
    for memory, s in one:
        fit = fits(memory, other, room)
        most = max(most, paid[0] / s + paid[1] / least[fit - 1] if fit else most)
    return most


def fastest_paired(one: list[Any], other: list[Any], room: float) -> Fraction:
    """Return the largest part of its full speed that a job has next to another that does not slow it down.

    Parameters
    ----------
    one
        (bytes, stretch) of its sub-batches, bytes rising.
    other
        The same of the other job.
    room
        Memory of a GPU in bytes.
    """
    return max((1 / s for memory, s in one if fits(memory, other, room)), default=Fraction(0))
