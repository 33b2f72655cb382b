"""Jobs that share GPUs, for verifiers without optsched: how much they slow each other down, and what they pay.

Beside verify_on_clusters.py. At most two jobs are on a GPU, where their memory fits; one of kind a beside one of kind b
takes xi_ab times as long there, and the slowest GPU of a gang rules. Jobs are put into classes of one kind each, which pay
charges 0 <= c <= 1 of a GPU of a type for their whole speed, such that

    c_a / (xi_ab s_a) + c_b / (xi_ba s_b) <= 1

for any two jobs that can be on a GPU together, with sub-batches that take s times as long: none is paid more than it costs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from optsched.check.verify_case import DUAL, UNJUDGED, Data, Few, need, the
else:  # copied
    from verify_case import DUAL, UNJUDGED, Data, Few, need, the

UNIT, ENOUGH = 1 << 30, 1 + Fraction(1, 1 << 29)  # of charges; a little more memory than there is counts as enough
MOST_KINDS, MOST_CLASSES = 1000, 100
Needs = set[tuple[Fraction, Fraction]]  # memory, stretch
Group = tuple[str, float]  # GPU type, memory


class Charges(NamedTuple):
    """Of every job by GPU type: its charge, and the part of its full speed that it has at most beside another job."""

    part: list[dict[str, Fraction]]
    beside: list[dict[str, Fraction]]
    stated: Data


def whole(values: Any, most: int) -> bool:
    """Are these integers from 0 to ``most``?"""
    return all(type(x) is int and 0 <= x <= most for x in values)


class Partners:
    """The kinds of jobs, and xi of one beside another, inf: never there. `stated`: what the digest has of it."""

    def __init__(self, jobs: list[Data], given: Data, few: Few) -> None:
        row = {name: k for k, name in enumerate(given.get("kinds") or [])}
        usual, rows = the(float, given, "ratio", UNJUDGED, 2.0, 1), given.get("ratios") or []
        labels = [(job.get("profile"), job.get("model")) for job in jobs]
        self.kinds = [next((name for name in both if name in row), None) for both in labels]
        known = list(dict.fromkeys(self.kinds))
        few(len(known), MOST_KINDS, "kinds of jobs")

        def slower(one: Any, other: Any) -> float:
            found = usual if None in (one, other) else rows[row[one]][row[other]]
            return math.inf if found is None else float(the(float, {"ratio": found}, "ratio", UNJUDGED, None, 1))

        both = [[(slower(a, b), slower(b, a)) for b in known] for a in known]
        table = [[math.inf if math.inf in pair else pair[0] for pair in pairs] for pairs in both]
        self.slower = {(a, b): table[i][k] for i, a in enumerate(known) for k, b in enumerate(known)}
        self.stated = [usual, self.kinds, table]

    def charges(self, data: Data, needs: list[Needs], runs: list[list[int]], groups: list[Group]) -> Charges:
        """The charges that the data state, after all pairs of classes were tried.

        ``needs``: of every job; ``runs``: the node groups on which it runs; ``groups``: their types, and memory of a GPU.
        """
        class_of, charges, types = (
            the(list, data, "classes", DUAL),
            the(dict, data, "charges", DUAL),
            {t for t, _ in groups},
        )
        size = max((len(row) for row in charges.values() if type(row) is list), default=0)
        legal = charges.keys() == types and len(class_of) == len(needs) and whole(class_of, size - 1)
        legal = legal and all(type(row) is list and len(row) == size and whole(row, UNIT) for row in charges.values())
        need(legal, "data: a class for every job, and charges from 0 to 2^30, one for every class and GPU type", DUAL)
        jobs: dict[int, list[int]] = {}
        for j, c in enumerate(class_of):
            jobs.setdefault(c, []).append(j)
        need(len(jobs) <= max(MOST_CLASSES, len(set(self.kinds))), "data.classes: too many to try all pairs", DUAL)
        need(
            all(len({self.kinds[j] for j in some}) == 1 for some in jobs.values()), "a class mixes kinds of jobs", DUAL
        )
        where = {c: set[int]().union(*(runs[j] for j in some)) for c, some in jobs.items()}
        needed = {c: sorted(set[Any]().union(*(needs[j] for j in some))) for c, some in jobs.items()}
        fastest = {(c, name): Fraction(0) for c in jobs for name in types}
        for a, b in combinations_with_replacement(sorted(jobs), 2):
            one, other = (self.kinds[jobs[c][0]] for c in (a, b))
            x, y, several = self.slower[one, other], self.slower[other, one], a != b or len(jobs[a]) > 1
            largest: dict[str, float] = {}  # the largest of every type where both may be
            for name, memory in (groups[g] for g in where[a] & where[b]) if several and x < math.inf else ():
                largest[name] = max(memory, largest.get(name, 0.0))
            for name, memory in largest.items():
                paid = charges[name][a] / Fraction(x), charges[name][b] / Fraction(y)
                legal = most_paid(needed[a], needed[b], memory, paid) <= UNIT
                need(legal, f"the classes {a} and {b} pay more than all of a GPU on a shared GPU {name}", DUAL)
                for c, its, partners, slowed in ((a, needed[a], needed[b], x), (b, needed[b], needed[a], y)):
                    best = fastest_beside(its, partners, memory) / Fraction(slowed)
                    fastest[c, name] = max(fastest[c, name], best)
        part = [{name: Fraction(row[c], UNIT) for name, row in charges.items()} for c in class_of]
        beside = [{name: fastest[c, name] for name in types} for c in class_of]
        return Charges(part, beside, {"classes": class_of, "charges": charges})


def fits(memory: Fraction, others: list[Any], held: float) -> int:
    """Beside how many of the others, which rise in memory, it fits."""
    left = held if held == math.inf else Fraction(held) * ENOUGH - memory
    return bisect_right(others, left, key=lambda x: x[0])


def most_paid(one: list[Any], other: list[Any], held: float, paid: tuple[Fraction, Fraction]) -> Fraction:
    """What two jobs pay at most, with sub-batches that fit in a GPU together; ``paid``: each with its largest."""
    least, found = list(accumulate((s for _, s in other), min)), Fraction(0)
    for memory, s in one:
        fit = fits(memory, other, held)
        found = max(found, paid[0] / s + paid[1] / least[fit - 1] if fit else found)
    return found


def fastest_beside(one: list[Any], other: list[Any], held: float) -> Fraction:
    """The largest part of its full speed that a job has beside another, if that does not slow it down."""
    return max((1 / s for memory, s in one if fits(memory, other, held)), default=Fraction(0))
