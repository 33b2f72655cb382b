"""Graph whose paths contain all better schedules, for machines that may wait; jobs are counted in it; compiled.

A node is a job with its start, an edge leads to the next job; node 0 is the source, the last one the sink. Nodes are in
order of their starts. The edges that leave node v are ``first[v]`` to ``first[v + 1]`` (i64[nodes + 1]), and ``head``
i32[edges] is the node to which an edge leads; ``into`` i64[nodes + 1] and ``entering`` i32[edges] are the edges that enter
a node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.sequence_arcs import Arcs, next_arcs, share_between
from optsched.solvers.sequence_pairs import PairPaths
from optsched.solvers.sequence_paths import NOTHING, Jobs, cost_of, may_follow, nearest


class Graph(NamedTuple):
    """Nodes and edges: ``job`` and ``start`` i32[nodes], -1 at source and sink; edges as in the module's docstring."""

    job: Any
    start: Any
    first: Ints
    head: Any
    into: Ints
    entering: Any


@njit(interpreted=False)
def _edges_of_pairs(
    jobs: Jobs, u: Floats, arcs: Arcs, ends: Bools, best: Floats, rest: Floats, cutoff: float, graph: Graph
) -> int:
    """Find the edges on paths of value <= cutoff (without sum u) by the rule of pairs; node v is arc v - 1.

    If ``head`` is too small the edges are only counted.
    """
    count, sink, after = 0, graph.job.size - 1, np.empty(jobs.length.size, dtype=np.int64)
    for v in range(sink):
        graph.first[v] = count
        i, a = graph.job[v], graph.start[v]
        g = arcs.target[v - 1] if v else 0
        here = best[v - 1] if v else 0.0
        for q in range(next_arcs(arcs, g, after)):
            k = after[q]
            j, s = arcs.job[k], arcs.time[arcs.origin[k]]
            if v and (i == j or not may_follow(i, a, j, s, jobs)):
                continue
            if here + cost_of(j, s, jobs) - u[j] + rest[k] <= cutoff:
                if count < graph.head.size:
                    graph.head[count] = k + 1
                count += 1
        if v and ends[g] and here <= cutoff:
            if count < graph.head.size:
                graph.head[count] = sink
            count += 1
    graph.first[sink], graph.first[sink + 1] = count, count
    return count


@njit(interpreted=False)
def _enter(graph: Graph) -> None:
    """Compute the edges that enter each node, from those that leave it."""
    head, into, nodes = graph.head, graph.into, graph.job.size
    into[:] = 0
    for e in range(head.size):
        into[head[e] + 1] += 1
    for v in range(nodes):
        into[v + 1] += into[v]
    place = into[:-1].copy()
    for e in range(head.size):
        graph.entering[place[head[e]]] = e
        place[head[e]] += 1


@njit(forceinline=True)
def _triple(h: int, a: int, i: int, b: int, j: int, s: int, jobs: Jobs) -> bool:
    """Return whether j at s may follow i at b and h at a.

    It may if no other sequence of the three is cheaper, or equally cheap and earlier in order.
    """
    if h == j or jobs.before[j, h]:
        return False
    if b != a + jobs.length[h] or s != b + jobs.length[i]:
        return True
    least = cost_of(h, a, jobs) + cost_of(i, b, jobs) + cost_of(j, s, jobs)
    if jobs.release[i] <= a and jobs.release[j] <= a + jobs.length[i]:
        other = (
            cost_of(i, a, jobs)
            + cost_of(j, a + jobs.length[i], jobs)
            + cost_of(h, a + jobs.length[i] + jobs.length[j], jobs)
        )
        if other < least or (other == least and i < h):
            return False
    if jobs.release[j] <= a:
        c = a + jobs.length[j]
        other = cost_of(j, a, jobs) + cost_of(h, c, jobs) + cost_of(i, c + jobs.length[h], jobs)
        if other < least or (other == least and j < h):
            return False
        if jobs.release[i] <= c:
            other = cost_of(j, a, jobs) + cost_of(i, c, jobs) + cost_of(h, c + jobs.length[i], jobs)
            if other < least or (other == least and j < h):
                return False
    return True


