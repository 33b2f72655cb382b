"""numba's ``njit``, lazy: nothing is compiled at import, and small runs need no compiler at all.

**When.** A function is compiled when it is first called. One that may also run ``interpreted`` runs as the Python that it
is until it has done as much work (calls, elements of its arguments, events) as costs about what compiling would (the rule of
ski rental), then it is compiled. Which one runs depends on the work alone, never on a clock or on what lies in the cache.
Both ways compute the same numbers, bit for bit: such functions use no operation of which numpy and the compiler
have different forms. What compiling costs is told on stderr when it takes long, and never counted (`Stopwatch`).
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import sigutils
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from optsched.compiled.kept_code import folder_of, kept_in
from optsched.compiled.linking import KeptCache, Linked, LinkedCache, Linking, current, named

# Units of work (a call, an event: 0.02 to 0.4 ms interpreted) that a function may do before it is compiled. Loading what is
# compiled already takes as long as some 5,000 units, compiling as some 40,000.
PRICE = 10_000
ELEMENTS = 64  # of array arguments that are a unit of work
LARGE = 50_000  # elements of array arguments beyond which interpreting is never cheaper
INTERPRETED_SLICE = 1_000  # events: a tenth of a second
TOLD = 2.0  # seconds of compiling after which it is said


class _Spent(threading.local):
    """What this thread is doing: ``depth`` of interpreted calls, CPU seconds spent on ``compiling``, how deep in it.

    ``waiting``: the same in seconds of the clock, ``since`` when a compilation runs that is not in it yet.

    ``impatient``: everything is compiled at its first call.
    """

    depth = 0
    impatient = False
    compiling = 0.0
    waiting = 0.0
    since: float | None = None
    nested = 0


_spent = _Spent()


@contextlib.contextmanager
def without_interpreting() -> Iterator[None]:
    """Within it, this thread compiles every function at its first call: for warm-up, and for measurements."""
    before, _spent.impatient = _spent.impatient, True
    try:
        yield
    finally:
        _spent.impatient = before


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    # A compiler makes millions of objects that live until it is done; looking for garbage among them is a sixth of its time.
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _widened(argument: Any) -> Any:
    # The type of an argument with its integers as int64; a literal is no type of its own.
    plain = types.unliteral(argument)
    if isinstance(plain, types.BaseTuple) and not isinstance(plain, types.BaseNamedTuple):
        return types.BaseTuple.from_types([_widened(each) for each in plain])
    return types.int64 if plain in (types.int8, types.int16, types.int32) else plain


class Stopwatch:
    """CPU seconds of this process since it was made, without those spent on compiling."""

    def __init__(self) -> None:
        self._begun, self._compiling = time.process_time(), _spent.compiling

    @property
    def seconds(self) -> float:
        """So far."""
        return time.process_time() - self._begun - (_spent.compiling - self._compiling)


class Function(CPUDispatcher):  # type: ignore[misc]
    """A function that numba compiles when it is first needed, or that runs as it is while that is cheaper.

    Within an interpreted function all is interpreted, but for functions with a declared signature (rules that engines are
    given): these are weighed by themselves, however deep they are called.

    ``declared``: the one signature it is compiled for; (): whatever it is called with. ``interpreted``: may it run as Python
    (a test of its arguments where that depends on them)? ``inner``: only compiled code calls its machine code, Python runs
    it as it is.
    """

    declared: tuple[Any, ...] = ()
    inner = False
    interpreted: bool | Callable[..., bool] = True
    _machine_code = False  # can Python call any?
    _direct = False  # and does none take functions, which are to be prepared?
    _cache: Any
    _linked_cache: Any = None
    _paid = 0.0  # units of work done as Python

    def __call__(self, *arguments: Any) -> Any:
        if self.interpreted and _spent.depth and not self.declared:
            return self.py_func(*arguments)
        if self._direct:
            return super().__call__(*arguments)
        if not self.runs_compiled(*arguments):
            return self._interpret(arguments)
        for each in (self, *arguments):
            if isinstance(each, Function):
                each.prepare()
        return super().__call__(*arguments)

    def prepare(self) -> None:
        """Compile it for the signature that is declared, if one is, and for nothing else from then on."""
        if self.declared and not self.overloads:
            self.compile(self.declared[0])
            self.disable_compile()

    def runs_compiled(self, *arguments: Any) -> bool:
        """Will the next call (with these arguments) run as machine code?"""
        if self.inner:
            return False
        if self._machine_code or not self.interpreted:
            return True
        if arguments and callable(self.interpreted) and not self.interpreted(*arguments):
            return True
        if _spent.impatient or self._paid >= PRICE:
            return True
        return _elements(arguments) > LARGE

    def _interpret(self, arguments: tuple[Any, ...]) -> Any:
        outer = _spent.depth
        self._paid += 1 + _elements(arguments) / ELEMENTS
        _spent.depth = outer + 1
        try:
            if outer:
                return self.py_func(*arguments)
            with np.errstate(all="ignore"):  # machine code says nothing of an overflow either
                return self.py_func(*arguments)
        finally:
            _spent.depth = outer

    def compile(self, sig: Any) -> Any:
        """As numba's; loads from the cache on disk, and tells people when it takes long."""
        linked, current.wanted = current.wanted and not self.declared, False
        begun, since = time.process_time(), time.perf_counter()
        _spent.nested += 1
        notice = _Notice(self) if _spent.nested == 1 else None
        if notice is not None:
            _spent.since = since
        try:
            # numba's own lock; the choice of a cache is part of what must not be interrupted
            with global_compiler_lock, _without_collecting():
                return self._compile(sig, linked)
        finally:
            _spent.nested -= 1
            if notice is not None:
                notice.over()
                _spent.compiling += time.process_time() - begun
                _spent.since = None
                _spent.waiting += time.perf_counter() - since

    def _compile(self, sig: Any, linked: bool) -> Any:
        if isinstance(self._cache, NullCache):
            self._open_caches()
        found = self.overloads.get(tuple(sigutils.normalize_signature(sig)[0]))
        if found is not None and not linked and isinstance(found.entry_point, Linked):
            del self.overloads[found.signature.args]  # Python calls it now
        kept, outer = self._cache, (current.linked, current.function)
        current.linked, current.function = linked, self
        self._cache = self._linked_cache if linked else kept
        try:
            return super().compile(sig)
        finally:
            self._cache, (current.linked, current.function) = kept, outer

    def add_overload(self, cres: Any) -> None:
        """As numba's, which offers it to Python; linked code is for compiled code only."""
        if isinstance(cres.entry_point, Linked):
            self.overloads[tuple(cres.signature.args)] = cres
        else:
            super().add_overload(cres)
            takes_functions = any(isinstance(each, types.Callable | types.FunctionType) for each in cres.signature.args)
            self._direct = (self._direct or not self._machine_code) and not (self.inner or takes_functions)
            self._machine_code = True

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """As numba's: called by compiled code, in its only form where one is declared.

        Integers are int64, whatever array or constant they come from: else numba would compile a function anew for every
        mixture of them, and everything that it calls.
        """
        self.prepare()
        current.wanted = True
        try:
            return super().get_call_template(tuple(map(_widened, args)), kws)
        finally:
            current.wanted = False

    def get_compile_result(self, sig: Any) -> Any:
        """As numba's, of a function that is a value in compiled code."""
        if not self.declared:
            name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
            raise TypeError(f"{name} is to be a value in compiled code: its signature must be declared")
        return super().get_compile_result(sig)

    def __reduce__(self) -> Any:
        """By its name where that finds it: a copy in another process would not be the one that is called there.

        numba's own copies are made by numba's own compiler, and what they call is compiled once more.
        """
        name = self.py_func.__module__, self.py_func.__qualname__
        known = name[0] != "__main__" and named(*name) is self  # what a script defines is there in no other process
        return (named, name) if known else super().__reduce__()

    def linked(self, arguments: tuple[Any, ...]) -> Any:
        """The library with its code for arguments of these types, as compiled code calls it."""
        self.get_call_template(arguments, {})
        return self.overloads[arguments].library

    def _open_caches(self) -> None:
        self._linked_cache = self._cache  # none, where there is nowhere to write: it is compiled for this process alone
        folder = folder_of(self.py_func)
        if folder:
            with kept_in(folder):
                self._cache = KeptCache(self.py_func)
                self._linked_cache = LinkedCache(self.py_func)


