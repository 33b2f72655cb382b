"""Registries of named objects: policies, bounds, formulations, dialects, each a file or a table row that registers itself.

A text names an object with its parameters, ``NAME:key=value,key=value``, by the same rules in every place.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import math
import os
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Generic, ParamSpec, TypeVar

from optsched.deadline import DURATION, seconds_in
from optsched.errors import InputError, check_legal

T = TypeVar("T")
P = ParamSpec("P")
LISTED = 5  # names that a message lists
Seconds = Annotated[float, "seconds"]  # a parameter that text may give as people write times: 90, 6min, 1h30m
NOTHING: Mapping[str, str] = MappingProxyType({})
_FILE_NAME = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)
_SECTION = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)  # the heading of a numpydoc section
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def near_matches(word: str, names: list[str], *, kind: str = "name", meant: Mapping[str, str] = NOTHING) -> str:
    """Return the legal names, or of many the nearest to a word: the ``legal`` part of an `InputError`.

    Parameters
    ----------
    word
        The word that is not a legal name; "" lists all names.
    names
        The legal names.
    kind
        What they are names of, in the singular.
    meant
        Corrections of words that people know from elsewhere, as in "fifo? why".
    """
    elsewhere = word.lower().replace("_", "-")
    if elsewhere in meant:
        return f"did you mean {meant[elsewhere]}"
    noun, of, rest = kind.partition(" of ")
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es" if noun.endswith("s") else f"{noun}s"
    plural += of + rest
    if not names:
        return f"there are no {plural}"
    near = difflib.get_close_matches(word.lower().replace("_", "-"), names, n=3, cutoff=0.5)
    near += difflib.get_close_matches(word.lower(), [n for n in names if n not in near], n=3, cutoff=0.6)
    del near[3:]
    if not word or len(names) <= LISTED:
        others = [name for name in names if name not in near]
        if not near:
            return f"{plural}: {', '.join(names)}"
        return f"did you mean {_either(near)}?" + (f" other {plural}: {', '.join(others)}" if others else "")
    if near:
        return f"did you mean {_either(near)}? (one of {len(names)} {plural})"
    alike = difflib.SequenceMatcher(b=word.lower().replace("_", "-"))
    rated = []
    for name in names:
        alike.set_seq1(name)
        rated.append((-alike.ratio(), name))
    return f"the nearest of {len(names)} {plural}: {', '.join(name for _, name in sorted(rated)[:LISTED])}"


def _either(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def check_known(name: str, known: Collection[str], kind: str, message: str, **where: Any) -> None:
    """Check that a name is known.

    Parameters
    ----------
    name
        The name.
    known
        Legal names.
    kind
        Noun for the names.
    message
        Message of the error.
    **where
        Further parameters of `InputError`.

    Raises
    ------
    InputError
        If the name is unknown; it has near matches.
    """
    if name not in known:
        raise InputError(message, **where, legal=near_matches(str(name), list(known), kind=kind))


def known_name(name: str, known: Collection[str], kind: str, message: str, **where: Any) -> str:
    """Return the known name that a text means, regardless of case.

    Parameters
    ----------
    name
        The text.
    known
        Legal names.
    kind
        Noun for the names.
    message
        Message of the error.
    **where
        Further parameters of `InputError`.

    Raises
    ------
    InputError
        If the name is unknown; it has near matches.
    """
    lower = name.lower()
    found = name if name in known else next((each for each in known if each.lower() == lower), name)
    check_known(found, known, kind, message, **where)
    return found


class Registry(Generic[T]):
    """A map from names to objects of one kind, which imports its modules on first use.

    It imports the module of ``package`` with the name, or all of them (or ``package`` itself if it is a module). Names are
    lower case with ``-``. So a new object needs one new file, and no list of files. ``tables``: modules of the package that
    register many objects; they are searched before all others are imported. ``meant``: see `near_matches`.
    """

    def __init__(
        self,
        kind: str,
        package: str | None = None,
        *,
        tables: tuple[str, ...] = (),
        meant: Mapping[str, str] = NOTHING,
    ) -> None:
        self.kind, self.meant = kind, meant
        self._package = package
        self._tables = tables
        self._things: dict[str, T] = {}
        self._searched: set[str] = set()  # packages
        self._state = -1  # of the folders of classes when they were last searched

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers an object under a name; also usable as a call.

        Parameters
        ----------
        name
            Name of the object; each name is given once.
        """

        def add(thing: T) -> T:
            if name in self._things and self._things[name] is not thing:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._things[name] = thing
            return thing

        return add

    def maker(self, make: Callable[P, T], name: Callable[[T], str]) -> Callable[P, T]:
        """Return ``make`` such that the objects it makes are also registered here.

        Parameters
        ----------
        make
            Function that makes an object.
        name
            Function that returns the name of an object.
        """

        def made(*args: P.args, **kwargs: P.kwargs) -> T:
            thing = make(*args, **kwargs)
            return self.register(name(thing))(thing)

        return made

    @property
    def _discovered(self) -> bool:
        return self._package is None or self._state == len(_added_folders)

    def _discover(self, classes: Collection[str] | None = None) -> None:
        if self._package is None or self._discovered:
            return
        if classes is None:
            self._state = len(_added_folders)
        for package in (self._package, *extensions(self._package, classes)):
            if package not in self._searched:
                self._searched.add(package)
                import_modules(package)

    def get(self, name: str) -> T:
        """Return the object with a name, regardless of case.

        Parameters
        ----------
        name
            Name of the object.

        Raises
        ------
        InputError
            If there is none; it has near matches.
        """
        filed = self.canonical(name)
        if filed not in self:
            legal = near_matches(str(name), self.names(), kind=self.kind, meant=self.meant)
            raise InputError(f"there is no {self.kind} named {name!r}", legal=legal)
        return self._things[filed]

    def canonical(self, name: str) -> str:
        """Return a name in its registered form, regardless of case; an unknown name is unchanged.

        Parameters
        ----------
        name
            Name of an object.
        """
        lower = str(name).lower()
        return name if name in self._things or lower not in self else lower

    def names(self, classes: Collection[str] | None = None) -> list[str]:
        """Return the names, sorted.

        Parameters
        ----------
        classes
            Names of classes of schedules: folders of other classes are not imported for the answer, which may lack what they
            add. None: all names.
        """
        self._discover(classes)
        return sorted(self._things)

    def items(self, classes: Collection[str] | None = None) -> Iterator[tuple[str, T]]:
        """Yield (name, object) in the order of the names.

        Parameters
        ----------
        classes
            As for `names`.
        """
        for name in self.names(classes):
            yield name, self._things[name]

    def values(self) -> Collection[T]:
        """Return all objects, in the order in which they were registered."""
        self._discover()
        return self._things.values()

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
        for extension in extensions(str(self._package)):
            if name in self._things:
                return
            if extension not in self._searched:
                self._searched.add(extension)
                import_modules(extension)


