"""Two runs are the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optsched.contract.check import Broken, check
from optsched.contract.subject import Subject

COLUMNS = ("job", "start", "end", "work", "gpu_offset", "gpu_node", "gpu_index")


@check("deterministic", "two runs are the same bit for bit; what is random is drawn from a seed")
def deterministic(subject: Subject) -> Iterator[Broken]:
    """Schedule, number of events and of preemptions."""
    for run in subject.base:
        again = subject.run(run.instance)
        differ = [
            name for name in COLUMNS if not np.array_equal(getattr(run.schedule, name), getattr(again.schedule, name))
        ]
        differ += [] if run.events == again.events else ["events"]
        differ += [] if run.preemptions == again.preemptions else ["preemptions"]
        if differ:
            yield Broken(f"a second run differs in {', '.join(differ)}", (run.instance,))
