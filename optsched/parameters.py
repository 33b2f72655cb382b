"""Named things with parameters in text: ``NAME:key=value,key=value``, the same rules wherever a user writes one."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.registry import near_matches

_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def made(get: Callable[[str], Any], kind: str, text: str, *, opens: str = ":", separates: str = ",") -> Any:
    """What ``text`` names: ``get(name)(**parameters)``; see `parsed`."""
    maker, values = parsed(get, kind, text, opens=opens, separates=separates)
    return maker(**values)


def parsed(
    get: Callable[[str], Any], kind: str, text: str, *, opens: str = ":", separates: str = ","
) -> tuple[Any, dict[str, Any]]:
    """``get(name)`` and the parameters that ``text`` gives it.

    ``opens`` comes between the name and its parameters, ``separates`` between two of them. Raises `InputError` with near
    matches for an unknown name or parameter, and for a value of the wrong type.
    """
    name, _, rest = text.partition(opens)
    name = name.strip()
    maker = get(name)
    parameters = parameters_of(maker)
    values: dict[str, Any] = {}
    for part in filter(None, rest.split(separates)):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if key not in parameters:
            legal = near_matches(key, list(parameters), kind="parameter") if parameters else "no parameters"
            raise InputError(f"unknown parameter of the {kind} {name}", field=key, legal=legal)
        if key in values:
            raise InputError(f"a parameter of {name} is given twice", field=key, value=value, legal="each one once")
        if not equals:
            raise InputError(f"a parameter of {name} without a value", field=key, legal=f"{key}=...")
        values[key] = _converted(name, key, value.strip(), parameters[key])
    return maker, values


def parameters_of(maker: Any) -> Mapping[str, Any]:
    """Parameters that text can set, with their defaults."""
    if dataclasses.is_dataclass(maker):
        found = {field.name: field.default for field in dataclasses.fields(maker)}
    else:
        found = {name: parameter.default for name, parameter in inspect.signature(maker).parameters.items()}
    return {name: default for name, default in found.items() if isinstance(default, bool | int | float | str)}


def written(value: Any) -> str:
    """A value of a parameter as text gives it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def legal_of(maker: Any, name: str, tried: Callable[..., Any]) -> str:
    """What a parameter may be, in the words with which ``tried`` refuses a value; else its type.

    ``tried`` is ``maker``, or also uses what that makes.
    """
    default = parameters_of(maker)[name]
    if isinstance(default, bool):
        return "true or false"
    asked: tuple[Any, ...] = (-1.0, default + 1, math.nan) if isinstance(default, float) else ("", "?")
    if isinstance(default, int):
        asked = -1, default + 1
    usual = _refused(tried, name, default)  # what is missing whatever the value
    legal = dict.fromkeys(each for value in asked if (each := _refused(tried, name, value)) not in (None, usual))
    if isinstance(default, str):
        return next(iter(legal), "text")
    return "; ".join(legal) or ("an integer" if isinstance(default, int) else "a number")


def _refused(tried: Callable[..., Any], name: str, value: Any) -> str | None:
    try:
        tried(**{name: value})
    except InputError as error:
        about = error.field is None or str(error.field).rpartition(": ")[2] == name  # a registry names no field
        return error.legal if about else None
    except Exception:  # it needs more to be made, or does not check what it is given
        return None
    return None


def _converted(name: str, key: str, value: str, default: Any) -> Any:
    where = f"{name}: {key}"
    if isinstance(default, bool):
        check_legal(value.lower() in _TRUE | _FALSE, where, value, "true or false")
        return value.lower() in _TRUE
    if isinstance(default, str):
        return value
    try:
        return int(value) if isinstance(default, int) else float(value)
    except ValueError:
        legal = "an integer" if isinstance(default, int) else "a number"
        raise InputError("invalid", field=where, value=value, legal=legal) from None
