"""Plain batch schedulers for tests: EASY from its definition, the slips of published simulators, FCFS, conservative.

``python batch_schedulers.py SCHEDULER INSTANCE SCHEDULE`` is a program that knows nothing of optsched. Jobs are
(submission, run time, limit, GPUs).
"""

from __future__ import annotations

import json
import sys
from bisect import insort
from collections.abc import Callable, Sequence
from functools import partial

Jobs = Sequence[tuple[float, float, float, int]]
BLOCKS, SKIPS, SHADOW = "blocks", "skips", "shadow"


def scheduled(jobs: Jobs, gpus: int, behind: str = SHADOW, *, shortest: bool = False, slip: str = "") -> list[float]:
    """Starts under EASY (the reference), or with ``behind`` the head blocking, or skipped over; with one slip."""
    order = sorted(range(len(jobs)), key=lambda j: (jobs[j][0], j))
    starts, queue, running, free, come, now = [0.0] * len(jobs), list[int](), list[tuple[float, int]](), gpus, 0, 0.0
    limits: dict[int, float] = {}  # of running jobs: expected end

    def start(j: int) -> int:
        starts[j], limits[j] = now, now + jobs[j][2]
        insort(running, (now + jobs[j][1], j))
        return jobs[j][3]

    while come < len(order) or running:
        now = min([jobs[j][0] for j in order[come : come + 1]] + [end for end, _ in running[:1]])
        while running and running[0][0] <= now:
            ended = running.pop(0)[1]
            free += jobs[ended][3]
            del limits[ended]
        while come < len(order) and jobs[order[come]][0] <= now:
            queue.append(order[come])
            come += 1
        while queue and jobs[queue[0]][3] <= free:
            free -= start(queue.pop(0))
        if not queue or behind == BLOCKS:
            continue
        shadow, extra = _shadow(jobs, limits, now, free, jobs[queue[0]][3], slip) if behind == SHADOW else (1e99, 0)
        for j in sorted(queue[1:], key=lambda j: jobs[j][2]) if shortest else queue[1:]:
            end = now + jobs[j][2]
            in_time = end < shadow if slip == "strict" else end <= shadow
            if jobs[j][3] <= free and (in_time or (jobs[j][3] <= extra and slip != "no spare")):
                queue.remove(j)
                free -= start(j)
                if not in_time and slip != "extra kept":
                    extra -= jobs[j][3]
    return starts


def _shadow(jobs: Jobs, limits: dict[int, float], now: float, free: int, need: int, slip: str) -> tuple[float, int]:
    expected = sorted((end if end > now else now + 1, j) for j, end in limits.items())
    for k, (shadow, j) in enumerate(expected):
        free += jobs[j][3]
        if free >= need:
            if slip != "until enough":
                free += sum(jobs[other][3] for end, other in expected[k + 1 :] if end == shadow)
            return shadow, free - need
    raise AssertionError("the head is wider than the cluster")


def conservative(jobs: Jobs, gpus: int, *, rebuilt: bool = False) -> list[float]:
    """Starts under conservative backfilling, second by second; ``rebuilt``: an early end makes a plan from nothing."""
    starts, reserved, ends = dict[int, float](), dict[int, int](), dict[int, float]()
    now = 0

    def earliest(j: int) -> int:
        held = [(int(starts[k]), int(starts[k] + jobs[k][2]), jobs[k][3]) for k in starts if ends[k] > now]
        held += [(begin, int(begin + jobs[k][2]), jobs[k][3]) for k, begin in reserved.items() if k != j]
        begin = now
        while any(
            sum(q for b, e, q in held if b <= t < e) + jobs[j][3] > gpus for t in range(begin, begin + int(jobs[j][2]))
        ):
            begin += 1
        return begin

    while len(starts) < len(jobs):
        if any(ends[j] == now < starts[j] + jobs[j][2] for j in starts):
            waiting = list(reserved)
            if rebuilt:
                reserved.clear()
            for j in waiting:
                reserved[j] = earliest(j)
        for j, job in enumerate(jobs):
            if job[0] == now:
                reserved[j] = earliest(j)
        for j in [j for j in reserved if reserved[j] <= now]:
            del reserved[j]
            starts[j], ends[j] = now, now + jobs[j][1]
        now += 1
    return [starts[j] for j in range(len(jobs))]


SCHEDULERS: dict[str, Callable[[Jobs, int], list[float]]] = {
    "fcfs": partial(scheduled, behind=BLOCKS),
    "first-fit": partial(scheduled, behind=SKIPS),
    "easy": scheduled,
    "easy-sjbf": partial(scheduled, shortest=True),
    "conservative": conservative,
    "conservative, rebuilt": partial(conservative, rebuilt=True),
    **{f"easy, {slip}": partial(scheduled, slip=slip) for slip in ("strict", "until enough", "extra kept", "no spare")},
}


if __name__ == "__main__":
    with open(sys.argv[2]) as file:
        instance = json.load(file)
    rows = [
        (j.get("arrival", 0), j["duration"], j.get("walltime", j["duration"]), j.get("gpus", 1))
        for j in instance["jobs"]
    ]
    size = sum(group.get("count", 1) * group["gpus"] for group in instance["cluster"]["nodes"])
    made = SCHEDULERS[sys.argv[1]](rows, size)
    with open(sys.argv[3], "w") as file:
        json.dump({"starts": {job["id"]: start for job, start in zip(instance["jobs"], made, strict=True)}}, file)
