"""`numba.njit`, lazy: nothing is compiled at import, and small runs need no compiler at all.

**When.** A function is compiled when it is first called. One that may also run ``interpreted`` runs as the Python that it
is until it has done as much work (calls, elements of its arguments, events) as costs about what compiling would (the rule of
ski rental), then it is compiled. Machine code that is already on disk is loaded after as much work as loading costs. So
whether to compile depends on the work alone, never on a clock; whether to load depends on what is on the disk, too.
Both ways compute the same numbers, bit for bit: such functions use no operation of which numpy and the compiler
have different forms. What compiling costs is reported on stderr when it takes long, and never counted (`Stopwatch`).

**What of numba.** ``njit``, ``typeof`` and ``extending`` are documented. Only this file uses more, and
``tests/test_compiled.py`` says what is gone: ``compile``, ``disable_compile`` and ``signatures`` of a dispatcher (to compile
before a call, so that compiling is not counted), ``stats`` (was it loaded, or compiled?), ``get_overload`` (to call machine
code whose types are known, for a fifth of the time), ``get_compile_result`` and ``get_pointer_to_function`` (what Python
passes as an argument is looked up once), ``config.CACHE_DIR`` (``NUMBA_CACHE_DIR``, while a cache is opened),
and the options of `njit`, `KERNEL` and `INNER`, without which loops and compiling take twice as long.

**Constants.** To numba a constant argument (0, True) has a type of its own, for which a function is compiled once more:
calls of large functions say ``np.int64(0)``.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast, overload

import numba
import numpy as np
from numba.extending import typeof_impl

from optsched.compiled.kept_code import alone, clear, folder_of, forget, is_kept, kept_in, note_kept

# Units of work (a call, an event: 0.02 to 0.4 ms interpreted) that a function may do before it is compiled, which takes as
# long as some 40,000 units; before its machine code is loaded, the first time in a process, for which numba imports much;
# and afterwards.
PRICE = 10_000
CERTAIN = 40_000  # units of work that are certain to come, for which a function is compiled at its first call
FIRST_LOAD, LOAD = 3_000, 300
ELEMENTS = 64  # of array arguments that are a unit of work
LARGE = 50_000  # elements of array arguments beyond which interpreting is never cheaper
INTERPRETED_SLICE = 1_000  # events: a tenth of a second
LONG = 2.0  # seconds of compiling after which it is said
LOOK = 0.02  # seconds until it is looked again whether something is compiled, or still loaded

# How loops over arrays of the caller are compiled: without numba's reference counts. Nothing is
# allocated in them and the caller's arrays outlive the call, while counting every look at an array, atomically, took
# seven eighths of the engine's time.
KERNEL: dict[str, Any] = {"_nrt": False}
# Of those that only compiled ones call: without an entry for Python, a quarter of the time of compiling.
NESTED: dict[str, Any] = {**KERNEL, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Inlined, since a state is many words to hand on; the latter where only compiled code calls it.
INLINED: dict[str, Any] = {**KERNEL, "forceinline": True}
INNER: dict[str, Any] = {**NESTED, "forceinline": True}


R = TypeVar("R")


class _Spent(threading.local):
    """State of this thread: ``depth`` of interpreted calls, CPU seconds spent on ``compiling``, depth of compilations.

    ``waiting``: the same in seconds of the clock, ``since`` when a compilation runs that is not in it yet.

    ``impatient``: everything is compiled at its first call. ``plain``: all runs as Python, also what is compiled.
    ``loads``: numba has loaded or compiled something.
    """

    depth = 0
    impatient = False
    plain = False
    loads = False
    compiling = 0.0
    waiting = 0.0
    since: float | None = None
    nested = 0


_spent = _Spent()


@contextlib.contextmanager
def without_interpreting() -> Iterator[None]:
    """Compile every function of this thread at its first call inside the context: for warm-up and measurements."""
    before, _spent.impatient = _spent.impatient, True
    try:
        yield
    finally:
        _spent.impatient = before


@contextlib.contextmanager
def without_machine_code() -> Iterator[None]:
    """Run every function that may be interpreted as Python inside the context, also if it is compiled: for comparisons."""
    before, _spent.plain = _spent.plain, True
    try:
        yield
    finally:
        _spent.plain = before


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


class Stopwatch:
    """CPU seconds of this process since the object was made, without those spent on compiling."""

    def __init__(self) -> None:
        self._begun, self._compiling = time.process_time(), _spent.compiling

    @property
    def seconds(self) -> float:
        """CPU seconds so far."""
        return time.process_time() - self._begun - (_spent.compiling - self._compiling)


class Function(Generic[R]):
    """A function that numba compiles when it is first needed, or that runs as it is while that is cheaper.

    Within an interpreted function all is interpreted, but for functions with a declared signature (rules that engines are
    given): these are weighed by themselves, however deep they are called.

    ``declared``: the one signature it is compiled for; (): whatever it is called with. ``interpreted``: may it run as Python
    (a test of its arguments where that depends on them)? ``inner``: only compiled code calls its machine code, Python runs
    it as it is. ``py_func``: the Python.
    """

    def __init__(self, function: Callable[..., R], declared: Any, interpreted: Any, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.declared, self.interpreted, self._options = function, declared, interpreted, options
        self.inner = bool(options.get("no_cpython_wrapper", False))
        self.patience = 1  # times `PRICE`, for a function that takes much longer to compile than others
        self._paid = 0.0  # units of work done as Python
        self._machine: Any = None
        self._code: Callable[..., Any] | None = None  # machine code for the declared signature, once it is called
        self._ready: set[Any] = set()  # forms of arguments that Python has called it with as machine code
        self._kept: set[Any] = set()  # forms of arguments for which there is machine code on disk
        self._look = 0.0  # units of work at which to look there again

    def __call__(self, *arguments: Any) -> R:
        if self.interpreted and _spent.depth and not self.declared:
            return self.py_func(*arguments)
        if not self.runs_compiled(*arguments):
            return self._interpret(arguments)
        form = () if self.declared else tuple(map(_form, arguments))
        if form not in self._ready:
            self._compile(arguments)
            self._ready.add(form)
        passed = (each.dispatcher() if isinstance(each, Function) else each for each in arguments)
        result: R = self.dispatcher()(*passed)
        return result

    def dispatcher(self) -> Any:
        """numba's own object, which compiled code calls; compiled already where a signature is declared."""
        if self._machine is None:
            made = self._made()
            if self.declared:
                with _compiling(self, made):
                    made.compile(self.declared[0])
                made.disable_compile()
                _remember(made, self.declared[0])
            self._machine = self._machine or made  # another thread may have been faster
        return self._machine

    def prepare(self) -> None:
        """Compile for the declared signature, if any, and for nothing else from then on."""
        if self.declared:
            self._compile(())

    @property
    def signatures(self) -> list[Any]:
        """Argument types for which the function is compiled."""
        return [] if self._machine is None else list(self._machine.signatures)

    def machine_code(self, arguments: tuple[Any, ...] = ()) -> Callable[..., Any]:
        """Return the machine code for exactly these argument types, or the declared ones; nothing checks them.

        Parameters
        ----------
        arguments
            Types of the arguments; unused if a signature is declared.
        """
        self._compile_for(arguments)
        self._ready.add(arguments)
        self._note(self.declared[0].args if self.declared else arguments)
        code: Callable[..., Any] = self.dispatcher().get_overload(self.declared[0] if self.declared else arguments)
        return code

    def entry(self) -> Callable[..., R]:
        """Return the fastest way to call a function with a declared signature from Python.

        Machine code is called with exactly the declared types; nothing checks them.
        """
        if self._code is None or _spent.plain:
            if not self.runs_compiled():
                return self
            self._code = self.machine_code()
        return self._code

    def runs_compiled(self, *arguments: Any) -> bool:
        """Return whether the next call runs as machine code.

        Parameters
        ----------
        *arguments
            Arguments of the call.
        """
        if self.inner or (_spent.plain and self.interpreted):
            return False
        if not self.interpreted or (self._ready and not arguments):
            return True
        known = self._ready and (self.declared or tuple(map(_form, arguments)) in self._ready)
        if known or (self._ready and self._paid >= PRICE * self.patience):
            return True
        if arguments and callable(self.interpreted) and not self.interpreted(*arguments):
            return True
        if _spent.impatient or self._paid >= PRICE * self.patience or _elements(arguments) > LARGE:
            return True
        if self._too_early():
            return False
        form = () if self.declared else tuple(map(_form, arguments))
        return self._is_loaded(form, lambda: self._types(arguments) if arguments or self.declared else None)

    def runs_compiled_for(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether it is time to call `machine_code` for these argument types.

        Parameters
        ----------
        arguments
            Types of the arguments.
        """
        if _spent.plain and self.interpreted:
            return False
        if not self.interpreted or _spent.impatient or self._paid >= PRICE * self.patience:
            return True
        if self._ready and arguments in self._ready:  # hashing types takes longer than a small call
            return True
        return not self._too_early() and self._is_loaded(arguments, lambda: arguments)

    def _too_early(self) -> bool:
        # Has it done too little work to load what is on disk, or to look there once more?
        return self._paid < (LOAD if _spent.loads else FIRST_LOAD) or (not self._kept and self._paid < self._look)

    def _is_loaded(self, form: Any, types: Callable[[], tuple[Any, ...] | None]) -> bool:
        # If there is nothing on disk, another process may have compiled it by the time that twice the work is done. What
        # the types are takes longer than a small call.
        if form not in self._kept and self._paid >= self._look:
            if is_kept(self.py_func, types()):
                self._kept.add(form)
            else:
                self._look = 2 * self._paid
        return form in self._kept

    def _types(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.declared[0].args if self.declared else tuple(map(numba.typeof, arguments))

    def _interpret(self, arguments: tuple[Any, ...]) -> R:
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

    def _made(self) -> Any:
        with _opening:
            folder = folder_of(self.py_func)
            with kept_in(folder):
                return numba.njit(cache=bool(folder), **self._options)(self.py_func)

    def _compile(self, arguments: tuple[Any, ...]) -> None:
        self._compile_for(() if self.declared else self._types(arguments))
        self._note(self._types(arguments))

    def _note(self, forms: tuple[Any, ...]) -> None:
        _spent.loads = True
        note_kept(self.py_func, forms)

    def _compile_for(self, forms: tuple[Any, ...]) -> None:
        for remedy in (clear, _keep_nothing, None):
            try:
                machine = self.dispatcher()
                if not self.declared:
                    with _compiling(self, machine):
                        machine.compile(forms)
            except numba.errors.NumbaError:
                raise
            except Exception:
                # What is kept on disk is cut off, or the disk is full.
                if remedy is None:
                    raise
                remedy()
            else:
                return

    def __reduce__(self) -> Any:
        """By its name where that finds it: a copy in another process would not be the one that is called there."""
        name = self.py_func.__module__, self.py_func.__qualname__
        if name[0] != "__main__" and _named(*name) is self:  # what a script defines is there in no other process
            return _named, name
        copied = numba.njit(self.py_func)  # numba knows how to write functions that have no name
        return _copy, (copied, self.declared, self.interpreted, self._options)


# What compiled code sees where it calls one.
typeof_impl.register(Function, lambda function, context: numba.typeof(function.dispatcher()))


def _copy(function: Any, *settings: Any) -> Function[Any]:
    return Function(function.py_func, *settings)


def _named(module: str, qualname: str) -> Any:
    found: Any = import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


def _form(argument: Any) -> Any:
    # What decides the type that numba gives it.
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.c_contiguous, argument.flags.writeable
    if isinstance(argument, tuple):
        return type(argument), tuple(map(_form, argument))
    return argument if isinstance(argument, Function) else type(argument)


def _elements(arguments: tuple[Any, ...]) -> int:
    return sum(each.size for each in arguments if isinstance(each, np.ndarray))


def _remember(machine: Any, signature: Any) -> None:
    # Where Python passes a function as an argument, numba asks for its address, and hashes the types of all arguments to
    # find it: a quarter of the time of a run of few jobs.
    compiled = machine.get_compile_result(signature)
    machine.get_compile_result = lambda _: compiled
    compiled.library.get_pointer_to_function = functools.cache(compiled.library.get_pointer_to_function)


FUNCTIONS: list[Function[Any]] = []  # of the modules imported so far
_opening = threading.Lock()


def _keep_nothing() -> None:
    forget()
    for each in FUNCTIONS:
        each._machine = each._code = None


@contextlib.contextmanager
def _compiling(function: Function[Any], machine: Any) -> Iterator[None]:
    # Reported when it takes long, and not counted as work. Only the outermost function is locked: no two locks, no deadlock.
    begun, since = time.process_time(), time.perf_counter()
    _spent.nested += 1
    notice = _Notice(function, machine) if _spent.nested == 1 else None
    if notice is not None:
        _spent.since = since
    try:
        with _without_collecting(), alone(function.py_func) if notice else contextlib.nullcontext():
            yield
    finally:
        _spent.nested -= 1
        if notice is not None:
            notice.over()
            _spent.compiling += time.process_time() - begun
            _spent.since = None
            _spent.waiting += time.perf_counter() - since


class _Notice:
    """Says on stderr, but not in a notebook, that a function has been compiling for `LONG` seconds, and how long it took.

    What is loaded, or compiled by another process that this one waits for, is not told, however long it takes.
    """

    def __init__(self, function: Function[Any], machine: Any) -> None:
        self._what = f"{function.py_func.__module__}.{function.py_func.__name__}"
        self._machine, self._missed = machine, _misses(machine)
        self._begun, self._reported, self._over = time.perf_counter(), False, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        wait = LONG
        while not self._over.wait(wait):
            if _misses(self._machine) > self._missed:
                return self._tell()
            wait = LOOK
        return None

    def _tell(self) -> None:
        if type(sys.stderr).__module__.startswith("ipykernel."):
            return  # it would be saved with the notebook
        self._reported = True
        print(f"optsched: compiling {self._what}, once for this machine", file=sys.stderr, flush=True)

    def over(self) -> None:
        """It is compiled."""
        self._over.set()
        self._thread.join()
        if self._reported:
            seconds = time.perf_counter() - self._begun
            print(f"optsched: compiled {self._what} in {seconds:.0f} s", file=sys.stderr, flush=True)


def _misses(machine: Any) -> int:
    """Return the number of times that a dispatcher found nothing on disk and compiled."""
    return sum(machine.stats.cache_misses.values())


@overload
def njit(function: Callable[..., R], /) -> Function[R]: ...


@overload
def njit(
    *, signature: Any = None, interpreted: bool | Callable[..., bool] = True, patience: int = 1, **options: Any
) -> Callable[[Callable[..., R]], Function[R]]: ...


def njit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    signature: Any = None,
    interpreted: bool | Callable[..., bool] = True,
    patience: int = 1,
    **options: Any,
) -> Any:
    """Return `numba.njit` of this package: a decorator that makes a `Function`, compiled at its first call and kept on disk.

    Parameters
    ----------
    function
        Function to decorate, when the decorator is used without arguments.
    signature
        Types of arguments and result; then the function is compiled for nothing else. None: those of each call.
    interpreted
        False: never run the function as Python (see `Function`), since a single call may take long, or its floats depend
        on the compiler. A function of the arguments says so of each call.
    patience
        Times the usual price after which the function is compiled, if compiling it takes that much longer than others.
    options
        Options of `numba.njit`.
    """
    if function is not None:
        return njit()(function)
    declared = () if signature is None else (signature,)
    # Only where its signature is declared may it be a value in compiled code. And numba would have a function inlined
    # everywhere because the first that called it is.
    # And other threads run meanwhile: a call may take seconds, and one of them receives Ctrl-C and ends late work.
    options = {"forceinline": False, "no_cfunc_wrapper": not declared, "nogil": True, **options}

    def decorate(function: Any) -> Any:
        if numba.config.DISABLE_JIT:
            return function
        FUNCTIONS.append(Function(function, declared, interpreted, options))
        FUNCTIONS[-1].patience = patience
        return FUNCTIONS[-1]

    return decorate


def record(**fields: str) -> Any:
    """Return the dtype of a record whose fields are read and set by name, compiled or not.

    `numpy.record` does the same, but takes three times as long in Python, and hides fields named like its methods.

    Parameters
    ----------
    **fields
        Type of each field: ``real`` or ``int``.
    """
    kinds = {"real": np.float64, "int": np.int64}
    layout = np.dtype([(name, kinds[kind]) for name, kind in fields.items()], align=True)

    def field(name: str) -> property:
        return property(itemgetter(name), lambda row, value: row.__setitem__(name, value))

    return np.dtype((type("Row", (np.void,), {name: field(name) for name in fields}), layout))


def seconds_waited() -> float:
    """Return the wall seconds that this thread has waited for the compiler so far."""
    return _spent.waiting


def waiting_of_this_thread() -> Callable[[], float]:
    """Return a function with which other threads read `seconds_waited` of this one, including a running compilation."""
    mine = _spent.__dict__

    def seconds() -> float:
        since = mine.get("since")
        return float(mine.get("waiting", 0.0)) + (0.0 if since is None else time.perf_counter() - since)

    return seconds


def runs_compiled(function: Any) -> bool:
    """Return whether the next call of a function runs as machine code.

    Parameters
    ----------
    function
        A function; False for one that is not a `Function` (numba is switched off).
    """
    return isinstance(function, Function) and function.runs_compiled()


def entry(function: Any) -> Callable[..., Any]:
    """Return the fastest way to call a function with a declared signature from Python (`Function.entry`).

    Parameters
    ----------
    function
        A function; one that is not a `Function` (numba is switched off) is returned itself.
    """
    return function.entry() if isinstance(function, Function) else cast("Callable[..., Any]", function)


def quick_call(function: Any, *arguments: Any) -> Any:
    """Call a function with a declared signature the fastest way (`Function.entry`); nothing checks the types of arguments.

    Parameters
    ----------
    function
        A function; one that is not a `Function` (numba is switched off) is called as it is.
    *arguments
        Arguments of exactly the declared types; functions are passed as `Function`.
    """
    code = entry(function)
    if code is function:
        return function(*arguments)
    return code(*(each.dispatcher() if isinstance(each, Function) else each for each in arguments))


def slice_of(function: Any, events: int) -> int:
    """Return the number of events for one call of a compiled loop: small while it is interpreted, so that it can switch.

    Parameters
    ----------
    function
        The loop.
    events
        Usual number of events.
    """
    return events if runs_compiled(function) else min(events, INTERPRETED_SLICE)


def foresee(function: Any, events: int) -> None:
    """Let a loop run compiled from its first event if the events to come take longer interpreted than compiling does.

    Parameters
    ----------
    function
        The loop.
    events
        Least number of events to come.
    """
    if isinstance(function, Function) and events >= CERTAIN * function.patience:
        function._paid = max(function._paid, PRICE * function.patience)


def worked(function: Any, events: int) -> None:
    """Count events of a loop; interpreted ones count towards its compilation.

    Parameters
    ----------
    function
        The loop.
    events
        Number of events.
    """
    if isinstance(function, Function):
        function._paid += events
