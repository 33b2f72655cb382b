"""Who shares with whom, once and for all: static pairing as a matching.

**Problem**: n jobs, all there at time 0, each needs g GPUs; the GPUs form m sets of g, side by side. A set hosts **one
job or one pair** and nobody else, ever (n <= 2 m). The jobs of a pair run on their set together or one after the other.
`best_pairs` minimises sum C_j, `soonest_pairs` the last completion. Where one set is taken by one job or pair **after
another** (any n), `shortest_turns` minimises the time until all of these turns are over.

**Method**: nodes are jobs, an edge costs what the pair costs on its set: for sum C_j the least of both orders and of sharing
at once (`optsched.speeds.sharing_pair`: no schedule of the pair is better, preemption included), for the length the shorter
of e_j + e_k and sharing at once. ``best_pairs`` adds 2 m - n nodes that stand for nobody, with edges to every job at the
cost of being alone and to each other at none, and takes a perfect matching of least cost. ``soonest_pairs`` looks for the
least length L such that the edges of at most L have a perfect matching. ``shortest_turns`` is the matching of largest total
saving e_j + e_k - length(j, k). Blossom algorithm of networkx on integers, exact for the floats as given.

**Guarantee**: exact for these static problems. They are no bounds for schedules in which partners change: a third job that
follows the shorter one of a pair may do better. **Complexity** O(n^3), O(n^3 log n) for ``soonest_pairs``.
**Reference**: J. Edmonds, Paths, trees, and flowers, Canadian J. Math. 17 (1965), 449-467.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import lcm

import networkx as nx

from optsched.errors import InputError
from optsched.models.shared_jobs import Gang, SharedJobs, on_events, shared_completions
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule
from optsched.speeds.sharing_pair import sharing_pair

Edge = tuple[int, int]
Cost = Callable[["Turn"], Fraction]
NAME = "pair-matching"


@dataclass(frozen=True, slots=True)
class Turn:
    """One or two jobs on a set of GPUs: who starts when, with which option, and ends when (seconds after its begin)."""

    group: tuple[int, ...]
    start: tuple[Fraction, ...]
    end: tuple[Fraction, ...]
    options: tuple[int, ...]

    @property
    def total(self) -> Fraction:
        """Sum of its completions."""
        return sum(self.end, Fraction(0))

    @property
    def length(self) -> Fraction:
        """Its last completion."""
        return max(self.end)


@dataclass(frozen=True)
class Pairing:
    """Every job in one of the ``turns``, ``begin`` of each (seconds after the release); ``value`` is exact."""

    jobs: SharedJobs
    turns: tuple[Turn, ...]
    begin: tuple[Fraction, ...]
    gangs: tuple[Gang, ...]
    value: Fraction

    @property
    def schedule(self) -> SharedSchedule:
        """The schedule of these turns."""
        n, origin = self.jobs.n, max(self.jobs.release, default=0.0)
        start, gangs, options = [0.0] * n, [self.gangs[0]] * n, [0] * n
        for turn, begin, gang in zip(self.turns, self.begin, self.gangs, strict=True):
            for j, s, o in zip(turn.group, turn.start, turn.options, strict=True):
                start[j], gangs[j], options[j] = origin + float(begin + s), gang, o
        start = on_events(self.jobs, start, gangs, options, 1e-12 * max(start, default=0.0))
        end = shared_completions(self.jobs, start, gangs, options)
        return self.jobs.schedule(start, end, gangs, options, NAME)


def best_pairs(instance: Instance) -> Pairing:
    """The pairing of least sum C_j (seconds after the common release), one job or pair a set.

    Raises `InputError` unless all jobs have one release and one gang size g, run equally fast on every set, and are at most
    twice as many as there are sets of g GPUs.
    """
    jobs, sets = _static(instance)
    turns = _turns(jobs, lambda turn: turn.total)
    _two_a_set(jobs, sets)
    chosen = _perfect(jobs.n, 2 * len(sets) - jobs.n, {edge: turn.total for edge, turn in turns.items()})
    found = [turns[edge] for edge in chosen]
    return _side_by_side(jobs, sets, found, sum((turn.total for turn in found), Fraction(0)))


def soonest_pairs(instance: Instance) -> Pairing:
    """The pairing whose last completion is soonest, one job or pair a set. Errors as `best_pairs`."""
    jobs, sets = _static(instance)
    _two_a_set(jobs, sets)
    turns, spare = _turns(jobs, lambda turn: turn.length), 2 * len(sets) - jobs.n
    lengths = sorted({turn.length for turn in turns.values()})

    def within(limit: Fraction) -> list[Edge]:
        return _perfect(jobs.n, spare, {edge: Fraction(0) for edge, turn in turns.items() if turn.length <= limit})

    least = bisect_left(lengths, True, key=lambda limit: bool(within(limit)) or jobs.n == 0)
    chosen = within(lengths[least]) if lengths else []
    return _side_by_side(jobs, sets, [turns[edge] for edge in chosen], lengths[least] if lengths else Fraction(0))


def shortest_turns(instance: Instance) -> Pairing:
    """The shortest sequence of turns of one job or one pair on one set of GPUs. Errors as `best_pairs`, for any n."""
    jobs, sets = _static(instance)
    turns = _turns(jobs, lambda turn: turn.length)
    alone = [turns[j, j].length for j in range(jobs.n)]
    saving = {(j, k): alone[j] + alone[k] - turn.length for (j, k), turn in turns.items() if j != k}
    graph = _graph({edge: worth for edge, worth in saving.items() if worth > 0})
    pairs = [_edge(*ends) for ends in nx.max_weight_matching(graph)]
    single = set(range(jobs.n)) - {j for pair in pairs for j in pair}
    chosen = [turns[edge] for edge in sorted([*pairs, *((j, j) for j in single)])]
    begin = [sum((turn.length for turn in chosen[:k]), Fraction(0)) for k in range(len(chosen) + 1)]
    return Pairing(jobs, tuple(chosen), tuple(begin[:-1]), (sets[0],) * len(chosen), begin[-1])


def _static(instance: Instance) -> tuple[SharedJobs, list[Gang]]:
    """The jobs and the sets of GPUs, if the static problem is one."""
    jobs = SharedJobs.of(instance)
    if len(set(jobs.release)) > 1:
        raise InputError("static pairing is for jobs of one release", field="arrival", value=max(jobs.release))
    if len(set(jobs.gang)) > 1:
        raise InputError("static pairing is for gangs of one size", field="gpus", value=sorted(set(jobs.gang)))
    size = max(jobs.gang, default=1)
    own = [[g for g, v in enumerate(jobs.gpu_node) if v == node] for node in range(len(jobs.node_memory))]
    sets = [tuple(gpus[k : k + size]) for gpus in own for k in range(0, len(gpus) - size + 1, size)]
    sets = sets or [tuple(range(size))]  # no node holds a gang: one set, over several
    usable = all(all(suits) for suits in jobs.suits) and len(set(jobs.node_memory)) == 1
    equal = (len({jobs.seconds(j, own[0], gang) for gang in sets}) == 1 for j, own in enumerate(jobs.options))
    if not (usable and all(equal)):
        spec = instance.cluster.spec
        raise InputError("static pairing is for sets of GPUs that are alike", field="cluster", value=spec)
    return jobs, sets


def _two_a_set(jobs: SharedJobs, sets: list[Gang]) -> None:
    if jobs.n > 2 * len(sets):
        legal = f"at most {2 * len(sets)}, two for each of {len(sets)} sets of {len(sets[0])} GPUs"
        raise InputError("too many jobs for one pair a set", field="n", value=jobs.n, legal=legal)


def _turns(jobs: SharedJobs, cost: Cost) -> dict[Edge, Turn]:
    """The best turn of every pair j < k, and of every job alone, (j, j)."""
    zero = Fraction(0)
    gang = tuple(range(max(jobs.gang, default=0)))
    options = [{o: Fraction(jobs.seconds(j, o, gang)) for o in own} for j, own in enumerate(jobs.options)]
    first = [own[0] for own in jobs.options]
    alone = [options[j][first[j]] for j in range(jobs.n)]
    turns = {(j, j): Turn((j,), (zero,), (alone[j],), (first[j],)) for j in range(jobs.n)}
    for j, k in combinations(range(jobs.n), 2):
        in_turn = [
            Turn((a, b), (zero, alone[a]), (alone[a], alone[a] + alone[b]), (first[a], first[b]))
            for a, b in ((j, k), (k, j))
        ]
        shared = _together(jobs, j, k, options)
        turns[j, k] = min([*in_turn, *shared], key=cost)
    return turns


def _together(jobs: SharedJobs, j: int, k: int, options: list[dict[int, Fraction]]) -> list[Turn]:
    """Both from the start, with every choice of sub-batches that fits."""
    if not jobs.pairs(j, k):
        return []
    xi, zero = (Fraction(jobs.xi[j][k]), Fraction(jobs.xi[k][j])), Fraction(0)
    turns = []
    for (o, e), (p, f) in product(options[j].items(), options[k].items()):
        if jobs.memory(j, o) + jobs.memory(k, p) <= min(jobs.node_memory):
            end = sharing_pair(e, f, *xi).completions()
            turns.append(Turn((j, k), (zero, zero), (Fraction(end[0]), Fraction(end[1])), (o, p)))
    return turns


def _perfect(n: int, spare: int, cost: Mapping[Edge, Fraction]) -> list[Edge]:
    """The perfect matching of least cost of n jobs, at most ``spare`` of them alone, (j, j); empty when there is none."""
    spare = min(spare, n)  # more are never alone
    edges = {edge: value for edge, value in cost.items() if edge[0] != edge[1]}
    edges |= {(j, n + nobody): value for (j, k), value in cost.items() if j == k for nobody in range(spare)}
    edges |= {(n + nobody, n + other): Fraction(0) for nobody, other in combinations(range(spare), 2)}
    most = max(edges.values(), default=Fraction(0))
    found = nx.max_weight_matching(_graph({edge: most - value for edge, value in edges.items()}), maxcardinality=True)
    if 2 * len(found) < n + spare:
        return []
    matched = [_edge(*ends) for ends in found]
    return sorted((j, j if k >= n else k) for j, k in matched if j < n)


def _graph(weights: Mapping[Edge, Fraction]) -> nx.Graph:
    """Weights as integers in a common unit: with them networkx is exact."""
    unit = lcm(1, *(weight.denominator for weight in weights.values()))
    graph = nx.Graph()
    graph.add_weighted_edges_from((j, k, int(weight * unit)) for (j, k), weight in weights.items())
    return graph


def _edge(j: int, k: int) -> Edge:
    return (j, k) if j < k else (k, j)


def _side_by_side(jobs: SharedJobs, sets: list[Gang], turns: list[Turn], value: Fraction) -> Pairing:
    return Pairing(jobs, tuple(turns), (Fraction(0),) * len(turns), tuple(sets[: len(turns)]), value)
