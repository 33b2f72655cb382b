"""A policy and a placement from text: ``NAME[:key=value,...][+PLACEMENT[:key=value,...]]``.

``NAME`` is that of a registered policy, or ``MODULE:CLASS`` of one's own (`optsched.policies.own_policy`).
"""

from __future__ import annotations

from dataclasses import dataclass

from optsched.errors import InputError
from optsched.policies import POLICIES, AnyPolicy
from optsched.policies.own_policy import names_a_class, own_policy
from optsched.policies.placements import PLACEMENTS
from optsched.problem.instance import Instance
from optsched.registry import made, parameters_of
from optsched.simulation.placing import Placement
from optsched.simulation.policy import PLACES, Knowledge, Use, uses_of

DEFAULT_PLACEMENT = "count"  # of a policy that does not name its own


@dataclass(frozen=True)
class Specification:
    """A policy, a placement, and how the pair is written."""

    text: str
    policy: AnyPolicy
    placement: Placement


def specify(spec: str | AnyPolicy | Specification, placement: str | None = None) -> Specification:
    """The policy and placement that ``spec`` names; a policy object takes ``placement``.

    Without a placement: the policy's own ``default_placement``, else ``count``.

    Raises `InputError` with near matches for an unknown policy, placement or parameter, and for an illegal value.
    """
    if isinstance(spec, Specification):
        return spec
    if not isinstance(spec, str):
        _require_policy(spec)
        usual = default_placement(spec)
        place = placement or usual
        name = spec.name if place == usual else f"{spec.name}+{place}"
        return Specification(name, spec, made(PLACEMENTS.get, "placement", place))
    head, plus, tail = spec.partition("+")
    if plus and placement is not None:
        raise InputError("a placement is given twice", field="policy", value=spec)
    policy = _policy_in(head)
    if plus and names_nodes(policy):
        raise InputError("the policy names its nodes itself", field="policy", value=spec, legal=f"{head}, no placement")
    usual = default_placement(policy)
    place = tail if plus else placement or usual
    text = spec.strip() if plus or place == usual or names_nodes(policy) else f"{spec.strip()}+{place}"
    return Specification(text, policy, made(PLACEMENTS.get, "placement", place))


def _policy_in(head: str) -> AnyPolicy:
    if not names_a_class(head) or head.partition(":")[0].strip() in POLICIES:
        return made(POLICIES.get, "policy", head)
    mine: AnyPolicy = own_policy(head)
    _require_policy(mine)
    return mine


METHODS = ("order", "decide", "tasks")  # one of which a policy has


def form_on(policy: AnyPolicy, instance: Instance) -> AnyPolicy:
    """What a policy is on an instance: one with ``form(instance)`` is the policy that this makes; any other, itself."""
    return policy.form(instance) if hasattr(policy, "form") else policy


def on_instance(chosen: Specification, instance: Instance) -> Specification:
    """The same with the policy's form there, which brings its own placement."""
    policy = form_on(chosen.policy, instance)
    if policy is chosen.policy:
        return chosen
    return Specification(chosen.text, policy, made(PLACEMENTS.get, "placement", default_placement(policy)))


def is_policy(thing: object) -> bool:
    """Is it an object with one of the methods by which a policy decides? (A class is none.)"""
    return not isinstance(thing, type) and any(callable(getattr(thing, method, None)) for method in METHODS)


def _require_policy(spec: object) -> None:
    """`InputError`, one line, unless it is a policy with a name and a knowledge that the engine understands."""
    if not is_policy(spec):
        made = isinstance(spec, type) and any(hasattr(spec, method) for method in METHODS)
        methods = "order(jobs), decide(view) or tasks(jobs)"
        legal = f"text, or an object with {methods}"
        if isinstance(spec, type) and made:
            legal = f"an object of it: {spec.__name__}(...)"
        raise InputError("not a policy", field="policy", value=spec, legal=legal)
    name, knowledge = getattr(spec, "name", None), getattr(spec, "knowledge", None)
    kind = type(spec).__name__
    if not isinstance(name, str) or not name.strip():
        where = {} if name is None else {"value": name}
        raise InputError("a policy has a name", field=f"{kind}.name", **where, legal="text, shown in reports")
    known = [each.value for each in Knowledge]
    if knowledge not in known:
        legal = f"one of {', '.join(known)}: what it may ask of jobs that have not completed"
        where = {} if knowledge is None else {"value": knowledge}
        raise InputError("a policy says what it knows", field=f"{kind}.knowledge", **where, legal=legal)


def at_task_level(policy: object) -> bool:
    """Is it (or does the class make) a policy for jobs that have tasks? The others schedule whole jobs."""
    return hasattr(policy, "tasks")


def shares_gpus(policy: object) -> bool:
    """Is it (or does the class make) a policy under which two jobs may be on a GPU? Its instances state interference."""
    return Use.SHARING in uses_of(policy)


def serves(policy: AnyPolicy, instance: Instance) -> bool:
    """Is the policy one for jobs such as these? Tasks, interference and scaling profiles are for policies that use them."""
    policy = form_on(policy, instance)
    if at_task_level(policy) or instance.at_task_level:
        return at_task_level(policy) and instance.at_task_level
    if shares_gpus(policy):
        return instance.interference is not None
    rigid = not resizes(policy) or getattr(policy, "rigid", False)
    return rigid or all(speeds.elastic for speeds in instance.speeds)


def resizes(policy: object) -> bool:
    """Is it (or does the class make) a policy that changes the gangs of jobs? Its jobs have scaling profiles."""
    return Use.WIDTHS in uses_of(policy)


def task_policies() -> list[str]:
    """Names of the registered policies for jobs that have tasks."""
    return [name for name, each in POLICIES.items() if at_task_level(each)]


def names_nodes(policy: AnyPolicy) -> bool:
    """Does it say itself on which nodes a job runs? Then no placement is asked."""
    return bool(uses_of(policy) & PLACES)


def default_placement(policy: AnyPolicy) -> str:
    """The placement of a policy where none is named."""
    return getattr(policy, "default_placement", DEFAULT_PLACEMENT)


def seeded(text: str, seed: int) -> str:
    """``text`` with ``seed`` given to a placement that takes one and does not name its own."""
    head, plus, place = text.partition("+")
    name, _, rest = place.partition(":")
    if not plus or seed == 0 or name not in PLACEMENTS or "seed" not in parameters_of(PLACEMENTS.get(name)):
        return text
    if any(part.startswith("seed=") for part in rest.split(",")):
        return text
    return f"{head}+{name}:{','.join(filter(None, [rest, f'seed={seed}']))}"
