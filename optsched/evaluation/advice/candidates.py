"""Candidates: the policies and placements that `advise` compares, by what the log says of its jobs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from optsched.errors import InputError
from optsched.policies.simulate import PolicyLike, Specification, names_a_class, names_nodes, specify
from optsched.problem.instance import Instance
from optsched.registry import parameters_of

RESTART = 60.0  # seconds that a job that was stopped needs to resume, if nobody states another number
PREDICTOR = "shrinkage"
BASE = "fifo"  # the first row where the log does not say what ran


def candidates(
    instance: Instance,
    policies: Iterable[PolicyLike] = (),
    placements: Iterable[str] = (),
    restart: float = RESTART,
    *,
    only: bool = False,
) -> list[Specification]:
    """Return the candidates: policies with their placements, the first one as the base of all differences.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    policies
        Further policies.
    placements
        Placements of policies whose text names none. Default: `default_placements`.
    restart
        Seconds that a restart costs, for policies that stop jobs and do not state it.
    only
        True to leave out `default_policies`.

    Raises
    ------
    InputError
        Unknown names, or ``only`` without a policy.
    """
    added = list(policies)
    if only and not added:
        raise InputError("no policy is named", field="only", legal="at least one -p NAME")
    places = list(placements) or default_placements(instance)
    specifications: dict[str, Specification] = {}
    for policy in [*([] if only else default_policies(instance)), *added]:
        written = with_restart(policy, restart) if isinstance(policy, str) else policy
        for specification in _placed(written, places):
            specifications.setdefault(specification.text, specification)
    return list(specifications.values())


def default_policies(instance: Instance) -> list[str]:
    """Return the policies that are compared if the user names none.

    Backfilling reads users' limits; without any in the log it knows durations, to show what limits would be worth.
    Predictions need names of users, groups or models.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    table = instance.table
    believed = "" if table["walltime"].null_count() < table.height else ":walltime=exact"
    policies = [BASE, "fifo:skip=true", "tiresias"]
    policies += [f"{name}{believed}" for name in ("easy", "easy-sjbf", "conservative")]
    if any(table[name].drop_nulls().n_unique() > 1 for name in ("user", "group", "model")):
        policies.append(f"wcs-duration:predictor={PREDICTOR}")
    return [*policies, "sjf", "srtf"]


def default_placements(instance: Instance) -> list[str]:
    """Return ``count``, and ``consolidated`` if a gang can be spread over nodes of several GPUs.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    cluster = instance.cluster
    spread = cluster.node_count > 1 and int(cluster.node_gpus.max()) > 1 and bool((instance.gpus > 1).any())
    return ["count", *["consolidated"] * spread]


def with_restart(text: str, restart: float) -> str:
    """Return the text of a policy with the cost of a restart, if the policy has one and the text does not state it.

    Parameters
    ----------
    text
        Text of a policy and perhaps a placement.
    restart
        Seconds.
    """
    head, plus, place = text.partition("+")
    if names_a_class(head) or "restart=" in head or "restart" not in parameters_of(type(specify(text).policy)):
        return text
    return f"{head}{',' if ':' in head else ':'}restart={np.format_float_positional(restart, trim='-')}{plus}{place}"


def _placed(policy: PolicyLike, placements: Iterable[str]) -> Iterable[Specification]:
    written = isinstance(policy, Specification) or (isinstance(policy, str) and "+" in policy)
    if written or names_nodes(specify(policy).policy):
        return [specify(policy)]
    return [specify(policy, placement) for placement in placements]
