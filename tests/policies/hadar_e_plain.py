"""`hadar-e` written plainly: copies in lists, executions that ended one by one, every node offered to every job."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from optsched.policies.hadar_e import HadarE
from optsched.policies.ties import leading, leading_of
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import Decision, Ended, Start, Stop, View, Wake


class PlainHadarE(HadarE):
    """The two greedy rules, without the plan of rule lp."""

    def begin(self, view: View) -> None:
        """Forget the last run."""
        super().begin(view)
        self._plan = None
        self._present, self._over = set[int](), list[Ended]()  # of the present round

    def decide(self, view: View) -> Iterator[list[Decision] | Decision]:
        """Stop all copies at the beginning of a round, and start those of the round."""
        if not (self._clock.due(view.now) or self._present.isdisjoint(view.active.tolist())):
            self._over += view.ended
            return
        yield [Stop(j) for j in view.running]
        self._collect(self._over + view.ended)
        active, self._over = view.active, []
        copies = list(self._copies(view, active))
        yield copies
        self._present = set(active.tolist())
        if not self._clock.due(view.now) or not copies:  # nothing was left to do, or nothing can run here
            self._clock.stop()
        if copies:
            yield Wake(self._clock.begin(view.now))

    def _copies(self, view: View, active: Ints) -> Iterator[Decision]:
        # The copies of the round that begins.
        groups, left, seconds = self._groups, view.left, self.round - self.overhead
        free, nodes = groups.node_gpus.copy(), groups.node_gpus.size
        hosted = groups.hosts[active].any(axis=1)
        wide = active[~hosted].tolist()
        speed = groups.spread_rates if wide and self.knows_rates else np.ones(groups.hosts.shape)
        for j in wide:
            yield from self._spread(j, view, free, speed[j, groups.node_group], float(left[j]))
        jobs = active[hosted]
        gang = np.array([view.gpus(j) for j in jobs.tolist()], dtype=np.int64)
        weight = np.array([view.weight(j) for j in jobs.tolist()])
        rates = self._estimates.rates[jobs]
        round_ = Assignment(rates, gang, groups.node_group, free, min(self.copies or nodes, nodes))
        if self.rule != "payoff":
            by_work(round_, left[jobs], seconds)
        else:
            by_payoff(round_, left[jobs], weight)
        fill(round_)
        for k, j in enumerate(jobs.tolist()):
            on = round_.on[k]
            targets = split(float(left[j]), rates[k, groups.node_group[on]], seconds)
            for node, target in zip(on, targets.tolist(), strict=True):
                yield Start(j, on=((node, int(gang[k])),), work=target)

    def _spread(self, j: int, view: View, free: Ints, speed: Floats, left: float) -> Iterator[Decision]:
        # One copy over several nodes, as fast as its slowest: the fastest types, few nodes. It gets the whole round.
        on: list[tuple[int, int]] = []
        missing = view.gpus(j)
        may = np.flatnonzero(view.eligible(j) & (free > 0))
        for node in may[np.lexsort((-free[may], -leading(speed[may])))].tolist():
            count = min(missing, int(free[node]))
            on, missing = [*on, (node, count)], missing - count
            if missing == 0:
                for used, taken in on:
                    free[used] -= taken
                yield Start(j, on=tuple(on), work=left)
                return

    def _collect(self, ended: list[Ended]) -> None:
        # Count the copies that did something, and correct what was believed of their speeds.
        copies: Counter[int] = Counter()
        for copy in (copy for copy in ended if copy.work > 0):  # others were stopped before they had loaded anything
            copies[copy.job] += 1
            if len(copy.on) == 1 and copy.seconds > 0:
                group = int(self._groups.node_group[copy.on[0][0]])
                self._estimates.learn(copy.job, group, copy.work / copy.seconds)
        for j, count in copies.items():
            self._most[j] = max(self._most[j], count)
            self._several[j] += count > 1


def split(left: float, rates: Sequence[float] | Floats, seconds: float) -> Floats:
    """Return the targets of the copies of a job, f64[copies].

    A copy does X_h s units. If the whole round would do more than is left, all targets shrink by one factor, so that
    all copies end together.
    """
    targets = np.asarray(rates, dtype=np.float64) * seconds
    total = float(targets.sum())
    return targets * (left / total) if total > left else targets


@dataclass
class Assignment:
    """A round that is being filled.

    ``rates`` f64[J, M] (0: may not run), ``gang`` i64[J], ``node_group`` i64[N], ``free`` i64[N] GPUs (changed here),
    ``copies``: most copies of a job. ``on[j]``: nodes of the copies of job j, in the order in which they were given.
    """

    rates: Floats
    gang: Ints
    node_group: Ints
    free: Ints
    copies: int
    on: list[list[int]] = field(init=False)
    spare: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.on = [[] for _ in range(self.gang.size)]
        self.spare = np.full(self.gang.size, self.copies, dtype=np.int64)

    def give(self, j: int, node: int) -> None:
        """Give a job a copy."""
        self.on[j].append(node)
        self.spare[j] -= 1
        self.free[node] -= self.gang[j]


def by_work(round_: Assignment, left: Floats, seconds: float) -> None:
    """Give each node, the fastest first, to the job with the most planned work left, in seconds of its mean rate.

    A copy takes X_jh ``seconds`` off the plan of its job. Jobs without planned work get copies only when no other job
    can take the node. A node is as fast as the mean over jobs of the rate there relative to the job's mean rate over
    the nodes that can host it.

    """
    r, rates, group = round_, round_.rates, round_.node_group
    count, can = np.bincount(group, minlength=rates.shape[1]), rates > 0
    hosts = np.where(can, count, 0).sum(axis=1)
    mean = np.where(hosts > 0, (rates * count).sum(axis=1), 1.0) / np.maximum(hosts, 1)
    speed = (rates / mean[:, None]).sum(axis=0) / np.maximum(can.sum(axis=0), 1)
    order = np.argsort(-leading(speed)[group], kind="stable")
    table = np.ascontiguousarray(rates)
    jobs, nodes = _given_by_work(order, table, r.gang, group, r.free, r.spare, left, mean, seconds)
    for j, node in zip(jobs.tolist(), nodes.tolist(), strict=True):
        r.on[j].append(node)


def _given_by_work(
    order: Ints,
    rates: Floats,
    gang: Ints,
    node_group: Ints,
    free: Ints,
    spare: Ints,
    left: Floats,
    mean: Floats,
    seconds: float,
) -> tuple[Ints, Ints]:
    # Pairs of job and node, in order; ``free`` and ``spare`` change.
    plan, last, urgency = left.copy(), np.full(gang.size, -1), np.empty(gang.size)
    jobs, nodes, given = np.empty(free.sum(), np.int64), np.empty(free.sum(), np.int64), 0
    for j in range(gang.size):
        urgency[j] = leading_of(plan[j] / mean[j])
    for node in order:
        while True:
            best = -1
            for j in range(gang.size):
                may = spare[j] > 0 and gang[j] <= free[node] and last[j] != node and rates[j, node_group[node]] > 0.0
                if may and (best < 0 or urgency[j] > urgency[best]):
                    best = j
            if best < 0:
                break
            jobs[given], nodes[given] = best, node
            given += 1
            last[best] = node
            spare[best] -= 1
            free[node] -= gang[best]
            plan[best] -= rates[best, node_group[node]] * seconds
            urgency[best] = leading_of(plan[best] / mean[best])
    return jobs[:given], nodes[:given]


def by_payoff(round_: Assignment, left: Floats, weight: Floats) -> None:
    """Give pairs of job and node group by falling payoff slope w_j X_jh / left_j, while nodes are free.

    Greedy for max sum of the slopes: exact where a job may have a copy on every node and a node holds one.

    """
    slope = np.where(round_.rates > 0, weight[:, None] * round_.rates / left[:, None], -1.0)
    members = [np.flatnonzero(round_.node_group == m) for m in range(slope.shape[1])]
    for pair in np.argsort(-leading(slope), axis=None, kind="stable").tolist():
        j, m = divmod(pair, slope.shape[1])
        if slope[j, m] < 0:
            return
        for node in members[m][round_.free[members[m]] >= round_.gang[j]][: round_.spare[j]].tolist():
            round_.give(j, node)


def fill(round_: Assignment) -> None:
    """Move copies along augmenting paths until no further copy fits: a maximum b-matching.

    That is done only where all gangs are alike (a node is then a number of slots); otherwise packing is another
    problem, and nothing is done. With it the number of copies is the largest possible one, which without restrictions
    is min(n, x J) on n one-slot nodes.

    """
    gangs = set(round_.gang.tolist())
    if len(gangs) != 1:
        return
    gang = gangs.pop()
    hosted = [np.flatnonzero(column > 0).tolist() for column in round_.rates.T]
    barren: set[int] = set()  # jobs from which no path led to a spare copy; they stay so until a copy moves
    for node in np.flatnonzero(round_.free >= gang).tolist():
        while round_.free[node] >= gang and (round_.spare > 0).any():
            path = _path(round_, node, hosted, barren)
            if path is None:
                break
            for j, to, left_behind in path:  # from the job that has a copy to spare back to the idle node
                round_.give(j, to)
                if left_behind is not None:
                    round_.on[j].remove(left_behind)
                    round_.spare[j] += 1
                    round_.free[left_behind] += gang
            barren.clear()


def _path(
    round_: Assignment, root: int, hosted: list[list[int]], barren: set[int]
) -> list[tuple[int, int, int | None]] | None:
    """Moves (job, to, from) that give ``root`` a copy; the first comes from nowhere. None: there is no path.

    ``hosted``: the jobs that every group of nodes may run. Breadth first, so no path is longer than it must be.
    """
    wanted_by: dict[int, int] = {}  # job -> the node that it would go to
    freed_by: dict[int, int] = {}  # node -> the job that would leave it
    queue, group = deque([root]), round_.node_group
    seen = set(barren)
    while queue:
        node = queue.popleft()
        for j in hosted[group[node]]:
            if j in seen or node in round_.on[j]:
                continue
            seen.add(j)
            wanted_by[j] = node
            if round_.spare[j] > 0:
                moves: list[tuple[int, int, int | None]] = [(j, node, None)]
                while (left := moves[-1][1]) != root:
                    moves.append((freed_by[left], wanted_by[freed_by[left]], left))
                return moves
            for other in round_.on[j]:
                if other not in freed_by and other != root:
                    freed_by[other] = j
                    queue.append(other)
    barren |= seen
    return None