@njit(interpreted=False)
def _forward(
    jobs: Jobs, u: Floats, graph: Graph, best: Floats, before: Any, visits: Floats, starts: Ints
) -> float:  # fmt: skip
    """Compute best[edge], the cheapest path from the source over it; return the cheapest value to the sink.

    Paths obey the rules of two and of three.

    ``visits`` f64[n] of the cheapest path to the sink, ``starts`` i64[n] the last start of each job on it.
    """
    sink = graph.job.size - 1
    widest = 1
    for v in range(sink + 1):
        widest = max(widest, graph.into[v + 1] - graph.into[v])
    rank, tail = np.empty(widest, dtype=np.int64), np.empty(graph.head.size, dtype=np.int32)
    for v in range(sink):
        i, b = graph.job[v], graph.start[v]
        count, known = 0, 0
        for k in range(graph.into[v], graph.into[v + 1]):
            if best[graph.entering[k]] < NOTHING:
                rank[count] = graph.entering[k]
                count += 1
        for e in range(graph.first[v], graph.first[v + 1]):
            w = graph.head[e]
            tail[e] = v
            price = 0.0 if w == sink else cost_of(graph.job[w], graph.start[w], jobs) - u[graph.job[w]]
            if v == 0:
                best[e], before[e] = price, -1
                continue
            best[e] = NOTHING
            for k in range(count):
                if k == known:
                    nearest(rank, known, count, best)
                    known += 1
                f = rank[k]
                h = tail[f]
                if (
                    h == 0
                    or w == sink
                    or _triple(graph.job[h], graph.start[h], i, b, graph.job[w], graph.start[w], jobs)
                ):
                    best[e] = best[f] + price
                    before[e] = f
                    break
    value, last = NOTHING, -1
    for k in range(graph.into[sink], graph.into[sink + 1]):
        if best[graph.entering[k]] < value:
            value, last = best[graph.entering[k]], graph.entering[k]
    visits[:] = 0
    starts[:] = -1
    while last >= 0:
        v = tail[last]
        if v > 0:
            visits[graph.job[v]] += 1
            starts[graph.job[v]] = max(starts[graph.job[v]], graph.start[v])
        last = before[last]
    return value


@njit(interpreted=False)
def _backward(
    jobs: Jobs, u: Floats, graph: Graph, rest: Floats
) -> None:  # fmt: skip
    """Compute rest[edge], the cheapest continuation to the sink after the edge's head."""
    sink = graph.job.size - 1
    widest = 1
    for v in range(sink + 1):
        widest = max(widest, graph.first[v + 1] - graph.first[v])
    rank, value, tail = np.empty(widest, dtype=np.int64), np.empty(widest), np.empty(graph.head.size, dtype=np.int32)
    for v in range(sink):
        tail[graph.first[v] : graph.first[v + 1]] = v
    for k in range(graph.into[sink], graph.into[sink + 1]):
        rest[graph.entering[k]] = 0.0
    for v in range(sink - 1, 0, -1):
        i, b, begin = graph.job[v], graph.start[v], graph.first[v]
        count, known = 0, 0
        for e in range(begin, graph.first[v + 1]):
            w = graph.head[e]
            value[e - begin] = rest[e] + (
                0.0 if w == sink else cost_of(graph.job[w], graph.start[w], jobs) - u[graph.job[w]]
            )
            if rest[e] < NOTHING:
                rank[count] = e - begin
                count += 1
        for q in range(graph.into[v], graph.into[v + 1]):
            f = graph.entering[q]
            h = tail[f]
            rest[f] = NOTHING
            for k in range(count):
                if k == known:
                    nearest(rank, known, count, value)
                    known += 1
                w = graph.head[begin + rank[k]]
                if (
                    h == 0
                    or w == sink
                    or _triple(graph.job[h], graph.start[h], i, b, graph.job[w], graph.start[w], jobs)
                ):
                    rest[f] = value[rank[k]]
                    break


