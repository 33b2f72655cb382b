"""A policy of somebody's own, in text: ``MODULE:CLASS[:key=value,...]``, wherever the name of a registered one is legal."""

from __future__ import annotations

import importlib
import os
import re
import sys
from types import ModuleType
from typing import Any

from optsched.errors import InputError, OptschedError
from optsched.registry import made, near_matches

_WRITTEN = re.compile(r"\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)\s*(?::(.*))?", re.DOTALL)


def names_a_class(text: str) -> bool:
    """Is ``text`` written like ``my_module:MyPolicy`` or ``package.module:MyPolicy:key=value``? Nothing is imported."""
    return _WRITTEN.fullmatch(text) is not None


def own_policy(text: str) -> Any:
    """An object of the class that ``text`` names, with its parameters; modules of the current folder are found, too.

    A name of the module that is no class but a policy already is taken as it is.

    Raises
    ------
    InputError
        The module cannot be imported, there is no such class in it (with near matches), it is not made from these
        parameters.
    """
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise InputError("not a policy of your own", field="policy", value=text, legal="MODULE:CLASS[:key=value,...]")
    module, name, parameters = written.groups()
    found = thing_in(module, name)
    if not isinstance(found, type):
        if parameters:
            raise InputError("it is made already and takes no parameters", field="policy", value=text, legal="a class")
        return found
    try:
        return made(lambda _: found, "policy", f"{name}:{parameters or ''}")
    except OptschedError:
        raise
    except Exception as error:  # whatever somebody's constructor raises
        what = f"cannot make it: {type(error).__name__}: {error}"
        raise InputError(what, field="policy", value=text, legal="a class that is made without arguments") from error


def _imported(module: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does; a program that is installed looks elsewhere
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever somebody's module raises
        missing = isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0])
        what = "there is no such module" if missing else f"cannot import it: {type(error).__name__}: {error}"
        legal = "a module of the current folder, of PYTHONPATH, or installed"
        raise InputError(what, field="module", value=module, legal=legal) from error


def thing_in(module: str, name: str, kind: str = "class", field: str = "policy") -> Any:
    """What a module calls ``name``: a class, or a function. `InputError` without the module, or the name (near matches)."""
    found = _imported(module)
    try:
        return getattr(found, name)
    except AttributeError:
        alike = [each for each, thing in vars(found).items() if kind != "class" or isinstance(thing, type)]
        legal = near_matches(name, sorted(alike), kind=kind)
        raise InputError(f"there is no {name!r} in {module}", field=field, value=name, legal=legal) from None
