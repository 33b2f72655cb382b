"""Optima of few requests by trying every start; written apart from the package."""

from __future__ import annotations

import numpy as np

from optsched.classes.kv_cache.problem.requests import request_instance, requests_of
from optsched.problem.instance import Instance


def optimum(instance: Instance, most: float) -> tuple[float, list[int]]:
    """Return the least weighted flow time below ``most``, and its starts: depth first over (request, start)."""
    requests = requests_of(instance)
    arrival, prompt, output = requests.arrival.astype(int).tolist(), requests.prompt.tolist(), requests.output.tolist()
    weight, cells, n = requests.weight.tolist(), requests.cells, requests.n
    horizon = max(arrival) + sum(output)
    used, starts = [0] * (horizon + 1), [0] * n
    alone = [w * o for w, o in zip(weight, output, strict=True)]
    after = [sum(alone[i:]) for i in range(n + 1)]
    best, found = most, list[int]()

    def place(i: int, paid: float) -> None:
        nonlocal best, found
        if i == n:
            best, found = paid, starts.copy()
            return
        for k in range(arrival[i], horizon - output[i] + 1):
            cost = paid + weight[i] * (k + output[i] - arrival[i])
            if cost + after[i + 1] >= best:
                return
            rounds = range(1, output[i] + 1)
            if all(used[k + j] + prompt[i] + j <= cells for j in rounds):
                for j in rounds:
                    used[k + j] += prompt[i] + j
                starts[i] = k
                place(i + 1, cost)
                for j in rounds:
                    used[k + j] -= prompt[i] + j

    place(0, 0.0)
    return best, found


def best_list(instance: Instance) -> float:
    """Return the least flow time of all orders, each request at the earliest boundary at which it fits."""
    from itertools import permutations

    requests, best = requests_of(instance), float("inf")
    prompt, output, arrival = (x.astype(int).tolist() for x in (requests.prompt, requests.output, requests.arrival))
    for order in permutations(range(requests.n)):
        used, total = [0] * (max(arrival) + sum(output) + 1), 0
        for i in order:
            k = arrival[i]
            while any(used[k + j] + prompt[i] + j > requests.cells for j in range(1, output[i] + 1)):
                k += 1
            for j in range(1, output[i] + 1):
                used[k + j] += prompt[i] + j
            total += k + output[i] - arrival[i]
        best = min(best, total)
    return best


def arriving_requests(seed: int) -> Instance:
    """Return four to six requests with one prompt and two or three lengths that arrive in some rounds."""
    rng = np.random.default_rng(seed)
    n, cells, prompt = int(rng.integers(4, 7)), int(rng.integers(5, 9)), int(rng.integers(0, 2))
    lengths = rng.integers(1, min(cells - prompt, 5) + 1, int(rng.integers(2, 4)))
    arrival, output = rng.integers(0, 7, n), rng.choice(lengths, n)
    weight = rng.integers(1, 3, n) if rng.random() < 0.3 else np.ones(n)
    return request_instance(
        [prompt] * n, output, cells, arrival=arrival, weight=weight, objective="total_weighted_flow_time"
    )


def random_requests(seed: int, most: int = 4) -> Instance:
    """Return up to ``most`` small requests, some of them weighted, late, or with prompts that differ."""
    rng = np.random.default_rng(seed)
    n, cells = int(rng.integers(1, most + 1)), int(rng.integers(3, 11))
    prompt = rng.integers(0, min(cells, 4), n) if rng.random() < 0.6 else np.full(n, rng.integers(0, 3))
    output = np.array([rng.integers(1, min(cells - s, 7) + 1) for s in prompt])
    arrival = rng.integers(0, 6, n) if rng.random() < 0.5 else np.zeros(n)
    weight = rng.integers(0, 5, n) if rng.random() < 0.3 else np.ones(n)
    return request_instance(prompt, output, cells, arrival=arrival, weight=weight, objective="total_weighted_flow_time")