@njit(interpreted=False)
def _kept(best: Floats, rest: Floats, cutoff: float, graph: Graph) -> Any:
    """Return (job, start, first, head) with only the edges on paths of value <= cutoff, and their nodes."""
    nodes, edges = graph.job.size, 0
    number = np.full(nodes, -1, dtype=np.int32)
    for v in range(nodes - 1):
        for e in range(graph.first[v], graph.first[v + 1]):
            if best[e] + rest[e] <= cutoff:
                edges += 1
                number[v], number[graph.head[e]] = 0, 0
    count = 0
    for v in range(nodes):
        if number[v] == 0 or v == 0 or v == nodes - 1:
            number[v] = count
            count += 1
    jobs, starts = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    firsts, heads = np.zeros(count + 1, dtype=np.int64), np.empty(edges, dtype=np.int32)
    edges = 0
    for v in range(nodes):
        if number[v] < 0:
            continue
        jobs[number[v]], starts[number[v]], firsts[number[v]] = graph.job[v], graph.start[v], edges
        for e in range(graph.first[v], graph.first[v + 1]):
            if best[e] + rest[e] <= cutoff:
                heads[edges] = number[graph.head[e]]
                edges += 1
    firsts[count] = edges
    return jobs, starts, firsts, heads


@njit(interpreted=False)
def _counted(q: int, graph: Graph, before: Bools, earliest: Ints, latest: Ints) -> Any:
    """Return (job, start, first, head) of the paths that visit job q once, with separate nodes before and after its visit.

    Only paths count on which jobs are before and after q as they must, and start as early and as late as they may.
    """
    nodes = graph.job.size
    may = np.ones((nodes, 2), dtype=np.bool_)
    for v in range(1, nodes - 1):
        j = graph.job[v]
        inside = earliest[j] <= graph.start[v] <= latest[j]
        may[v, 0], may[v, 1] = inside and not before[q, j], inside and not before[j, q]
    sink = nodes - 1
    # reach[v, b]: v is on a path on which q has been visited b times, v included
    reach, done = np.zeros((nodes, 2), dtype=np.bool_), np.zeros((nodes, 2), dtype=np.bool_)
    reach[0, 0] = True
    done[sink, 1] = True
    for v in range(sink):
        for e in range(graph.first[v], graph.first[v + 1]):
            w = graph.head[e]
            if graph.job[w] == q:
                reach[w, 1] |= reach[v, 0] and may[w, 1]
            else:
                reach[w, 0] |= reach[v, 0] and may[w, 0]
                reach[w, 1] |= reach[v, 1] and may[w, 1]
    for v in range(sink - 1, -1, -1):
        for e in range(graph.first[v], graph.first[v + 1]):
            w = graph.head[e]
            if graph.job[w] == q:
                done[v, 0] |= done[w, 1]
            else:
                done[v, 0] |= done[w, 0]
                done[v, 1] |= done[w, 1]
    number = np.full((nodes, 2), -1, dtype=np.int32)
    count, edges = 0, 0
    for v in range(nodes):
        for b in range(2):
            if (reach[v, b] and done[v, b]) or (v == 0 and b == 0) or (v == sink and b == 1):
                number[v, b] = count
                count += 1
    for final in range(2):
        if final:
            jobs, starts = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
            firsts, heads = np.zeros(count + 1, dtype=np.int64), np.empty(edges, dtype=np.int32)
        edges = 0
        for v in range(nodes):
            for b in range(2):
                here = number[v, b]
                if here < 0:
                    continue
                if final:
                    jobs[here], starts[here], firsts[here] = graph.job[v], graph.start[v], edges
                for e in range(graph.first[v], graph.first[v + 1]):
                    w = graph.head[e]
                    after = (1 if b == 0 else -1) if graph.job[w] == q else b
                    if after >= 0 and number[w, after] >= 0:
                        if final:
                            heads[edges] = number[w, after]
                        edges += 1
    firsts[count] = edges
    return jobs, starts, firsts, heads


