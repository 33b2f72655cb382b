"""Where a job may start beside those that run: every choice of GPUs, but of choices that are alike only one.

GPUs of a node with the same jobs on them are alike: exchanging them changes no job's speed, now or later. So are nodes of
one kind (GPUs, memory, type, who may use them) that hold the same jobs in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

from optsched.models.shared_jobs import Gang, SharedJobs

Residents = tuple[tuple[int, ...], ...]  # jobs on every GPU
Cells = list[list[list[int]]]  # of every node, its sets of alike GPUs


class SharedPlaces:
    """The choices in one instance."""

    def __init__(self, jobs: SharedJobs) -> None:
        cluster = jobs.instance.cluster
        self.jobs = jobs
        self.gpus = [[g for g, v in enumerate(jobs.gpu_node) if v == node] for node in range(cluster.node_count)]
        looks = [
            (len(own), jobs.node_memory[v], int(cluster.node_type[v]), tuple(row[v] for row in jobs.suits))
            for v, own in enumerate(self.gpus)
        ]
        self.kind = [looks.index(look) for look in looks]

    def of(self, j: int, on: Residents, option: Sequence[int]) -> Iterator[tuple[int, Gang]]:
        """(option, GPUs) for job ``j`` beside the jobs ``on`` the GPUs, which run with these options."""
        for own in self.jobs.options[j]:
            usable = partial(self._fits, j, own, on=on, option=option)
            for gang in self._gangs(j, on, usable):
                yield own, gang

    def assignments(self) -> Iterator[tuple[Gang, ...]]:
        """GPUs for all jobs at once, whatever the times: of choices that are alike one."""
        return self._assign((), ((),) * len(self.jobs.gpu_node))

    def _assign(self, gangs: tuple[Gang, ...], on: Residents) -> Iterator[tuple[Gang, ...]]:
        j = len(gangs)
        if j == self.jobs.n:
            yield gangs
            return
        for gang in self._gangs(j, on, lambda g: self.jobs.suits[j][self.jobs.gpu_node[g]]):
            yield from self._assign((*gangs, gang), joined(on, j, gang))

    def _gangs(self, j: int, on: Residents, usable: Callable[[int], bool]) -> Iterator[Gang]:
        cells = [[cell for cell in cells if usable(cell[0])] for cells in self._alike(on)]
        looks = [(self.kind[v], tuple(sorted(on[g] for g in self.gpus[v]))) for v in range(len(self.gpus))]
        for counts in _counts(self.jobs.gang[j], cells, looks):
            chosen = [
                cell[:count]
                for cells_of, counts_of in zip(cells, counts, strict=True)
                for cell, count in zip(cells_of, counts_of, strict=True)
            ]
            yield tuple(sorted(g for part in chosen for g in part))

    def _alike(self, on: Residents) -> Cells:
        return [
            [list(cell) for _, cell in groupby(sorted(own, key=lambda g: (on[g], g)), key=lambda g: on[g])]
            for own in self.gpus
        ]

    def _fits(self, j: int, own: int, g: int, on: Residents, option: Sequence[int]) -> bool:
        jobs, node = self.jobs, self.jobs.gpu_node[g]
        if not jobs.suits[j][node] or len(on[g]) > 1:
            return False
        taken = sum(jobs.memory(k, option[k]) for k in on[g])
        return taken + jobs.memory(j, own) <= jobs.node_memory[node] and all(jobs.pairs(j, k) for k in on[g])


def joined(on: Residents, j: int, gang: Gang) -> Residents:
    """With ``j`` on its GPUs."""
    chosen = set(gang)
    return tuple((*here, j) if g in chosen else here for g, here in enumerate(on))


def _counts(need: int, cells: Cells, looks: list[tuple[int, Residents]]) -> Iterator[list[tuple[int, ...]]]:
    """How many GPUs of every cell of every node; of nodes that look alike the earlier takes the larger counts."""
    room = [sum(map(len, own)) for own in cells]

    def grow(v: int, left: int, before: list[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
        if v == len(cells):
            if left == 0:
                yield before
            return
        if left > sum(room[v:]):
            return
        for here in range(min(left, room[v]), -1, -1):
            for counts in _split(here, [len(cell) for cell in cells[v]]):
                if all(before[u] >= counts for u in range(v) if looks[u] == looks[v]):
                    yield from grow(v + 1, left - here, [*before, counts])

    return grow(0, need, [])


def _split(total: int, sizes: list[int]) -> Iterator[tuple[int, ...]]:
    if not sizes:
        if total == 0:
            yield ()
        return
    for first in range(min(total, sizes[0]), max(total - sum(sizes[1:]), 0) - 1, -1):
        for rest in _split(total - first, sizes[1:]):
            yield (first, *rest)
