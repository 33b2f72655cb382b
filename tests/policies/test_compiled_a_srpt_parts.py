"""Parts of compiled A-SRPT: the tree of changes against sums over all of them, the virtual machine against the plain one."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from optsched.policies import compiled_virtual_machine as compiled
from optsched.policies.usage_profile import Usage, first_above, new_usage, proceed, take, take_back
from optsched.policies.virtual_machine import VirtualMachine


def taken(changes: dict[int, tuple[float, int]], moment: float) -> int:
    return sum(gpus for time, gpus in changes.values() if time <= moment)


def searched(changes: dict[int, tuple[float, int]], now: float, gpus: int) -> float:
    moments = [now, *sorted(time for time, _ in changes.values() if time > now)]
    return next((t for t in moments if taken(changes, t) > gpus), math.inf)


def depth(p: Usage, x: int) -> int:
    node = p.changes[x]
    return 1 + max((depth(p, y) for y in (int(node.left), int(node.right)) if y >= 0), default=0)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_moment_above(seed: int) -> None:
    rng, size, now = random.Random(seed), 40, 0.0
    usage, changes = new_usage(size), dict[int, tuple[float, int]]()
    proceed(usage, now)
    for _ in range(300):
        x = rng.randrange(size)
        if x in changes:
            take_back(usage, x)
            del changes[x]
        else:
            time = now + rng.choice([-1, 0, 1, 1, 2, 5]) * rng.choice([1.0, 0.5, rng.random()])
            changes[x] = (time, rng.randint(0, 4) * (1 if x >= size // 2 else -1))
            take(usage, x, *changes[x])
        if rng.random() < 0.2:
            now += rng.choice([0.0, 0.5, rng.random()])
            proceed(usage, now)
        for gpus in range(-3, 10):
            assert first_above(usage, gpus) == searched(changes, now, gpus)


def test_the_tree_stays_shallow() -> None:
    # times in order of the numbers, the usual case, would make a list of a tree without ranks
    size = 4096
    usage = new_usage(size)
    for x in range(size):
        take(usage, x, float(x), 1 if x == size // 2 else 0)
    assert depth(usage, int(usage.changes[size].left)) < 50
    proceed(usage, size / 2)
    assert first_above(usage, 0) == size / 2
    assert first_above(usage, 1) == math.inf
    assert depth(usage, int(usage.changes[size].left)) < 50


@pytest.mark.parametrize("beta", [1.0, 0.5, 0.3])
def test_the_compiled_virtual_machine_is_the_plain_one(beta: float) -> None:
    rng, n = random.Random(3), 60
    for _ in range(20):
        plain, machine, now = VirtualMachine(beta), compiled.new_machine(n), 0.0
        for job in range(n):
            now += rng.choice([0.0, 1.0, rng.random(), 3.0])
            if rng.random() < 0.3:
                now = max(now, min(plain.next_event(), now + 5))
            reached = []
            while (j := compiled.next_point(machine, now)) >= 0:
                reached.append(j)
            assert reached == plain.advance(now)
            work = rng.choice([1.0, 2.0, rng.random(), np.nextafter(0.0, 1.0)])
            plain.release(job, now, work)
            compiled.release(machine, job, now, work, beta)
            assert compiled.next_event(machine) == plain.next_event()
