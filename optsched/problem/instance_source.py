"""`Source`: whoever takes an instance also takes the text that names one, as on the command line.

Files, shipped instances and traces are read far above the modules that judge and bound: `optsched.io.sources` files its
reader here, where everybody can ask for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.registry import Registry

Source = Instance | str | os.PathLike[str]

READERS: Registry[Callable[[str | os.PathLike[str]], Instance]] = Registry("reader", package="optsched.io.sources")


def instance_of(source: Source) -> Instance:
    """The instance itself, or the one that a SOURCE text names (`optsched.load`): a file, a shipped name, DIALECT:PATH.

    Raises `InputError` for a text that names none, and for anything else.
    """
    if isinstance(source, Instance):
        return source
    found: object = source
    if isinstance(found, str | os.PathLike):
        return READERS.get("load")(found)
    legal = "an Instance, or text: the name of a shipped instance, FILE.json, FILE.parquet, DIALECT:PATH"
    raise InputError("not an instance", field="instance", value=type(found).__name__, legal=legal)
