"""Gavel's rounds once more, written apart from the policy: plain loops over dictionaries, no engine, no devices.

For clusters of one-GPU nodes, where only the type matters. It counts iterations in whole numbers and ends a round when its
last job stops, as the public simulator does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel_allocations import ALLOCATIONS, Setting
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import type_speeds


@dataclass
class Replayed:
    completion: list[float]
    rounds: int
    most_used: dict[int, int]  # GPUs of every type


def replay(instance: Instance, policy: str, *, length: float = 360.0, reset: float = 1920.0) -> Replayed:
    """Completion times under a policy that knows the types' speeds (they are served in the order v100, p100, k80)."""
    speeds = type_speeds(instance)
    assert speeds.one_gpu_nodes
    T, rate, cap = len(speeds.types), speeds.together, speeds.capacity
    rule = ALLOCATIONS.get(policy)(Setting(speeds.types, cap.astype(float)))
    gang, arrival = instance.gpus.tolist(), instance.arrival.tolist()
    left = {j: int(work) for j, work in enumerate(instance.work)}
    coming = sorted(range(instance.n), key=lambda j: (arrival[j], j))
    active: list[int] = []
    received: dict[tuple[int, int], float] = {}
    deficit: dict[tuple[int, int], float] = {}
    share: dict[tuple[int, int], float] = {}
    total = dict.fromkeys(range(T), 0.0)
    now, found, first, changed = 0.0, -math.inf, math.nan, False
    made = Replayed([math.nan] * instance.n, 0, dict.fromkeys(range(T), 0))
    while coming or active:
        if not active and coming and arrival[coming[0]] > now:
            now = arrival[coming[0]]
        while coming and arrival[coming[0]] <= now:
            j = coming.pop(0)
            active.append(j)
            changed = True
            received |= {(j, t): length / 2 for t in range(T)}
            deficit |= {(j, t): 0.0 for t in range(T)}
        early = found == first or not any(share.get((j, t), 0.0) for j in active for t in range(T))
        if changed and (now - found >= reset or early):
            ids = np.array(active)
            elapsed, remaining = now - instance.arrival[ids], np.array([float(left[j]) for j in active])
            X = rule.shares(ActiveJobs(ids, rate[ids], instance.gpus[ids], instance.weight[ids], elapsed, remaining))
            for i, j in enumerate(active):
                for t in range(T):
                    owed = share.get((j, t), 0.0) * (now - found) if math.isfinite(found) else 0.0
                    deficit[j, t] += owed - (received[j, t] - length / 2)
                    received[j, t], share[j, t] = length / 2, float(X[i, t])
            total = dict.fromkeys(range(T), len(active) * length / 2)
            found, changed = now, False
            first = now if math.isnan(first) else first
        runs: dict[int, int] = {}
        for t in range(T):
            urgency = {}
            for j in active:
                x = share.get((j, t), 0.0)
                urgency[j] = (x * total[t] / received[j, t] if x > 0 else 0.0, deficit[j, t], x)
            free = int(cap[t])
            for j in sorted(active, key=lambda j: urgency[j], reverse=True):
                if j not in runs and rate[j, t] > 0 and gang[j] <= free:
                    runs[j], free = t, free - gang[j]
            made.most_used[t] = max(made.most_used[t], int(cap[t]) - free)
        end = now
        for j, t in runs.items():
            steps = min(left[j], math.floor(rate[j, t] * length * (1 + 1e-9)))
            stop = now + steps / rate[j, t]
            left[j] -= steps
            received[j, t] += stop - now
            total[t] += stop - now
            end = max(end, stop)
            if left[j] == 0:
                made.completion[j] = stop
                active.remove(j)
                changed = True
        now, made.rounds = end, made.rounds + 1
    return made
