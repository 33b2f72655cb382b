"""Requests under a limit of cells: partial schedules backwards in time, bounded by prices of requests over cache states."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.classes.kv_cache import is_served
from optsched.classes.kv_cache.problem.request_schedule import request_schedule
from optsched.classes.kv_cache.problem.requests import Requests, requests_of
from optsched.classes.kv_cache.solvers.cell_prices import PriceAscent
from optsched.classes.kv_cache.solvers.cell_search import BEYOND, search
from optsched.classes.kv_cache.solvers.cell_states import Types, cell_states
from optsched.classes.kv_cache.solvers.order_search import list_ends
from optsched.models.formulation import WEIGHTED_COMPLETION
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.linear_program import Size
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.outcome import there
from optsched.solvers.solve_state import SolveState

NAME = "cache-states"
MOST = 255  # requests
NARROW, SHALLOW, WIDE = 500, 2_000, 1_000_000  # partial schedules of a layer: of small searches, of samples, of proofs
WIDTHS, WITHIN = (SHALLOW, 4 * SHALLOW, 16 * SHALLOW), 5e-3  # of searches for schedules; gap to which they widen
FEW, FAR, ALL = 12, 30, 160  # steps of ascents: of small searches; of large ones, by subgradients and by levels
SMALL = 40_000  # nodes of a search that needs few prices
MANY, ORDERS = 20, 300_000  # requests from which on orders are tried; their number
STRETCHES = 10  # of rounds, with prices of their own
GAP = 5e-4  # relative to the bound: the first limit of a large search; it doubles
LARGEST = 1 << 26  # cost of a schedule: costs in units of .01 fit 32 bits


def _applies(state: SolveState) -> str | None:
    if not is_served(state.instance):
        return "the jobs are no requests"
    requests = requests_of(state.instance)
    if state.goal.name not in WEIGHTED_COMPLETION:
        return f"it does not minimise {state.goal.name}"
    if requests.affine:
        return "rounds are not of length 1"
    if state.horizon is not None:
        return "it does not support a horizon"
    if requests.n > MOST:
        return f"it is for at most {MOST} requests, there are {requests.n}"
    weight = _weights(state, requests)
    if bool((weight != np.rint(weight)).any()) or weight.min(initial=1) < 1:
        return "weights are not whole numbers >= 1"
    last = float(requests.arrival.max() + requests.output.sum())
    return "times and weights are too large" if float(weight.sum()) * last > LARGEST else None


def _weights(state: SolveState, requests: Requests) -> Floats:
    return requests.weight if "weighted" in state.goal.name else np.ones(requests.n)


class RequestSearch:
    """One search: costs are sums of w C, ``shift`` more than the objective. Without ``prove`` it ends with an interval."""

    def __init__(self, state: SolveState, prove: bool = True) -> None:
        self.prove = prove
        self.state, self.requests = state, requests_of(state.instance)
        self.arrival, self.weight = (
            np.asarray(x, dtype=np.int64) for x in (self.requests.arrival, _weights(state, self.requests))
        )
        flow = "flow" in state.goal.name
        self.shift = int((self.arrival * self.weight).sum()) if flow else 0
        self.partial = 0

    def offer(self, end: Ints) -> int:
        """Offer a schedule, and return its cost.

        Parameters
        ----------
        end
            Completions, i64[n].
        """
        self.state.offer(request_schedule(self.state.instance, end - self.requests.output, NAME))
        return int((end * self.weight).sum())

    def raise_bound(self, bound: int, scale: int) -> None:
        """Take a bound; costs are whole numbers.

        Parameters
        ----------
        bound
            The bound on sum w C, in units of 1 / scale.
        scale
            The scale.
        """
        self.state.raise_bound(Fraction(-(-bound // scale) - self.shift), "solver", up_to_value=True)

    def run(self) -> MethodReport:
        """Search until the proof or the deadline."""
        requests, state = self.requests, self.state
        orders = [np.lexsort((self.arrival, key)) for key in (requests.output, requests.volume, self.arrival)]
        ends = [list_ends(requests, self.weight, order) for order in orders]
        best = int(np.argmin([self.offer(end) for end in ends]))
        end, order = ends[best], orders[best]
        if requests.n >= MANY:
            end = list_ends(requests, self.weight, order, ORDERS, state.deadline.share(0.1))
            self.offer(end)
        types, kinds = Types.of_requests(self.arrival, requests.prompt, requests.output, self.weight)
        states = cell_states(requests.cells, kinds)
        if states is None:
            return MethodReport("cache states", note="the cache has too many states", unproved=True)
        ascent = PriceAscent.begin(states, types, kinds, self.first_prices(types, end), self.value)
        ascent.climb(FEW, self.value, state.deadline.share(0.5))
        if ascent.rest.size > SMALL:
            self.large(ascent)
        else:
            for width in (NARROW, WIDE):
                if not (state.closed or state.late):
                    self.improve(ascent, self.value - 1, width)
        size = Size(int(np.count_nonzero(states.added >= 0)) + states.before.size, states.before.size)
        note = "" if state.closed else "the time or the room for partial schedules came to an end"
        return MethodReport("cache states", size, self.partial, note=note)

    def large(self, ascent: PriceAscent) -> None:
        """Raise the bound by prices, find schedules by narrow searches, and prove with limits that grow from the bound.

        Parameters
        ----------
        ascent
            Prices.
        """
        state, near = self.state, GAP
        ascent.climb(FAR, self.value, state.deadline.share(0.2))
        ascent.refine(ALL, self.value, state.deadline.share(0.3))
        self.raise_bound(ascent.bound, ascent.scale)
        for width in WIDTHS:
            far = self.value * ascent.scale > ascent.bound * (1 + WITHIN)
            if not state.closed and not state.late and (far or width == SHALLOW):
                self.improve(ascent, self.value - 1, width, adapt=True)
        while self.prove and not state.closed and not state.late:
            limit = min(int(ascent.bound * (1 + near)) // ascent.scale, self.value - 1)
            if not self.improve(ascent, limit, WIDE, adapt=True):
                break  # no room for a proof
            near *= 2

    @property
    def value(self) -> int:
        """Cost of the best schedule so far."""
        return int(there(self.state.value)) + self.shift

    def improve(self, ascent: PriceAscent, limit: int, width: int, adapt: bool = False) -> bool:
        """Search for a better schedule, raise the bound, and return whether no partial schedule was left out.

        Parameters
        ----------
        ascent
            Prices.
        limit
            Largest cost of a schedule that is looked for.
        width
            Largest number of partial schedules of a layer.
        adapt
            Search narrowly first, and adapt the prices to partial schedules of that search.
        """
        scale, deadline, moments = ascent.scale, self.state.deadline, tuple[int, ...]()
        if limit * scale < ascent.bound:
            self.raise_bound((limit + 1) * scale, scale)
            return True
        ascent.evaluate(max(limit * scale - ascent.bound, 0))
        if adapt:
            top = ascent.rest.shape[0] - 1
            moments = tuple(int(top * (k + 0.5) / STRETCHES) + 1 for k in range(STRETCHES))
        for each, sampled in ((SHALLOW, moments), (width, ())) if adapt else ((width, ()),):
            found = search(ascent, limit * scale, each, deadline, sampled)
            self.partial += found.partial
            # apart from what was left out, no schedule costs at most the limit, or less than the one that was found
            cost = limit + 1 if found.end is None else self.offer(found.end)
            if found.end is not None or found.finished or found.least < BEYOND:
                self.raise_bound(min(found.least, cost * scale), scale)
            complete = found.finished and found.least == BEYOND
            if complete or self.state.closed or self.state.late:
                break
            limit = min(limit, self.value - 1)
            ascent.adapt(found.samples, limit * scale, deadline)
        return complete

    def first_prices(self, types: Types, end: Ints) -> np.ndarray:
        """Return prices to begin with: what a request costs itself, and those behind it.

        Parameters
        ----------
        types
            Types of requests.
        end
            Completions of a schedule, i64[n].
        """
        requests = self.requests
        busy = float(end.max()) / float(requests.volume.sum())
        behind = np.array([float(self.weight[end >= c].sum()) for c in end.tolist()])
        price = self.weight * end + behind * requests.volume * busy
        return np.bincount(types.of, price) / types.number


add_method(
    NAME,
    _applies,
    lambda state: RequestSearch(state).run(),
    "kv-cache",
    "requests: partial schedules over states of the cache",
)
