"""The ways in which `optsched.policies.unified` uses the GPUs of a job: one gang, or copies of the gang on nodes.

**One gang** (`OneGang`), of any number of GPUs if it may be resized, at the rate of its scaling profile.

**Copies** (`Copies`): k g_j GPUs are a gang of g_j on each of k nodes, and the work of the copies adds up,

    v_j(on) = sum over nodes h of X_jh,    v_j(k g_j) <= the k largest X_jh,

X_jh the rate of the gang on node h: concave in k. A copy takes ``restart`` seconds to load, o_h, except the first one
of a job that has never run. Of the work left each copy gets X_jh (T - o_h), with sum_h X_jh (T - o_h) = left, so that
all end at T together. Copies that would load for longer than T are not started. A gang larger than any node has no
copies.
"""

from __future__ import annotations

import numpy as np

from optsched.policies.goodput_allocation import fewest_nodes
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Places
from optsched.simulation.policy import Start, View

EACH = 16  # every number of copies up to this one; more numbers would cost the knapsack more time than they gain


class OneGang:
    """Jobs that run as one gang.

    Parameters
    ----------
    view
        State of the run.
    resize
        Gangs may have other sizes than the job states.
    restart
        Overhead of a change of GPUs, in seconds.
    """

    def __init__(self, view: View, resize: bool, restart: float) -> None:
        self._view, self._resize, self._restart = view, resize, restart

    def sizes(self, j: int) -> tuple[Ints, Floats]:
        """Return the numbers of GPUs that a job may have, and its best rates on them.

        Parameters
        ----------
        j
            Number of the job.

        Returns
        -------
        tuple
            Numbers of GPUs i64[k], ascending; rates f64[k], in units of work a second.
        """
        rate = self._view.goodputs.table(j).max(axis=1)
        gpus = np.flatnonzero(rate)
        gpus = gpus if self._resize else gpus[gpus == self._view.gpus(j)]
        return gpus, rate[gpus]

    def rate(self, j: int, on: Places) -> float:
        """Return the rate of a job on some GPUs, in units of work a second.

        Parameters
        ----------
        j
            Number of the job.
        on
            (node, GPUs) of the job.
        """
        return self._view.goodputs.rate(j, on)

    def nodes(self, j: int, gpus: int, free: Ints) -> Places:
        """Return the best places of a job among the free GPUs; () if too few are free.

        Parameters
        ----------
        j
            Number of the job.
        gpus
            Number of GPUs.
        free
            Free GPUs of every node, i64[N].
        """
        return fewest_nodes(gpus, free)

    def held(self, j: int) -> Places:
        """Return (node, GPUs) that the job was given, while it runs.

        Parameters
        ----------
        j
            Number of the job.
        """
        return self._view.held(j)

    def given(self, j: int) -> int:
        """Return the number of times that the job was given GPUs.

        Parameters
        ----------
        j
            Number of the job.
        """
        return self._view.starts(j)

    def restart(self, j: int) -> float:
        """Return the seconds that a job pays when its GPUs change.

        Parameters
        ----------
        j
            Number of the job.
        """
        return self._view.restart(j, self._restart)

    def begin(self, j: int, on: Places) -> list[Start]:
        """Return the decisions that start a job on some GPUs.

        Parameters
        ----------
        j
            Number of the job.
        on
            (node, GPUs) of the job.
        """
        return [Start(j, on=on)]


