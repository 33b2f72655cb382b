"""`hadar` written plainly: plans in dictionaries, every round of a plan looked at, every auction held."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optsched.policies.hadar import Hadar
from optsched.policies.hadar_allocation import Lots
from optsched.policies.hadar_auction import Auction
from optsched.policies.hadar_reservations import LONGEST, Plan, Request, Reservations, cheapest, rounds_needed
from optsched.simulation.policy import Decision, View, Wake

Takes = dict[int, np.ndarray]


class PlainReservations(Reservations):
    """The best plan by one pass over all rounds for every speed."""

    def best(self, request: Request, first: int) -> Plan | None:
        """The best plan, if its payoff is positive."""
        assert self.price_of is not None
        seconds, tail, count = self.length - request.restart, max(0, self.used - first), self.capacity.size
        needed = {x: rounds_needed(request.work, x, seconds) for x in request.speeds}
        counts = {x: int(k) for x, k in needed.items() if k <= LONGEST}
        sold = np.zeros((first + tail + max(counts.values(), default=0), count), dtype=np.int64)
        rows = min(len(sold), len(self.sold))
        sold[:rows] = self.sold[:rows]
        if len(sold) > len(self.sold):
            self.sold = sold.copy()
        prices = self.price_of(sold[first:])
        best: tuple[float, float, np.ndarray, np.ndarray, float] = (0.0, 0.0, np.zeros(0), np.zeros(0), 0.0)
        for x, k in counts.items():
            take = np.zeros((tail + k, count), dtype=np.int64)
            cost = np.zeros(tail + k)
            for i in range(tail + k):
                order = np.argsort(prices[i], kind="stable")
                lots = Lots(
                    np.arange(count), self.capacity, self.capacity, np.ones(count, dtype=np.int64), prices[i], order
                )
                cost[i] = cheapest(request.gang, request.alone, request.shared, x, lots, take[i])
            rest = request.restart + request.work / x - (k - 1) * seconds
            heap, total, payoff, last = list[float](), 0.0, -math.inf, -1
            for i in np.flatnonzero(cost < math.inf).tolist():
                if len(heap) < k:
                    total += cost[i]
                elif -cost[i] > heap[0]:
                    total += cost[i] + heapq.heappop(heap)
                else:
                    continue
                heapq.heappush(heap, -cost[i])
                value = request.worth(request.age + self.length * i + rest) - total
                if len(heap) == k and value > payoff:
                    payoff, last = value, i
            if payoff > best[0]:
                chosen = np.sort(np.argsort(cost[: last + 1], kind="stable")[:k])
                best = (payoff, x, chosen, take[chosen], math.fsum(cost[chosen].tolist()))
        if not best[2].size:
            return None
        _, x, chosen, take, price = best
        rest = request.restart + request.work / x - (chosen.size - 1) * seconds
        age = request.age + self.length * float(chosen[-1]) + rest
        return Plan(first + chosen, take, x, age, request.worth(age), request.worth(age) - price)


@dataclass
class PlainHadar(Hadar):
    """The same decisions, job by job."""

    def accelerator(self, jobs: Any) -> Any:
        """There is none."""
        return None

    def begin(self, view: View) -> None:
        """Forget the last run."""
        super().begin(view)
        self._reservations = PlainReservations(self._pools.capacity, self.round)
        self._plans: dict[int, Plan] = {}
        self._due: dict[int, Takes] = defaultdict(dict)

    def _keep(self, j: int, plan: Plan) -> None:
        self._plans[j] = plan
        for number, take in zip(plan.rounds.tolist(), plan.take, strict=True):
            self._due[number][j] = take

    def decide(self, view: View) -> Iterator[Any]:
        """Sell plans, and carry out those that are due."""
        active, clock, jobs = view.active, self._clock, self._arrived
        jobs.meet(view, active.size)
        if not active.size:
            self._late = False
            return
        clock.zero = view.now if math.isnan(clock.zero) else clock.zero
        for j in view.finished:
            for number in self._plans[j].rounds.tolist() if j in self._plans else ():
                self._due.get(number, {}).pop(j, None)
        number = clock.number
        if clock.begins(number) < view.now and (not self._late or clock.begins(number + 1) <= view.now):
            clock.upcoming(view.now)
        for j in view.arrived:
            self._buy(j, clock.number if view.arrival(j) <= clock.begins(clock.number) else clock.number + 1)
        if clock.due(view.now):
            self._late = jobs.about_to_end(view, clock.begins(clock.number))
            if self._late:
                return
            yield self._dealt(view, active.tolist(), self._due.pop(clock.number, {}))
            later = any(takes for number, takes in self._due.items() if number > clock.number)
            self._asleep = not later and jobs.at_best(active)
            clock.begin(view.now)
            if self._asleep:
                return
        if self._asked < clock.number:
            self._asked = clock.number
            yield Wake(clock.begins(clock.number))

    def _dealt(self, view: View, active: list[int], due: Takes) -> list[Decision]:
        due = {j: take for j, take in due.items() if j in active}
        held = {j: view.held(j) for j in view.running}
        places = {j: held[j] for j, take in due.items() if j in held and (self._counts(held[j]) == take).all()}
        kept, free = set(places), self._pools.size.copy()
        for j, take in sorted(due.items(), key=lambda entry: entry[0] not in kept):
            places[j] = places[j] if j in kept else self._found(take, free)
            for node, count in places[j]:
                free[node] -= count
        others = np.array([j for j in active if j not in due], dtype=np.int64)
        if others.size and free.any() and (self.fill or not due):
            bidders = self._arrived.bidders(view, others, self.restart)
            for grant in Auction(self.round).grants(bidders, replace(self._pools, size=free)):
                places[int(others[grant.job])] = grant.on
                kept |= {int(others[grant.job])} if grant.kept else set()
        stopped = [j for j in held if j not in kept]
        started = [(j, where) for j, where in places.items() if j not in kept]
        return self._arrived.moved(stopped, started, view.now, self._clock.begins(self._clock.number))

    def _counts(self, where: Any) -> np.ndarray:
        counts = np.zeros(self._pools.type.size, dtype=np.int64)
        for node, count in where:
            counts[self._pools.pool[node]] += count
        return counts

    def _found(self, take: np.ndarray, free: np.ndarray) -> tuple[tuple[int, int], ...]:
        places: list[tuple[int, int]] = []
        for p in np.flatnonzero(take).tolist():
            nodes, need = np.flatnonzero(self._pools.pool == p).tolist(), int(take[p])
            roomy = [h for h in nodes if free[h] >= need]
            for h in [min(roomy, key=lambda h: (free[h], h))] if roomy else sorted(nodes, key=lambda h: (-free[h], h)):
                count = min(need, int(free[h]))
                places += [(h, count)] if count > 0 else []
                need -= count
        return tuple(places)