def _elements(arguments: tuple[Any, ...]) -> int:
    return sum(each.size for each in arguments if isinstance(each, np.ndarray))


FUNCTIONS: list[Function] = []  # of the modules imported so far


class _Notice:
    """Says on stderr, but not in a notebook, that a function has been compiling for `TOLD` seconds, and how long it took."""

    def __init__(self, function: Function) -> None:
        self._what = f"{function.py_func.__module__}.{function.py_func.__name__}"
        self._begun, self._told = time.perf_counter(), False
        self._timer = threading.Timer(TOLD, self._tell)
        self._timer.daemon = True
        self._timer.start()

    def _tell(self) -> None:
        if type(sys.stderr).__module__.startswith("ipykernel."):
            return  # it would be saved with the notebook
        self._told = True
        print(f"optsched: compiling {self._what}, once for this machine", file=sys.stderr, flush=True)

    def over(self) -> None:
        """It is compiled."""
        self._timer.cancel()
        if self._told:
            seconds = time.perf_counter() - self._begun
            print(f"optsched: compiled {self._what} in {seconds:.0f} s", file=sys.stderr, flush=True)


def njit(*arguments: Any, **options: Any) -> Any:
    """`numba.njit` for this package: a `Function`, compiled at its first call and kept on disk; same two uses.

    A signature may come first; then the function is compiled for nothing else. ``interpreted=False``: never run it as the
    Python that it is (see `Function`): a single call may take long, or its floats depend on the compiler. A function of the
    arguments says so of each call.
    """
    if len(arguments) == 1 and inspect.isfunction(arguments[0]) and not options:
        return njit()(arguments[0])
    interpreted = options.pop("interpreted", True)
    options.pop("cache", None)
    # Only where its signature is declared may it be a value in compiled code. And numba would have a function inlined
    # everywhere because the first that called it is.
    options = {"forceinline": False, "no_cfunc_wrapper": not arguments, **options}

    def decorate(function: Any) -> Any:
        if numba.config.DISABLE_JIT:
            return function
        made = Function(
            function, targetoptions={"nopython": True, "boundscheck": None, **options}, pipeline_class=Linking
        )
        made.declared, made.interpreted = arguments, interpreted
        made.inner = bool(options.get("no_cpython_wrapper", False))
        FUNCTIONS.append(made)
        return made

    return decorate


