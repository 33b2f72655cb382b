"""A policy and a placement from text: ``NAME[:key=value,...][+PLACEMENT[:key=value,...]]``."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from optsched.errors import InputError
from optsched.online import POLICIES
from optsched.placement import PLACEMENTS
from optsched.policy import OrderedPolicy, Policy
from optsched.registry import near_matches
from optsched.simulation.placing import Placement

DEFAULT_PLACEMENT = "count"
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


@dataclass(frozen=True)
class Specification:
    """A policy, a placement, and how the pair is written."""

    text: str
    policy: Policy | OrderedPolicy
    placement: Placement


def specify(spec: str | Policy | OrderedPolicy | Specification, placement: str | None = None) -> Specification:
    """The policy and placement that ``spec`` names; a policy object takes ``placement`` (default ``count``).

    Raises `InputError` with near matches for an unknown policy, placement or parameter, and for an illegal value.
    """
    if isinstance(spec, Specification):
        return spec
    if not isinstance(spec, str):
        if isinstance(spec, type) or not (hasattr(spec, "order") or hasattr(spec, "decide")):
            legal = "text, or an object with order(jobs) or decide(view)"
            raise InputError("not a policy", field="policy", value=spec, legal=legal)
        place = placement or DEFAULT_PLACEMENT
        name = spec.name if place == DEFAULT_PLACEMENT else f"{spec.name}+{place}"
        return Specification(name, spec, _make(PLACEMENTS.get, "placement", place))
    head, plus, tail = spec.partition("+")
    if plus and placement is not None:
        raise InputError("a placement is given twice", field="policy", value=spec)
    place = tail if plus else placement or DEFAULT_PLACEMENT
    policy = _make(POLICIES.get, "policy", head)
    text = spec.strip() if plus or place == DEFAULT_PLACEMENT else f"{spec.strip()}+{place}"
    return Specification(text, policy, _make(PLACEMENTS.get, "placement", place))


def seeded(text: str, seed: int) -> str:
    """``text`` with ``seed`` given to a placement that takes one and does not name its own."""
    head, plus, place = text.partition("+")
    name, _, rest = place.partition(":")
    if not plus or seed == 0 or name not in PLACEMENTS or "seed" not in parameters_of(PLACEMENTS.get(name)):
        return text
    if any(part.startswith("seed=") for part in rest.split(",")):
        return text
    return f"{head}+{name}:{','.join(filter(None, [rest, f'seed={seed}']))}"


def _make(get: Callable[[str], Any], kind: str, text: str) -> Any:
    name, _, rest = text.partition(":")
    maker = get(name.strip())
    parameters = parameters_of(maker)
    values = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if key not in parameters:
            legal = near_matches(key, list(parameters), kind="parameter") if parameters else "no parameters"
            raise InputError(f"unknown parameter of the {kind} {name}", field=key, legal=legal)
        if not equals:
            raise InputError(f"a parameter of {name} without a value", field=key, legal=f"{key}=...")
        values[key] = _converted(name, key, value.strip(), parameters[key])
    return maker(**values)


def parameters_of(maker: Any) -> Mapping[str, Any]:
    """Parameters that text can set, with their defaults."""
    if dataclasses.is_dataclass(maker):
        found = {field.name: field.default for field in dataclasses.fields(maker)}
    else:
        found = {name: parameter.default for name, parameter in inspect.signature(maker).parameters.items()}
    return {name: default for name, default in found.items() if isinstance(default, bool | int | float | str)}


def _converted(name: str, key: str, value: str, default: Any) -> Any:
    where = f"{name}: {key}"
    if isinstance(default, bool):
        if value.lower() not in _TRUE | _FALSE:
            raise InputError("not legal", field=where, value=value, legal="true or false")
        return value.lower() in _TRUE
    if isinstance(default, str):
        return value
    try:
        return int(value) if isinstance(default, int) else float(value)
    except ValueError:
        legal = "an integer" if isinstance(default, int) else "a number"
        raise InputError("not legal", field=where, value=value, legal=legal) from None
