"""`Entry`: a name of the catalogue with its line, its parameters and its description."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from optsched.registry import docstring_parts, legal_of, parameters_of


@dataclass(frozen=True)
class ShownParameter:
    """A parameter that text can set.

    Parameters
    ----------
    name
        Name of the parameter.
    default
        Its default as users write it.
    meaning
        Its meaning and legal values, if they are known.
    """

    name: str
    default: str
    meaning: str = ""


@dataclass(frozen=True)
class Entry:
    """A registered name.

    Parameters
    ----------
    name
        The name.
    text
        The line of the list.
    parameters
        Its parameters.
    written
        An example of how it is written with all parameters.
    about
        Its description.
    facts
        (heading, fact) of further facts.
    """

    name: str
    text: str
    parameters: tuple[ShownParameter, ...] = ()
    written: str = ""
    about: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the entry as ``list KIND NAME --json`` writes it."""
        parts = {"parameters": [asdict(parameter) for parameter in self.parameters], "facts": dict(self.facts)}
        return {"name": self.name, "text": self.text, **parts, "about": self.about}


def first_line(thing: Any) -> str:
    """Return the first line of a docstring, without marks of code.

    Parameters
    ----------
    thing
        What has a docstring.
    """
    return (inspect.getdoc(thing) or "").partition("\n")[0].replace("``", "")


def with_defaults(thing: Any) -> str:
    """Return the first line of a docstring and the parameters with their defaults.

    Parameters
    ----------
    thing
        A class or function whose parameters text can set.
    """
    return with_parameters(first_line(thing), parameters_of(thing))


def with_parameters(text: str, parameters: Mapping[str, Any]) -> str:
    """Return a text and, in brackets, parameters with their defaults.

    Parameters
    ----------
    text
        The text.
    parameters
        Defaults by name.
    """
    shown = ", ".join(f"{key}={shown_value(value)}" for key, value in parameters.items())
    return f"{text} [{shown}]" if shown else text


def shown_value(value: Any) -> str:
    """Return a default as users write it.

    Parameters
    ----------
    value
        The default.
    """
    return str(value).lower() if isinstance(value, bool) else "-" if value is None else str(value)


def shown_parameters(maker: Any, tried: Callable[..., Any] | None = None) -> tuple[ShownParameter, ...]:
    """Return the parameters of a class or function with their descriptions and legal values.

    Parameters
    ----------
    maker
        The class or function.
    tried
        Called with values to find out which are legal. Default: ``maker``.
    """
    described, shown = described_parameters(maker), []
    for key, value in parameters_of(maker).items():
        legal = legal_of(maker, key, tried or maker)
        meaning = f"{described[key].rstrip('.')} ({legal})" if key in described else legal
        shown.append(ShownParameter(key, shown_value(value), meaning))
    return tuple(shown)


def description(thing: Any) -> str:
    """Return a docstring without its first line and without its sections (Parameters, Raises, ...).

    Parameters
    ----------
    thing
        What has a docstring.
    """
    text, _ = docstring_parts(thing)
    return text.partition("\n")[2].strip()


def described_parameters(thing: Any) -> dict[str, str]:
    """Return the descriptions in the section Parameters of a docstring by name, without marks of code.

    Parameters
    ----------
    thing
        A class or function.
    """
    _, sections = docstring_parts(thing)
    described: dict[str, str] = {}
    for line in sections.get("Parameters", "").replace("``", "").splitlines():
        if not line.startswith(" "):
            names = line.split(", ")
            continue
        for name in names:
            described[name] = f"{described.get(name, '')} {line.strip()}".strip()
    return described


def written_with(sign: str, parameters: tuple[ShownParameter, ...]) -> str:
    """Return how a thing is written with all parameters; empty if it has none.

    Parameters
    ----------
    sign
        The text before the parameters.
    parameters
        Its parameters.
    """
    return sign + ",".join(f"{parameter.name}={parameter.default}" for parameter in parameters) if parameters else ""


def paragraphs(text: str) -> str:
    """Return a docstring with each paragraph on one line.

    Parameters
    ----------
    text
        The docstring.
    """
    return "\n\n".join(" ".join(part.split()) for part in text.strip().replace("``", "").split("\n\n"))
