"""Named things: a policy, a bound, a formulation or a dialect is one file, or a row of one, that registers itself."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from optsched.errors import InputError

T = TypeVar("T")
P = ParamSpec("P")
LISTED = 5  # names that a message lists
_FILE_NAME = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)


def near_matches(word: str, names: list[str], *, kind: str = "name") -> str:
    """The legal names, the likely ones first, and of many the nearest: the ``legal`` part of an `InputError`.

    Without a word all of them.
    """
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("s") else f"{kind}s"
    near = difflib.get_close_matches(word.lower().replace("_", "-"), names, n=3, cutoff=0.5)
    near += difflib.get_close_matches(word.lower(), [n for n in names if n not in near], n=3, cutoff=0.6)
    if word and len(names) > LISTED:
        alike = difflib.SequenceMatcher(b=word.lower().replace("_", "-"))
        rated = []
        for name in names:
            alike.set_seq1(name)
            rated.append((name not in near, -alike.ratio(), name))
        listed = f"the nearest of {len(names)} {plural}: {', '.join(name for *_, name in sorted(rated)[:LISTED])}"
    else:
        listed = f"{plural}: {', '.join(names)}"
    return f"did you mean {' or '.join(near)}? {listed}" if near else listed


class Registry(Generic[T]):
    """Maps names to things of one kind, importing modules of ``package`` (or a module alone) on first use: the one of
    that name, or all.

    Names are lower case with ``-``. Discovery is what makes a new thing one new file: nothing lists it. ``tables``: modules
    of the package that register many things; they are looked through before all others are imported.
    """

    def __init__(self, kind: str, package: str | None = None, *, tables: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self._package = package
        self._tables = tables
        self._things: dict[str, T] = {}
        self._discovered = package is None

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator (or plain call) that files a thing under ``name``; a name is given once."""

        def add(thing: T) -> T:
            if name in self._things and self._things[name] is not thing:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._things[name] = thing
            return thing

        return add

    def maker(self, make: Callable[P, T], name: Callable[[T], str]) -> Callable[P, T]:
        """``make``, whose things are also filed here, each under what ``name`` says of it."""

        def made(*args: P.args, **kwargs: P.kwargs) -> T:
            thing = make(*args, **kwargs)
            return self.register(name(thing))(thing)

        return made

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(str(self._package))
        for module in pkgutil.iter_modules(getattr(package, "__path__", []), f"{self._package}."):
            importlib.import_module(module.name)

    def get(self, name: str) -> T:
        """The thing of that name; `InputError` with near matches when there is none."""
        if name in self:
            return self._things[name]
        raise InputError(
            f"there is no {self.kind} named {name!r}",
            legal=near_matches(name, self.names(), kind=self.kind),
        )

    def names(self) -> list[str]:
        """All names, sorted."""
        self._discover()
        return sorted(self._things)

    def items(self) -> Iterator[tuple[str, T]]:
        """(name, thing) in the order of the names."""
        for name in self.names():
            yield name, self._things[name]

    def __contains__(self, name: str) -> bool:
        if name not in self._things and not self._discovered:
            self._look_where_it_may_be(name)
        if name not in self._things:
            self._discover()
        return name in self._things

    def _look_where_it_may_be(self, name: str) -> None:
        # ``a-srpt`` is in a_srpt.py, or in a table, as a rule: then no other file of the package needs to be imported.
        package = importlib.import_module(str(self._package))
        module = f"{self._package}.{name.replace('-', '_')}"
        own = hasattr(package, "__path__") and _FILE_NAME.fullmatch(name)
        if own and importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
        for table in self._tables:
            if name in self._things:
                return
            importlib.import_module(f"{self._package}.{table}")


def when_used(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose public names are imported when they are first used: name -> its module there.

    A name must not be that of a module of the package: once imported, the module would stand in its place.
    """

    def getattribute(name: str) -> Any:
        if name not in homes:
            near = difflib.get_close_matches(name, homes, n=1)
            said = f": did you mean {near[0]}?" if near else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{said}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return getattribute
