"""The decisions of a policy in plain Python, checked and carried out one after the other."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from optsched.classes import class_of_means
from optsched.errors import SimulationError
from optsched.problem.arrays import Floats, Ints, is_whole
from optsched.problem.instance import Instance
from optsched.simulation.entry_points import EntryPoints
from optsched.simulation.neighbourhood import Neighbourhood
from optsched.simulation.placement import Placement
from optsched.simulation.policy import Moves, Start, Stop, Use, Wake
from optsched.simulation.records import COUNT, FREE, POOL, RUNNING, WAITING
from optsched.simulation.run import CONSERVED
from optsched.simulation.view import EngineView
from optsched.simulation.wakes import PlannedStops, Wakes

_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
_PLAIN = {int, float, np.int64, np.float64, type(None)}
LONGEST_SHOWN = 200  # characters of a wrong decision in a message


class Decisions:
    """The executor of a policy's decisions, which checks and carries them out one after the other.

    Parameters
    ----------
    engine
        Compiled functions of the engine, with the state of the run.
    placement
        The rule that chooses GPUs.
    instance
        Jobs and a cluster.
    name
        Name of the policy, for messages.
    beside
        The jobs on every GPU if jobs share GPUs, else None.
    view
        The policy's view.
    uses
        The means that the policy declares.
    copies
        Most copies of a job at once.

    Attributes
    ----------
    wakes
        Times at which the policy wants to be asked.
    planned
        Stops that are planned for later.
    """

    def __init__(
        self,
        engine: EntryPoints,
        placement: Placement,
        instance: Instance,
        name: str,
        beside: Neighbourhood | None,
        view: EngineView,
        uses: frozenset[str] = frozenset(),
        copies: int = 1,
    ) -> None:
        self._placement, self._instance, self._name = placement, instance, name
        self._engine, self._beside, self._view = engine, beside, view
        self._uses, self._copies = uses, copies
        self._names_nodes = bool(uses & {Use.NODES, Use.WIDTHS, Use.COPIES})
        self._kind = class_of_means(uses)
        self._copying = self._kind.copies
        self._moves_at_once = self._names_nodes and not self._kind.widths and beside is None
        self._status, self._free = engine.state.jobs["status"], engine.state.engine["free"]
        self._now, self._out = engine.state.engine["now"], engine.state.out
        self.wakes, self.planned = Wakes(name), PlannedStops(engine, instance.n)

    def apply(self, decisions: Any) -> None:
        """Apply decisions in order.

        Of a list, the stops and the starts that give their GPUs are applied many at a time; a generator may yield such
        lists.

        Parameters
        ----------
        decisions
            An iterable of decisions or of lists of them, as `Policy.decide` returns it.

        Raises
        ------
        SimulationError
            A decision is not possible; the message gives policy, time and reason.
        """
        if not isinstance(decisions, Iterable):
            raise self._wrong(f"decide returned {_shown(decisions)} (expected: an iterable of decisions)")
        # a generator may look at the view between two decisions
        for decision in (decisions,) if isinstance(decisions, list) else decisions:
            self._list(decision) if isinstance(decision, list) else self._one(decision)

    def _list(self, decisions: list[Any]) -> None:
        at = 0
        while at < len(decisions):
            first = decisions[at]
            if type(first) is Start or (type(first) is Stop and first.at is None):
                at += self._many(decisions[at:] if at else decisions)
            if at < len(decisions):
                self._one(decisions[at])
                at += 1

    def _many(self, decisions: list[Any]) -> int:
        # Apply the first of them in one call; the number that was applied.
        if not self._moves_at_once:
            return 0
        jobs, work = list[Any](), list[Any]()
        first, named = [0], list[Any]()
        for decision in decisions:
            kind = type(decision)
            if kind is Start and decision.on and decision.gpus is None and self._copying is (decision.work is not None):
                named.extend(decision.on)
                work.append(decision.work)
            elif kind is Stop and decision.at is None:
                work.append(None)
            else:
                break
            jobs.append(decision.job)
            first.append(len(named))
        if len(jobs) < 2:
            return 0
        try:
            if not _PLAIN.issuperset(map(type, chain(jobs, work, chain.from_iterable(named)))):
                return 0  # numpy makes numbers of truth values and text among numbers
            pairs, moved = np.array(named or [(0, 0)]), np.array(jobs)
            parts = np.array(work, dtype=np.float64)  # of None: nan
        except (ValueError, TypeError):
            return 0
        if pairs.dtype != np.int64 or moved.dtype != np.int64 or pairs.shape[1:] != (2,) or moved.ndim != 1:
            return 0  # one by one, to say what is wrong
        node, count = np.ascontiguousarray(pairs.T)
        return self._move(moved, np.array(first, dtype=np.int64), node, count, parts)

    def _move(self, jobs: Ints, first: Ints, node: Ints, count: Ints, work: Floats) -> int:
        # As many of them as are possible, in order.
        done = self._engine.apply_moves(jobs, first, node, count, work, self._copies)
        self.planned.drop_all(jobs[:done])
        return done

    def _all(self, moves: Moves) -> None:
        if not _is_legal(moves):
            raise self._wrong(
                f"{moves!r} is invalid (expected: arrays of i64 and, of times and work, of f64, as its fields say)"
            )
        work, copying = moves.work, self._copying if moves.start.size else moves.work is not None
        if moves.at is None and self._moves_at_once and copying is (work is not None):
            stops = moves.stop.size
            jobs = np.concatenate([moves.stop, moves.start]) if stops else np.ascontiguousarray(moves.start)
            first, parts = np.zeros(jobs.size + 1, dtype=np.int64), np.full(jobs.size, np.nan)
            first[stops:] = moves.first
            if work is not None:
                parts[stops:] = work
            # compiled code knows of no steps between the elements of an array
            node, count = np.ascontiguousarray(moves.node), np.ascontiguousarray(moves.count)
            done = self._move(jobs, first, node, count, parts)
        elif moves.at is not None and self.planned.add_all(np.array(moves.stop), np.array(moves.at)):
            done = moves.stop.size
        else:
            done = 0
        if done < moves.stop.size + moves.start.size:  # one by one, to say what is wrong
            for decision in [*moves.stops(), *moves.starts()][done:]:
                self._one(decision)

    def _one(self, decision: Any) -> None:
        if isinstance(decision, Wake):
            if Use.ROUNDS in self._uses:
                raise self._wrong(f"{decision!r}: a policy that uses rounds is asked every round")
            now = float(self._now[0])
            if not _is_real(decision.time):
                legal = f"a number of seconds, not above {sys.float_info.max:.3g}"
                raise self._wrong(f"{_shown(decision)} is at no time (expected: {legal})")
            if not decision.time > now:
                raise self._wrong(f"{_shown(decision)} is not later than now (expected: a time later than now)")
            self.wakes.add(float(decision.time))
            return
        if isinstance(decision, Moves):
            self._all(decision)
            return
        if not isinstance(decision, Start | Stop):
            raise self._wrong(f"{_shown(decision)} is not a decision (expected: Start, Stop, Wake, Moves)")
        j = decision.job
        if not (is_whole(j) and 0 <= j < self._instance.n):
            kind, last = type(decision).__name__, self._instance.n - 1
            raise self._wrong(f"{kind}: there is no job {_shown(j)} (expected: 0 to {last})")
        if isinstance(decision, Stop):
            self._stop(j, decision.at)
        else:
            self._start(decision)

    def _stop(self, j: int, at: float | None) -> None:
        job = f"job {self._instance.ids[j]!r}"
        if self._status[j] != RUNNING:
            raise self._wrong(f"{job} is stopped but does not run")
        if at is None:
            self._engine.stop(j)
            self.planned.drop_all([j])
        elif _is_real(at) and self._now[0] < at < math.inf:
            self.planned.add_all(np.array([j], dtype=np.int64), np.array([float(at)]))
        else:
            raise self._wrong(f"{job} is to be stopped at {_shown(at)} (expected: a time later than now)")

    def _start(self, decision: Start) -> None:
        j, job = decision.job, self._instance.ids[decision.job]
        if decision.work is not None:
            self._start_copy(decision, decision.work)
            return
        if self._status[j] != WAITING:
            raise self._wrong(f"job {job!r} is started but does not wait")
        if self._kind.widths and decision.on is not None:
            self._resize(decision, decision.on)
            return
        if decision.gpus is not None or decision.option != 0:
            self._share(decision)
            return
        if decision.on is not None:
            entries = self._named(decision.on, j)
        else:
            fits = self._instance.gpus[j] <= self._free[0]
            entries = self._engine.place(self._placement.place, j) if fits else 0
        if entries == 0:
            gang = self._instance.gpus[j]
            raise self._wrong(f"job {job!r} is started but its {gang} GPUs do not fit (ask view.fits first)")
        if self._beside is not None:  # where GPUs have names
            places = zip(self._out[POOL, :entries].tolist(), self._out[COUNT, :entries].tolist(), strict=True)
            self._beside.choose(j, self._beside.lowest_idle(places), 0)
        self._engine.start(j, entries)

    def _share(self, decision: Start) -> None:
        job = f"job {self._instance.ids[decision.job]!r}"
        if self._beside is None:
            raise self._wrong(f"{job} is put on GPUs by name; a policy that shares GPUs says so (uses = sharing)")
        try:
            self._beside.choose(decision.job, decision.gpus or (), decision.option)
        except ValueError as error:
            raise self._wrong(str(error).replace("%s", job)) from None
        self._engine.start(decision.job, 0, decision.option)

    def _resize(self, decision: Start, on: Any) -> None:
        # On another number of GPUs than it asks for, at the rate that it has there.
        j = decision.job
        entries = self._named(on, j)
        rate = self._view.goodputs.rate(j, tuple(on))
        if rate <= 0 or len({node for node, _ in on}) < len(on):
            raise self._wrong(f"job {self._instance.ids[j]!r} cannot run on {on} (expected: GPUs of every node once)")
        share = self._view.goodputs.share(j, tuple(on))
        if share is not None:
            self._engine.on_network(j, 1.0 / rate, share)
        self._engine.state.jobs["gpus"][j] = sum(count for _, count in on)
        self._engine.start_part(j, entries, math.inf, 1.0 / rate)

    def _start_copy(self, decision: Start, work: float) -> None:
        j, job, on = decision.job, self._instance.ids[decision.job], decision.on
        if not self._copying:
            raise self._wrong(
                f"job {job!r} is to do a part of its work; a policy that forks jobs says so (uses = copies)"
            )
        if self._status[j] not in (WAITING, RUNNING):
            raise self._wrong(f"a copy of job {job!r} is started, which is not active")
        entries = self._named(on, j)
        if not (_is_real(work) and math.isfinite(work) and work > 0 and math.isfinite(self._engine.pace(j))):
            raise self._wrong(f"a copy of job {job!r} has the work {_shown(work)} (expected: > 0, where it can run)")
        known, places = self._engine.state.jobs[j], {node for node, _ in on or ()}
        nodes, planned = {node for node, _ in self._view.held(j)}, self._engine.planned(j)
        if nodes and (known.copies >= self._copies or nodes & places):
            legal = f"at most {self._copies}, on different nodes"
            raise self._wrong(f"job {job!r} has {int(known.copies) + 1} copies (expected: {legal})")
        if planned + work > known.left * (1 + CONSERVED):
            raise self._wrong(f"the copies of job {job!r} are to do more than is left, {known.left:g}")
        self._engine.start_part(j, entries, float(work), 0.0)

    def _named(self, on: Any, j: int) -> int:
        # The GPUs that a policy names, as a placement would have written them down; every one must be free and eligible.
        if not self._names_nodes:  # then the engine may count alike nodes together
            raise self._wrong(f"{on!r}: a policy that names nodes says so (uses = nodes)")
        eligible, free = self._engine.context.eligible[self._instance.job_class[j]], self._engine.state.pools[FREE]
        job = self._instance.ids[j]
        most, total = int(self._engine.state.engine[0].width), 0
        if not (isinstance(on, tuple | list) and 0 < len(on) <= most and all(_is_part(part) for part in on)):
            legal = f"(node, GPUs) for 1 to {most} nodes"
            raise self._wrong(f"{_shown(on)} names no GPUs for job {job!r} (expected: {legal})")
        given: dict[int, int] = {}  # by node
        for k, (node, count) in enumerate(on):
            given[node] = given.get(node, 0) + count
            if not (0 <= node < free.size and count >= 1 and eligible[node] and given[node] <= free[node]):
                where = f"job {job!r} is started on {count} GPUs of node {node}"
                if not (0 <= node < free.size and count >= 1):
                    raise self._wrong(f"{where}: there is no such node, or no GPU is meant")
                if not eligible[node]:
                    raise self._wrong(f"{where}, whose GPUs it may not use")
                raise self._wrong(f"{where}, {given[node]} in all: {free[node]} are free")
            self._out[POOL, k], self._out[COUNT, k] = node, count
            total += count
        if total != self._instance.gpus[j] and not self._kind.widths:
            raise self._wrong(f"job {job!r} is started on {total} GPUs; its gang has {self._instance.gpus[j]}")
        return len(on)

    def _wrong(self, what: str) -> SimulationError:
        return SimulationError(f"policy {self._name} at {float(self._now[0]) + self._instance.zero:.12g} s: {what}")


def _is_legal(moves: Moves) -> bool:
    for array in (moves.stop, moves.start, moves.first, moves.node, moves.count):
        if type(array) is not np.ndarray or array.dtype != _INT64 or array.ndim != 1:
            return False
    first = moves.first
    for numbers, shape in ((moves.at, moves.stop.shape), (moves.work, moves.start.shape)):
        if numbers is not None and not _are_floats(numbers, shape):
            return False
    if first.size != moves.start.size + 1 or moves.node.size != moves.count.size:
        return False
    if first[0] != 0 or first[-1] != moves.node.size:
        return False
    return not moves.start.size or bool((first[1:] >= first[:-1]).all())


def _are_floats(numbers: Any, shape: tuple[int, ...]) -> bool:
    return type(numbers) is np.ndarray and numbers.dtype == _FLOAT64 and numbers.shape == shape


def _is_part(part: Any) -> bool:
    return isinstance(part, tuple | list) and len(part) == 2 and all(map(is_whole, part))


def _is_real(value: Any) -> bool:
    # An int may be larger than any float.
    if isinstance(value, int | np.integer):
        return not isinstance(value, bool) and abs(int(value)) <= sys.float_info.max
    return isinstance(value, float | np.floating)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # lists too deep, an int too long: what a policy decides may be anything
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