class Copies(OneGang):
    """Jobs that run in copies of their gang.

    Parameters
    ----------
    view
        State of the run.
    restart
        Overhead of every copy, in seconds, unless a job states more.
    """

    def __init__(self, view: View, restart: float) -> None:
        super().__init__(view, False, restart)
        self._rates, self._group = view.groups.rates, view.groups.node_group
        self._last: dict[int, Places] = {}
        self._given: dict[int, int] = {}

    def sizes(self, j: int) -> tuple[Ints, Floats]:
        """Return g_j, 2 g_j, ... GPUs, from `EACH` copies on in steps of a quarter, and the sums of the largest rates.

        Parameters
        ----------
        j
            Number of the job.
        """
        on_nodes = self._on_nodes(j)
        rate = np.cumsum(np.sort(on_nodes[on_nodes > 0])[::-1])
        if not rate.size:
            return super().sizes(j)
        copies = list(range(1, min(rate.size, EACH) + 1))
        while copies[-1] < rate.size:
            copies.append(min(copies[-1] * 5 // 4, rate.size))
        return self._view.gpus(j) * np.array(copies), rate[np.array(copies) - 1]

    def rate(self, j: int, on: Places) -> float:
        """Return the sum of the rates of the copies of a job, in units of work a second.

        Parameters
        ----------
        j
            Number of the job.
        on
            (node, GPUs) of the job.
        """
        return float(self._each(j, on).sum()) if self._copied(j, on) else super().rate(j, on)

    def nodes(self, j: int, gpus: int, free: Ints) -> Places:
        """Return a node for each copy: the fastest nodes; ties go to the fewest free GPUs that suffice.

        Parameters
        ----------
        j
            Number of the job.
        gpus
            Number of GPUs, a multiple of the gang.
        free
            Free GPUs of every node, i64[N].
        """
        gang, rate = self._view.gpus(j), self._on_nodes(j)
        fits = np.flatnonzero((free >= gang) & (rate > 0))
        if gpus == gang and not fits.size:
            return super().nodes(j, gpus, free)
        best = fits[np.lexsort((free[fits], -leading(rate[fits])))][: gpus // gang]
        return tuple((node, gang) for node in sorted(best.tolist())) if best.size * gang == gpus else ()

    def held(self, j: int) -> Places:
        """Return (node, GPUs) that the job was given, also those of copies that were not worth loading.

        Parameters
        ----------
        j
            Number of the job.
        """
        return self._last[j] if self._view.held(j) else ()

    def given(self, j: int) -> int:
        """Return the number of times that the job was given nodes; copies do not count separately.

        Parameters
        ----------
        j
            Number of the job.
        """
        return self._given.get(j, 0)

    def restart(self, j: int) -> float:
        """Return the seconds that every copy pays.

        Parameters
        ----------
        j
            Number of the job.
        """
        return max(self._restart, self._view.restart(j, self._restart))

    def begin(self, j: int, on: Places) -> list[Start]:
        """Return the starts of the copies, which share out the work left; none if no work is left.

        Parameters
        ----------
        j
            Number of the job.
        on
            (node, GPUs) of the job.
        """
        left = self._view.remaining(j)
        if not left > 0:
            return []
        first = self.given(j) == 0
        self._last[j], self._given[j] = on, self.given(j) + 1
        if not self._copied(j, on):
            return [Start(j, on=on, work=left)]
        load = np.full(len(on), self.restart(j))
        load[0] *= not first
        parts = split(left, self._each(j, on), load).tolist()
        return [Start(j, on=(place,), work=work) for place, work in zip(on, parts, strict=True) if work]

    def _copied(self, j: int, on: Places) -> bool:
        gang = self._view.gpus(j)
        return all(count == gang for _, count in on)

    def _on_nodes(self, j: int) -> Floats:
        return self._rates[j, self._group]  # X_j; for all jobs at once it would be n N numbers

    def _each(self, j: int, on: Places) -> Floats:
        return self._on_nodes(j)[[node for node, _ in on]]


def split(left: float, rate: Floats, load: Floats) -> Floats:
    """Return the work of copies that end together, f64[k]; 0 for a copy that would load for too long.

    They end at the least T with sum_h rate_h max(0, T - load_h) = left. O(k log k).

    Parameters
    ----------
    left
        Work left, in units of work.
    rate
        Rates of the copies, f64[k].
    load
        Seconds that each copy loads before it works, f64[k].
    """
    order = np.argsort(load, kind="stable")
    end = (left + np.cumsum((rate * load)[order])) / np.cumsum(rate[order])
    work = rate * np.maximum(end.min() - load, 0.0)
    return work * (left / work.sum())
