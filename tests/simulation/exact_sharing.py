"""A second simulator of jobs that share GPUs: objects, fractions, the whole state anew at every event. Slow and plain.

It reads an instance, and shares nothing with `optsched.simulation` but the definitions of the reference sheet: rates from
`Interference.slowdown` and `Instance.sub_batches`, policies as section 3 spells them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from optsched.problem.instance import Instance
from optsched.speeds.scaling import iteration_seconds

Gpu = tuple[int, int]


@dataclass
class Running:
    job: int
    gpus: list[Gpu]
    option: int
    begun: Fraction
    left: Fraction  # seconds alone
    partners: list[Running] = field(default_factory=list)


@dataclass
class Rules:
    """`sjf-bsbf` with its switches; ``test`` False: `sjf-ffs`; ``share`` False: nobody shares."""

    test: bool = True
    share: bool = True
    consolidated: bool = False
    joint: bool = False
    saving: bool = False
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
        self.now = Fraction(0)
        self.ended: dict[int, tuple[list[Gpu], int, Fraction, Fraction]] = {}

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
        future = sorted(range(self.instance.n), key=lambda j: (arrival[j], j))
        waiting: list[int] = []
        while future or self.running:
            ends = [self.now + run.left * self.slow(run) for run in self.running]
            t = min([*ends, *(arrival[j] for j in future[:1])])
            for run, slow in [(run, self.slow(run)) for run in self.running]:
                run.left -= (t - self.now) / slow
            self.now = t
            for run in [run for run in self.running if run.left == 0]:
                self.running.remove(run)
                self.ended[run.job] = run.gpus, run.option, run.begun, t
            while future and arrival[future[0]] <= t:
                waiting.append(future.pop(0))
            self.link()
            width = self.instance.gpus if self.rules.width else [1] * self.instance.n
            for j in sorted(waiting, key=lambda j: (self.expected(j, 0) * int(width[j]), j)):
                chosen = self.choose(j)
                if chosen is not None:
                    gpus, option = chosen
                    waiting.remove(j)
                    alone = self.seconds(j, option, len({m for m, _ in gpus}) > 1)
                    self.running.append(Running(j, gpus, option, t, alone))
                    self.link()
        assert not waiting
        return self.ended

    # -- the choice, section 3 -------------------------------------------------------------------------------------------
    def choose(self, j: int) -> tuple[list[Gpu], int] | None:
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
            return free[:n], self.fitting(j, free[:n], 0)
        if not self.rules.share or len(free) + len(open_) < n:
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
        weighed.sort(key=lambda row: (row[1] - row[2] if self.rules.saving else row[1], row[4]))
        taken, option = list(free), 0
        for pays, _, _, sub, _, theirs in weighed:
            if pays and len(taken) < n:
                taken += theirs[: n - len(taken)]
                option = max(option, sub)
        if len(taken) < n:
            return None
        option = self.fitting(j, taken, option)
        if self.rules.joint and not self.joint_gains(j, taken, option):
            return None
        return taken, option

    def weigh(self, j: int, run: Running, theirs: list[Gpu]) -> tuple[bool, Fraction, Fraction, int]:
        xi_a, xi_r = self.xi(j, run.job), self.xi(run.job, j)
        assert xi_a is not None
        assert xi_r is not None
        sequence = run.left + self.expected(j, 0) / 2
        averages = []
        for option in range(self.options(j)):
            if all(self.room(gpu) >= self.need(j, option) for gpu in theirs):
                averages.append((pair(self.expected(j, option), run.left, xi_a, xi_r), option))
        best, option = min(averages)
        return best < sequence, best, sequence, option

    def joint_gains(self, j: int, gpus: list[Gpu], option: int) -> bool:
        partners = list({run.job: run for gpu in gpus for run in self.on(gpu)}.values())
        left = {run.job: run.left for run in partners}
        others = {run.job: self.slow(run) for run in partners}
        a, now, total = self.expected(j, option), Fraction(0), Fraction(0)
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
        suits = [gpu for m, node in enumerate(self.nodes) if self.instance.eligible(j)[m] for gpu in node]
        idle_at = sorted(max([Fraction(0), *(r.left * self.slow(r) for r in self.on(gpu))]) for gpu in suits)
        waits = idle_at[int(self.instance.gpus[j]) - 1] + self.expected(j, 0)
        return total < waits + sum(run.left * self.slow(run) for run in partners)


def pair(e_a: Fraction, e_r: Fraction, xi_a: Fraction, xi_r: Fraction) -> Fraction:
    """Average completion of A and R together, step by step rather than by the closed form."""
    first = min(xi_a * e_a, xi_r * e_r)
    a, r = e_a - first / xi_a, e_r - first / xi_r
    return ((first + a) + (first + r)) / 2
