"""`simulate`: replay an instance under a policy named in text, or a policy of one's own."""

from __future__ import annotations

from typing import cast

from optsched.forking import ForkingPolicy
from optsched.instance import Instance
from optsched.online.specification import Specification, specify
from optsched.policy import OrderedPolicy, Policy
from optsched.simulation.engine import Progress, run_policy
from optsched.simulation.forked import run_forked
from optsched.simulation.run import Run


def simulate(
    instance: Instance,
    policy: str | Policy | OrderedPolicy | ForkingPolicy | Specification,
    placement: str | None = None,
    *,
    progress: Progress | None = None,
) -> Run:
    """Replay ``instance`` under a policy.

    Parameters
    ----------
    policy : ``NAME[:key=value,...][+PLACEMENT[:key=value,...]]``, e.g. ``"fifo:skip=true+consolidated"``, or a policy
        object (see `optsched.policy`; one with ``assign``, which forks jobs, `optsched.forking`: it names its nodes itself).
    placement : the placement where ``policy`` names none; default ``count``, any free GPUs.
    progress : called with (finished jobs, all jobs) now and then.

    Returns
    -------
    Run : ``.schedule``, ``.metrics``, ``.events``, ``.value(objective)``, ``.unfinished``.

    Raises
    ------
    InputError
        For an unknown policy, placement or parameter (with near matches), or jobs whose speed is not known.
    """
    chosen = specify(policy, placement)
    if hasattr(chosen.policy, "assign"):
        return run_forked(instance, cast("ForkingPolicy", chosen.policy), name=chosen.text, progress=progress)
    return run_policy(instance, chosen.policy, chosen.placement, name=chosen.text, progress=progress)
