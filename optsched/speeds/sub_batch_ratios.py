"""Tables of interference by model and sub-batch: kinds ``MODEL@SAMPLES``, chosen for the jobs of an instance.

A small sub-batch uses less of a GPU, so its slow-downs differ from those of a large one. A table may therefore hold a model
several times, with the samples of its sub-batch behind an @. The engine has one ratio a pair of models. `for_jobs` chooses
for each model the kind whose sub-batch is nearest, as a factor, to that of most of its jobs.
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
    sizes: dict[str, list[tuple[int, str]]] = {}
    for kind in table.kinds:
        model, at, samples = kind.rpartition(AT)
        if at and samples.isdecimal() and int(samples) > 0:
            sizes.setdefault(model, []).append((int(samples), kind))
    if not sizes:
        return table
    local: dict[str, Counter[int]] = {}
    columns = (instance.table[name].to_list() for name in ("profile", "model", "batch_size", "gpus"))
    for profile, model, batch, gpus in zip(*columns, strict=True):
        if batch is not None:
            local.setdefault(profile if profile in sizes else model, Counter())[math.ceil(batch / gpus)] += 1
    chosen = {}
    for model, known in sizes.items():
        wanted = local[model].most_common(1)[0][0] if model in local else max(known)[0]
        chosen[min(known, key=lambda pair: abs(math.log(pair[0] / wanted)))[1]] = model
    if say is not None:
        say(f"interference: ratios of the sub-batches {', '.join(sorted(chosen))}")
    every = {kind for known in sizes.values() for _, kind in known}
    kept = table.restricted(kind for kind in table.kinds if kind in chosen or kind not in every)
    kinds = tuple(chosen.get(kind, kind) for kind in kept.kinds)
    return Interference(kept.ratio, kinds, kept.ratios, kept.source)
