"""The lists of jobs that wait and run, beside a look at all jobs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from examples import few

from optsched.simulation.entry_points import JobLists
from optsched.simulation.records import DONE, FUTURE, RUNNING, WAITING


@pytest.mark.parametrize("seed", few(range(8), 3))
@pytest.mark.parametrize("asked_after", [0, 5, 10**9])
def test_lists_kept_up_to_date_are_what_a_look_at_all_jobs_finds(seed: int, asked_after: int) -> None:
    rng = random.Random(seed)
    order = np.random.default_rng(seed).permutation(20)
    status = np.full(20, FUTURE)
    lists = JobLists(order, status)
    came = 0
    for step in range(200):
        arrived, finished = [], []
        while came < 20 and rng.random() < 0.2:
            arrived.append(int(order[came]))
            came += 1
        running = [j for j in range(20) if status[j] == RUNNING]
        if running and rng.random() < 0.2:
            finished.append(rng.choice(running))
        status[arrived], status[finished] = WAITING, DONE
        lists.refresh(arrived, finished)
        for j in range(20):
            if status[j] == WAITING and rng.random() < 0.3:
                status[j] = RUNNING
                lists.started(j)
            elif status[j] == RUNNING and rng.random() < 0.2:
                status[j] = WAITING
                lists.stopped(j)
        if step >= asked_after:
            found = {kind: [j for j in order.tolist() if status[j] == kind] for kind in (WAITING, RUNNING)}
            assert lists.waiting == found[WAITING]
            assert lists.running == found[RUNNING]
            assert lists.active.tolist() == [j for j in order.tolist() if status[j] in (WAITING, RUNNING)]


def test_no_jobs() -> None:
    empty = np.zeros(0, dtype=np.int64)
    assert JobLists(empty, empty).waiting == JobLists(empty, empty).active.tolist() == []