# --- folders of classes of schedules ----------------------------------------------------------------------------------
# A folder of a class mirrors the packages of optsched: what `optsched.classes.NAME.bounds` defines extends
# `optsched.bounds`, and is found by the registries of that package. Nothing else imports it.

CLASSES = "optsched.classes"
_added_folders: list[str] = []  # packages of classes that are defined elsewhere


def add_class_folder(package: str) -> None:
    """Add the folder of a class of schedules that is defined outside of optsched.

    Parameters
    ----------
    package
        Dotted name of an importable package; its last part is the name of the class, with ``_`` for ``-``.
    """
    if package not in _added_folders:
        _added_folders.append(package)


def class_folders() -> Mapping[str, str]:
    """Return the packages of the folders of all classes of schedules, by the name of the class."""
    return _class_folders(len(_added_folders))


@cache
def _class_folders(_: int) -> Mapping[str, str]:
    home = importlib.import_module(CLASSES)
    own = [module.name for module in pkgutil.iter_modules(home.__path__, f"{CLASSES}.") if module.ispkg]
    return {package.rpartition(".")[2].replace("_", "-"): package for package in (*own, *_added_folders)}


def extensions(package: str, classes: Collection[str] | None = None) -> list[str]:
    """Return the packages in the folders of classes that extend a package of optsched.

    Parameters
    ----------
    package
        Dotted name, as ``optsched.bounds``.
    classes
        Names of the classes whose folders are searched; None: all.
    """
    root, _, below = package.partition(".")
    if package == CLASSES:
        return list(_added_folders)
    if root != __name__.partition(".")[0]:
        return []
    folders = (folder for name, folder in class_folders().items() if classes is None or name in classes)
    return [f"{folder}.{below}" for folder in folders if _exists(folder, below)]


def _exists(folder: str, below: str) -> bool:
    # Look for the files: an import system would import all packages above.
    home = importlib.import_module(folder).__path__
    return any(os.path.isfile(os.path.join(path, *below.split("."), "__init__.py")) for path in home)


def import_modules(package: str) -> None:
    """Import all modules of a package, which register what they define.

    Parameters
    ----------
    package
        Dotted name of a package, or of a module, which is imported alone.
    """
    home = importlib.import_module(package)
    for module in pkgutil.iter_modules(getattr(home, "__path__", []), f"{package}."):
        importlib.import_module(module.name)


