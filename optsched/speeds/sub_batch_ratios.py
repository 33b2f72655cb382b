"""Tables of interference by model and sub-batch, whose kinds are ``MODEL@SAMPLES``.

A small sub-batch uses less of a GPU than a large one, and its slow-downs differ. The engine has one ratio a pair of models:
for each model, that of the sub-batch nearest, as a factor, to the samples on a GPU of most of its jobs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from optsched.problem.instance import Instance
from optsched.problem.interference import Interference

AT = "@"


def for_jobs(table: Interference, instance: Instance, say: Callable[[str], None] | None = None) -> Interference:
    """Return a table with the models of an instance as kinds; the same table if no kind names a sub-batch.

    Parameters
    ----------
    table
        Slow-downs, of which some kinds are ``MODEL@SAMPLES``.
    instance
        Jobs, whose samples on each GPU choose the kinds; without a batch size, the largest sub-batch is chosen.
    say
        Called with a line that names the choices.
    """
    sizes: dict[str, dict[str, int]] = {}  # of each model: samples of its kinds
    for model, _, samples in (kind.rpartition(AT) for kind in table.kinds if AT in kind):
        if samples.isdecimal() and int(samples) > 0:
            sizes.setdefault(model, {})[f"{model}{AT}{samples}"] = int(samples)
    if not sizes:
        return table
    local: dict[str, Counter[int]] = {model: Counter() for model in sizes}
    columns = (instance.table[name].to_list() for name in ("profile", "model", "batch_size", "gpus"))
    for profile, model, batch, gpus in zip(*columns, strict=True):
        name = profile if profile in sizes else model
        if name in sizes and batch is not None:
            local[name][math.ceil(batch / gpus)] += 1
    chosen = {}
    for model, known in sizes.items():
        wanted = max(local[model] or known.values(), key=local[model].__getitem__ if local[model] else None)
        chosen[min(known, key=lambda kind: abs(math.log(known[kind] / wanted)))] = model
    if say is not None:
        say(f"interference: ratios of the sub-batches {', '.join(sorted(chosen))}")
    others = {kind for known in sizes.values() for kind in known} - chosen.keys()
    kept = table.restricted(kind for kind in table.kinds if kind not in others)
    return Interference(kept.ratio, tuple(chosen.get(kind, kind) for kind in kept.kinds), kept.ratios, kept.source)
