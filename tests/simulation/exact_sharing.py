"""A second simulator of jobs that share GPUs: objects, fractions, the whole state anew at every event. Slow and plain.

It reads an instance, and shares nothing with `optsched.simulation` but definitions: rates from
`Interference.slowdown` and `Instance.sub_batches`, policies as their docstrings spell them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from events import State, run as run_events, shared

from optsched.problem.instance import Instance
from optsched.speeds.iteration_times import iteration_seconds

Gpu = tuple[int, int]
SAMPLE = 100  # arrivals that are counted at most


@dataclass
class Running:
    job: int
    gpus: list[Gpu]
    option: int
    left: Fraction  # seconds alone
    partners: list[Running] = field(default_factory=list)


@dataclass
class Rules:
    """`sjf-bsbf` with its switches; ``test`` False: `sjf-ffs`."""

    test: bool = True
    consolidated: bool = True
    joint: bool = True
    by: str = "cost"
    outlook: Fraction = Fraction(1, 2)
    accumulate: bool = True
    width: bool = False


class ExactSharing:
    """One run; `play` gives {job: (gpus, option, begun, ended)}."""

    def __init__(self, instance: Instance, rules: Rules) -> None:
        self.instance, self.rules = instance, rules
        sizes = instance.cluster.node_gpus.tolist()
        self.nodes = [[(m, i) for i in range(size)] for m, size in enumerate(sizes)]
        self.memory = [float(x) for x in instance.cluster.node_memory]
        self.running: list[Running] = []
        self.came: list[int] = []
        self.now = Fraction(0)

    # -- rates -----------------------------------------------------------------------------------------------------------
    def xi(self, a: int, b: int) -> Fraction | None:
        kinds, table = self.instance.kinds, self.instance.interference
        assert table is not None
        one, other = table.slowdown(kinds[a], kinds[b]), table.slowdown(kinds[b], kinds[a])
        return None if max(one, other) == float("inf") else Fraction(one)

    def seconds(self, j: int, option: int, spans: bool) -> Fraction:
        """Alone, in all."""
        if j not in self.instance.jobs_at("scalings"):
            return Fraction(float(self.instance.duration[j]))
        each, gang = self.instance.sub_batches(j)[option], int(self.instance.gpus[j])
        scaling = self.instance.scalings[self.instance.table["profile"][j]]
        iteration = iteration_seconds(scaling, each.size, each.steps, gang, spans)
        return Fraction(float(self.instance.iterations[j])) * Fraction(iteration)

    def expected(self, j: int, option: int) -> Fraction:
        """What a policy counts on: one node, where the gang fits on one."""
        widest = max(len(n) for m, n in enumerate(self.nodes) if self.instance.eligible(j)[m])
        return self.seconds(j, option, int(self.instance.gpus[j]) > widest)

    def need(self, j: int, option: int) -> float:
        options = self.instance.sub_batches(j)
        return options[option].memory if options else float(self.instance.gpu_memory[j])

    def options(self, j: int) -> int:
        return max(len(self.instance.sub_batches(j)), 1) if self.rules.accumulate else 1

    def slow(self, run: Running) -> Fraction:
        return max([Fraction(1), *(self.xi(run.job, other.job) or Fraction(1) for other in run.partners)])

    def on(self, gpu: Gpu) -> list[Running]:
        return [run for run in self.running if gpu in run.gpus]

    def link(self) -> None:
        for run in self.running:
            run.partners = [other for other in self.running if other is not run and set(other.gpus) & set(run.gpus)]

    def room(self, gpu: Gpu) -> float:
        return self.memory[gpu[0]] - sum(self.need(run.job, run.option) for run in self.on(gpu))

    # -- time ------------------------------------------------------------------------------------------------------------
    def play(self) -> dict[int, tuple[list[Gpu], int, Fraction, Fraction]]:
        arrival = [Fraction(float(x)) for x in self.instance.arrival]
        width = self.instance.gpus if self.rules.width else [1] * self.instance.n
        order = [(self.expected(j, 0) * int(width[j]), j) for j in range(self.instance.n)]
        by_arrival = sorted(range(self.instance.n), key=lambda j: (arrival[j], j))

        def choose(j: int, state: State) -> tuple[list[Gpu], int] | None:
            self.now, self.came = state.now, [k for k in by_arrival if arrival[k] <= state.now]
            self.running = [Running(k, *how, state.left[k]) for k, how in state.running.items()]
            self.link()
            return self.choose(j)

        def pace(running: dict[int, tuple[list[Gpu], int]]) -> dict[int, Fraction]:
            return shared(lambda j, k: self.xi(j, k) or Fraction(1))({j: gpus for j, (gpus, _) in running.items()})

        played = run_events(arrival, lambda j, how: self.chosen(j, *how), choose, pace, order.__getitem__)
        return {j: (*how, begun, ended) for j, (how, begun, ended) in enumerate(played)}

    # -- the choice, section 3 -------------------------------------------------------------------------------------------
    def choose(self, j: int) -> tuple[list[Gpu], int] | None:
        found = self.place(j)
        return None if found is not None and self.running and self.holds_back(j) else found

    def place(self, j: int) -> tuple[list[Gpu], int] | None:
        n = int(self.instance.gpus[j])
        jobs = [len({run.job for gpu in node for run in self.on(gpu)}) for node in self.nodes]
        if self.rules.consolidated:
            idle = [sum(not self.on(gpu) for gpu in node) for node in self.nodes]

            def tightest(m: int) -> tuple[int, int, int, int]:
                return (idle[m] < n, idle[m] - n if idle[m] >= n else -idle[m], jobs[m], m)

            for m in sorted(range(len(self.nodes)), key=tightest):
                found = self.choose_on(j, [m])
                if found is not None:
                    return found
        return self.choose_on(j, sorted(range(len(self.nodes)), key=lambda m: (jobs[m], m)))

    def choose_on(self, j: int, nodes: list[int]) -> tuple[list[Gpu], int] | None:
        n, last = int(self.instance.gpus[j]), self.options(j) - 1
        order = [gpu for m in nodes if self.instance.eligible(j)[m] for gpu in self.nodes[m]]
        order = [gpu for gpu in order if self.room(gpu) >= self.need(j, last)]
        free = [gpu for gpu in order if not self.on(gpu)]
        open_ = [gpu for gpu in order if len(self.on(gpu)) == 1 and self.xi(j, self.on(gpu)[0].job) is not None]
        if len(free) >= n:
            option = self.fitting(j, free[:n], 0)
            later = self.wait_for_idle(j)
            waits = self.rules.consolidated and self.rules.joint and len(nodes) > 1 and later > 0
            if waits and self.chosen(j, free[:n], option) > later + self.expected(j, 0):
                return None
            return free[:n], option
        if len(free) + len(open_) < n:
            return None
        if not self.rules.test:
            taken = (free + open_)[:n]
            return taken, self.fitting(j, taken, 0)
        return self.best_partners(j, n, free, open_)

    def fitting(self, j: int, gpus: list[Gpu], least: int) -> int:
        return next(o for o in range(least, self.options(j)) if all(self.room(g) >= self.need(j, o) for g in gpus))

    def best_partners(self, j: int, n: int, free: list[Gpu], open_: list[Gpu]) -> tuple[list[Gpu], int] | None:
        weighed = []
        for run in self.running:
            theirs = [gpu for gpu in open_ if self.on(gpu) == [run]]
            if theirs:
                weighed.append((*self.weigh(j, run, theirs), run.job, theirs))
        key = {"pair": 1, "saving": 2, "cost": 3}[self.rules.by]
        weighed.sort(key=lambda row: (row[key], row[5]))
        taken, option = list(free), 0
        for pays, _, _, _, sub, _, theirs in weighed:
            if pays and len(taken) < n:
                taken += theirs[: n - len(taken)]
                option = max(option, sub)
        if len(taken) < n:
            return None
        option = self.fitting(j, taken, option)
        if self.rules.joint and not self.joint_gains(j, taken, option):
            return None
        return taken, option

    def weigh(self, j: int, run: Running, theirs: list[Gpu]) -> tuple[bool, Fraction, Fraction, Fraction, int]:
        """Does the pair gain; its values by average, by saving and by cost; the sub-batch."""
        xi_a, xi_r = self.xi(j, run.job), self.xi(run.job, j)
        assert xi_a is not None
        assert xi_r is not None
        sequence = run.left + self.expected(j, 0) / 2
        averages = []
        for option in range(self.options(j)):
            if all(self.room(gpu) >= self.need(j, option) for gpu in theirs):
                averages.append((pair(self.expected(j, option), run.left, xi_a, xi_r), option))
        best, option = min(averages)
        gives = min(int(self.instance.gpus[j]), sum(self.on(gpu) == [run] for gpu in run.gpus))
        cost = (2 * best - run.left - self.expected(j, 0)) / gives
        return best < sequence, best, best - sequence, cost, option

    def joint_gains(self, j: int, gpus: list[Gpu], option: int) -> bool:
        partners = list({run.job: run for gpu in gpus for run in self.on(gpu)}.values())
        left = {run.job: run.left for run in partners}
        others = {run.job: self.slow(run) for run in partners}
        a, now, total = self.chosen(j, gpus, option), Fraction(0), self.closing_loss(j, gpus, option)
        while a > 0 or left:
            slow_a = max([Fraction(1), *(self.xi(j, r) or Fraction(1) for r in left)])
            slow = {r: max(others[r], self.xi(r, j) or Fraction(1)) if a > 0 else others[r] for r in left}
            step = min([*(left[r] * slow[r] for r in left), *([a * slow_a] if a > 0 else [])])
            now += step
            if a > 0:
                a -= step / slow_a
                total += now if a == 0 else 0
            left = {r: left[r] - step / slow[r] for r in left}
            total += now * sum(1 for x in left.values() if x == 0)
            left = {r: x for r, x in left.items() if x > 0}
        waits = self.wait_for_idle(j) + self.expected(j, 0)
        return total < waits + sum(run.left * self.slow(run) for run in partners)

    def wait_for_idle(self, j: int) -> Fraction:
        n, suits = (
            int(self.instance.gpus[j]),
            [node for m, node in enumerate(self.nodes) if self.instance.eligible(j)[m]],
        )
        if j not in self.instance.jobs_at("scalings") or n > max(map(len, suits)):
            suits = [[gpu for node in suits for gpu in node]]
        times = [
            sorted(max([Fraction(0), *(r.left * self.slow(r) for r in self.on(gpu))]) for gpu in each) for each in suits
        ]
        return min(each[n - 1] for each in times if len(each) >= n)

    def chosen(self, j: int, gpus: list[Gpu], option: int) -> Fraction:
        """Seconds alone on these GPUs."""
        return self.seconds(j, option, len({m for m, _ in gpus}) > 1)

    # -- those who are yet to come ---------------------------------------------------------------------------------------
    def to_come(self, j: int, seconds: Fraction) -> tuple[list[int], Fraction]:
        """Those like whom more will come, and how many times as many."""
        arrival = {k: Fraction(float(self.instance.arrival[k])) for k in self.came}
        since = max(self.now - seconds, arrival[self.came[0]])
        counted = [k for k in self.came[1:] if arrival[k] > since]
        if len(counted) > SAMPLE:
            since, counted = arrival[counted[-SAMPLE - 1]], counted[-SAMPLE:]
        return [k for k in counted if k != j], seconds / (self.now - since) if self.now > since else Fraction(0)

    def closing_loss(self, j: int, gpus: list[Gpu], option: int) -> Fraction:
        beside = [run for gpu in gpus for run in self.on(gpu)]
        e_a = self.chosen(j, gpus, option) * max([Fraction(1), *(self.xi(j, run.job) or 1 for run in beside)])
        total = Fraction(0)
        for run in beside:
            closed = min(e_a, run.left * (self.xi(run.job, j) or 1))
            like, times = self.to_come(j, closed)
            total += closed / 2 * len(like) * times
        return self.rules.outlook * total / 5 / sum(map(len, self.nodes))

    def holds_back(self, j: int) -> bool:
        e_a = self.expected(j, 0)
        like, times = self.to_come(j, e_a)
        slow = {k: self.xi(k, j) for k in like}
        loss = sum(min(e_a, self.expected(k, 0)) * (min(2, 2 if slow[k] is None else slow[k]) - 1) for k in like)
        share = Fraction(int(self.instance.gpus[j]), sum(map(len, self.nodes)))
        waited = self.now - Fraction(float(self.instance.arrival[j]))
        return self.rules.outlook * loss * times * share > e_a + waited


def pair(e_a: Fraction, e_r: Fraction, xi_a: Fraction, xi_r: Fraction) -> Fraction:
    """Average completion of A and R together, step by step rather than by the closed form."""
    first = min(xi_a * e_a, xi_r * e_r)
    a, r = e_a - first / xi_a, e_r - first / xi_r
    return ((first + a) + (first + r)) / 2