class PartsByClass(Generic[T]):
    """Parts that classes of schedules register in one package, by the name of the class.

    The folder of a class is imported when its part is first asked for. A class that registers none has the default.
    """

    def __init__(self, package: str, default: T) -> None:
        self._package, self._default = package, default
        self._parts: dict[str, T] = {}
        self._searched: set[str] = set()  # names of classes

    def register(self, name: str, part: T) -> T:
        """File the part of a class.

        Parameters
        ----------
        name
            Name of the class of schedules.
        part
            What it adds to the package.
        """
        if name in self._parts:
            raise ValueError(f"the class {name} registers twice in {self._package}")
        self._parts[name] = part
        return part

    def of(self, name: str) -> T:
        """Return the part of a class, or the default.

        Parameters
        ----------
        name
            Name of the class of schedules.
        """
        if name not in self._searched:
            self._searched.add(name)
            folder, below = class_folders().get(name), self._package.partition(".")[2]
            if folder is not None and _exists(folder, below):
                import_modules(f"{folder}.{below}")
        return self._parts.get(name, self._default)


def when_used(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose public names are imported on first use.

    A name must not be that of a module of the package: once imported, the module would replace it.

    Parameters
    ----------
    package
        Name of the package.
    homes
        Module of each public name.
    """

    def getattribute(name: str) -> Any:
        if name not in homes:
            near = difflib.get_close_matches(name, homes, n=1)
            said = f": did you mean {near[0]}?" if near else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{said}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return getattribute


# --- named in text, with parameters -----------------------------------------------------------------------------------


def made(get: Callable[[str], Any], kind: str, text: str, *, opens: str = ":", separates: str = ",") -> Any:
    """Return the object that a text names: ``get(name)(**parameters)``; see `parsed`.

    Parameters
    ----------
    get
        Function that returns the maker of a name.
    kind
        Noun for the names, for errors.
    text
        Name and parameters.
    opens
        Separator between the name and its parameters.
    separates
        Separator between two parameters.
    """
    maker, values = parsed(get, kind, text, opens=opens, separates=separates)
    return maker(**values)


def parsed(
    get: Callable[[str], Any], kind: str, text: str, *, opens: str = ":", separates: str = ","
) -> tuple[Any, dict[str, Any]]:
    """Return ``get(name)`` and the parameters in a text.

    Parameters
    ----------
    get
        Function that returns the maker of a name.
    kind
        Noun for the names, for errors.
    text
        Name and parameters.
    opens
        Separator between the name and its parameters.
    separates
        Separator between two parameters.

    Raises
    ------
    InputError
        If the name or a parameter is unknown (with near matches), or a value has the wrong type.
    """
    name, _, rest = text.partition(opens)
    name = name.strip()
    maker = get(name)
    parameters, times = parameters_of(maker), _times(maker)
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
        values[key] = _converted(name, key, value.strip(), parameters[key], time=key in times)
    return maker, values


def parameters_of(maker: Any) -> Mapping[str, Any]:
    """Return the parameters that a text can set, with their defaults.

    Parameters
    ----------
    maker
        A class or a function.
    """
    made_of_fields = dataclasses.is_dataclass(maker)
    found: Any = dataclasses.fields(maker) if made_of_fields else inspect.signature(maker).parameters.values()
    return {each.name: each.default for each in found if isinstance(each.default, bool | int | float | str)}


def docstring_parts(thing: Any) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring before its first section, and its sections (Parameters, Raises, ...) by heading.

    Parameters
    ----------
    thing
        A class, a function or a module.
    """
    text, *parts = _SECTION.split(inspect.getdoc(thing) or "")
    return text.strip(), dict(zip(parts[::2], parts[1::2], strict=True))


def _times(maker: Any) -> set[str]:
    """Parameters that are `Seconds`."""
    made_of_fields = dataclasses.is_dataclass(maker)
    found: Any = dataclasses.fields(maker) if made_of_fields else inspect.signature(maker).parameters.values()
    kinds = ((each.name, each.type if made_of_fields else each.annotation) for each in found)
    return {name for name, kind in kinds if kind in ("Seconds", Seconds)}


def written(value: Any) -> str:
    """Return a parameter's value as text.

    Parameters
    ----------
    value
        The value.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def legal_of(maker: Any, name: str, tried: Callable[..., Any]) -> str:
    """Return the legal values of a parameter, in the words with which ``tried`` refuses a value; otherwise its type.

    Parameters
    ----------
    maker
        A class or a function.
    name
        Name of the parameter.
    tried
        ``maker``, or a function that also uses the made object.
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


def _converted(name: str, key: str, value: str, default: Any, *, time: bool = False) -> Any:
    where = f"{name}: {key}"
    if isinstance(default, bool):
        check_legal(value.lower() in _TRUE | _FALSE, where, value, "true or false")
        return value.lower() in _TRUE
    if isinstance(default, str):
        return value
    try:
        return int(value) if isinstance(default, int) else float(value)
    except ValueError:
        if time:
            return seconds_in(value, where, f"a number of {DURATION}")
        legal = "an integer" if isinstance(default, int) else "a number"
        raise InputError("invalid", field=where, value=value, legal=legal) from None