def _graph(job: Any, start: Any, first: Ints, head: Any) -> Graph:
    made = Graph(job, start, first, head, np.empty(first.size, dtype=np.int64), np.empty(head.size, dtype=np.int32))
    _enter(made)
    return made


def graph_of_pairs(paths: PairPaths, u: Floats, cutoff: float, most: int) -> Graph | None:
    """Return the graph of all paths of value <= cutoff (without sum u) by the rule of pairs, or None if it is too large.

    Parameters
    ----------
    paths
        Paths by the rule of pairs, reduced at the same ``u``.
    u
        Multipliers, f64[n].
    cutoff
        Largest value of a path, without sum u.
    most
        Largest number of edges.
    """
    arcs = paths.arcs
    parts = (arcs.job, arcs.time[arcs.origin])
    job, start = (np.concatenate([[-1], part, [-1]]).astype(np.int32) for part in parts)
    first, head = np.zeros(job.size + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
    for _count_then_fill in range(2):
        graph = Graph(job, start, first, head, first, head)
        edges = _edges_of_pairs(paths.jobs, u, arcs, paths.ends, paths.best, paths.rest, cutoff, graph)
        if edges > most:
            return None
        if head.size < edges:
            head = np.empty(edges, dtype=np.int32)
    return _graph(job, start, first, head)


class SequenceGraph:
    """A `Graph` with its cheapest paths under multipliers."""

    def __init__(self, jobs: Jobs, graph: Graph, horizon: int) -> None:
        self.jobs, self.graph, self.horizon = jobs, graph, horizon
        self.visits, self.starts = np.zeros(jobs.length.size), np.zeros(jobs.length.size, dtype=np.int64)
        self._best = np.empty(0)
        self._before = np.empty(0, dtype=np.int32)

    @property
    def size(self) -> int:
        """Number of edges."""
        return int(self.graph.head.size)

    def cheapest(self, u: Floats) -> float:
        """Return the value of the cheapest path without sum u.

        ``visits`` f64[n] and (last) ``starts`` i64[n] are then those on it.

        Parameters
        ----------
        u
            Multipliers, f64[n].
        """
        if self._best.size != self.size:
            self._best, self._before = np.empty(self.size), np.empty(self.size, dtype=np.int32)
        return _forward(self.jobs, u, self.graph, self._best, self._before, self.visits, self.starts)

    def reduce(self, u: Floats, cutoff: float) -> None:
        """Remove edges that are on no path of value <= cutoff; call `cheapest` at the same u before.

        Parameters
        ----------
        u
            Multipliers, f64[n].
        cutoff
            Largest value of a path, without sum u.
        """
        rest = np.empty(self.size)
        _backward(self.jobs, u, self.graph, rest)
        self.graph = _graph(*_kept(self._best, rest, cutoff, self.graph))

    def count(self, job: int, first: Ints, last: Ints) -> None:
        """Remove paths that do not visit the job exactly once: its visits become part of the state.

        Parameters
        ----------
        job
            Number of the job.
        first
            Earliest start of every job, i64[n].
        last
            Latest start of every job, i64[n].
        """
        self.graph = _graph(*_counted(job, self.graph, self.jobs.before, first, last))

    def doubled(self) -> Floats:
        """Return for each job the share of nodes that a count of it may double, f64[n].

        These are the nodes between its first and last starts.
        """
        return share_between(self.graph.job[1:-1], self.graph.start[1:-1], self.jobs.length)

    def alive(self) -> Bools:
        """Return the starts that are on some path, bool[n, H + 1]."""
        alive = np.zeros((self.jobs.length.size, self.horizon + 1), dtype=bool)
        alive[self.graph.job[1:-1], self.graph.start[1:-1]] = True
        return alive
