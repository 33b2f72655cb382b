"""Speed of the engine against a bare loop of ``mc-fcfs``: `python -m kv_cache.bare_loop [REQUESTS]`, 100,000 by default.

The bare loop serves one order, stops at the first request that does not fit, and keeps starts only: no predictions, no
throwing out, no log, no other rule.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numba
import numpy as np

import optsched as osd
from optsched.classes.kv_cache.problem.requests import requests_of
from optsched.compiled.function import without_interpreting
from optsched.io.traces.generate import generate


def bare(arrival: Any, prompt: Any, output: Any, cells: int, reserved: Any, start: Any) -> int:
    """Set the starts of requests in their order, and return the number of rounds."""
    t, k, size, running = 0, 0, reserved.size, 0
    ends = np.zeros(size, np.int64)
    while k < arrival.size or running > 0:
        if running == 0 and arrival[k] > t:
            t = arrival[k]
        while k < arrival.size and arrival[k] <= t:
            s, o, fits = prompt[k], output[k], True
            for j in range(1, o + 1):
                if reserved[(t + j) % size] + s + j > cells:
                    fits = False
                    break
            if not fits:
                break
            for j in range(1, o + 1):
                reserved[(t + j) % size] += s + j
            start[k] = t
            ends[(t + o) % size] += 1
            running += 1
            k += 1
        t += 1
        running -= ends[t % size]
        ends[t % size] = reserved[t % size] = 0
    return t


def main(n: int) -> None:
    """Print events (arrivals, starts, ends) a second of both."""
    instance = generate("kv-lognormal", 1, jobs=n)
    requests, compiled = requests_of(instance), numba.njit(bare)

    def timed(loop: Any) -> tuple[float, Any]:
        size = 1 << int(requests.output.max() + 2).bit_length()
        arrays = np.zeros(size, np.int64), np.zeros(n, np.int64)
        began = time.process_time()
        loop(requests.arrival.astype(np.int64), requests.prompt, requests.output, requests.cells, *arrays)
        return 3 * n / (time.process_time() - began), arrays[1]

    with without_interpreting():
        run = min((osd.simulate(instance, "mc-fcfs") for _ in range(3)), key=lambda run: run.seconds)
    timed(compiled)
    speed, start = max((timed(compiled) for _ in range(3)), key=lambda pair: pair[0])
    assert (start + requests.output == run.schedule.completion).all()
    print(
        f"engine {run.events / run.seconds:,.0f}, bare numba {speed:,.0f}, bare Python {timed(bare)[0]:,.0f} events/s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