def record(**fields: str) -> Any:
    """The dtype of a record with these fields (``real``, ``int``, ``short``), read and set by name, compiled or not.

    As `numpy.record` does, which takes three times as long about it in Python, and hides fields named like its methods.
    """
    kinds = {"real": np.float64, "int": np.int64, "short": np.int32}
    layout = np.dtype([(name, kinds[kind]) for name, kind in fields.items()], align=True)

    def field(name: str) -> property:
        return property(lambda row: row[name], lambda row, value: row.__setitem__(name, value))

    return np.dtype((type("Row", (np.void,), {name: field(name) for name in fields}), layout))


def seconds_waited() -> float:
    """Seconds of the clock that this thread has waited for the compiler so far."""
    return _spent.waiting


def waiting_of_this_thread() -> Callable[[], float]:
    """`seconds_waited`, for other threads to ask, and at any moment: what is being compiled counts so far."""
    mine = _spent.__dict__

    def seconds() -> float:
        since = mine.get("since")
        return float(mine.get("waiting", 0.0)) + (0.0 if since is None else time.perf_counter() - since)

    return seconds


def runs_compiled(function: Any) -> bool:
    """Will the next call of ``function`` run as machine code? No for what is no `Function`: numba is switched off."""
    return isinstance(function, Function) and function.runs_compiled()


def slice_of(function: Any, events: int) -> int:
    """How many ``events`` to give a compiled loop at once: few while it is interpreted, so that it can change over."""
    return events if runs_compiled(function) else min(events, INTERPRETED_SLICE)


def worked(function: Any, events: int) -> None:
    """A loop has gone through so many ``events``: as Python, that counts towards compiling it."""
    if isinstance(function, Function):
        function._paid += events
