"""Functions that only compiled code calls are linked into it; no machine code of their own is made.

numba optimises each function together with all that it calls, down to the leaves, and makes machine code of that, for
each caller anew: what lies k calls deep is optimised k times and emitted k times, to be inlined and thrown away. Here a
function that compiled code asks for is typed and lowered, once, and kept so (*linked*); one that Python calls (an
*entry*) takes in the linked functions that it reaches, each once, and is optimised and emitted once. The numbers that it
computes are the same, bit for bit. ``tests/benchmarks/test_first_run.py`` measures what that buys: about half of the time.

Made of what numba lets a compiler extend: a pass in place of its lowering, a library of its own, a cache of its own. A
linked function is kept on disk as the intermediate code of itself alone, and with it the names of those that it calls.
These names have a number that differs by process: where two processes have compiled at once, and what is on disk does not
fit together, it is compiled anew (and `optsched.compiled.kept_code` keeps the code of another version of this file apart).
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, compile_result
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes, InlineInlinables, LiteralUnroll

__all__ = ["KeptCache", "Linked", "LinkedCache", "Linking", "Options", "current", "named"]

_ENVIRONMENT = "_ZN08NumbaEnv"  # how numba begins the name of a variable that holds a function's environment
PREFIX = "linked-"  # of a file with code that is only linked


class _Current(threading.local):
    """What this thread compiles: which ``function``, and is it to be ``linked``? ``wanted``: is the next one to be?"""

    function: Any = None
    linked = False
    wanted = False


current = _Current()


class Linked:
    """Stands where numba keeps what Python calls, for a function that only compiled code may call."""


class Options(Flags):  # type: ignore[misc]
    """numba's options of a function, compared as fast as they can be.

    They are part of the key under which numba finds what it has made of a built-in function; numba compares some thirty
    properties each time, and all options have one hash. Equal to numba's own where those are equal.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flags):
            return NotImplemented
        return bool(self._values == other._values) or _not_default(self) == _not_default(other)

    def __hash__(self) -> int:
        return _HASH

    def copy(self) -> Options:
        """Under which what it calls is known: how Python, or other code, calls it itself makes no difference there."""
        made = Options(self)
        for wrapper in ("no_cpython_wrapper", "no_cfunc_wrapper"):
            made.discard(wrapper)
        return made


def _not_default(flags: Flags) -> dict[str, Any]:
    return {name: value for name, value in flags._values.items() if value != flags.options[name].default}


_HASH = hash(Flags())


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Intermediate code of a function; ``linked``: of it alone, else with all that it reaches, optimised.

    ``owner``: the function and the types of its arguments, ``symbol``: its name in the code of its callers; of linked code.
    """

    linked = False
    symbol = ""
    owner: tuple[Any, tuple[Any, ...]] = (None, ())

    def _optimize_functions(self, module: Any) -> None:
        # Only of what will be inlined, perhaps in many places; lightly, since it is optimised there again.
        module.data_layout = self._codegen._data_layout
        if self.linked:
            manager, builder = self._codegen._function_pass_manager(opt=1)
            for function in module.functions:
                if not function.is_declaration:
                    manager.run(function, builder)

    def _optimize_final_module(self) -> None:
        # Without looking for straight code to vectorise, and without a second, cheaper time before, which is for reference
        # counts: a fifth of the time of compiling that no loop of ours is faster for. Loops are vectorised.
        manager, builder = self._codegen._module_pass_manager(opt=1, slp_vectorize=False)
        manager.run(self._final_module, builder)

    def finalize(self) -> None:
        """Take in what is to be part of this; nothing can be added from then on."""
        callees = _reached(self)
        linked = [each for each in callees if isinstance(each, _Library) and each.linked]
        others = [each for each in callees if each not in linked]  # of numba's own, or called by Python as well
        if not self.linked:
            for each in linked:
                self._take_in(each, each.alone())
            self._linking_libraries = others
            super().finalize()
            return
        self._raise_if_finalized()
        for each in others:
            self._take_in(each, each._get_module_for_linking())
        self._linking_libraries = [each for each in linked if each in self._linking_libraries]
        self._finalize_dynamic_globals()
        self._finalized = True

    def _take_in(self, library: Any, module: Any) -> None:
        self._reload_init.update(library._reload_init)
        self._final_module.link_in(module, preserve=True)

    def alone(self) -> Any:
        """Linked code of this function, without what it calls."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        if not self.linked:
            return super()._get_module_for_linking()
        whole = self.alone().clone()  # for a caller that knows nothing of linked code
        for each in _reached(self):
            whole.link_in(each.alone(), preserve=True)
        return whole


def _reached(library: Any) -> list[Any]:
    """The libraries that a library calls, and those that linked ones among them call, each once."""
    seen: dict[Any, None] = {}
    todo = list(library._linking_libraries)
    while todo:
        callee = todo.pop()
        if callee not in seen:
            seen[callee] = None
            if isinstance(callee, _Library) and callee.linked:
                todo += callee._linking_libraries
    return list(seen)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    """numba's, into a library of our kind."""

    _name = "optsched_linking"

    def run_pass(self, state: Any) -> bool:
        """As numba's; linked functions get no form that Python could call."""
        linked, codegen = current.linked, state.targetctx.codegen()
        state.library = library = _Library(codegen, state.func_id.func_qualname)
        library.enable_object_caching()
        library.linked = linked
        if linked:
            library.owner = (current.function, tuple(state.args))
            state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = state.flags.no_compile = True
        super().run_pass(state)
        if linked:
            library.finalize()
            library.symbol = state.cr.fndesc.mangled_name
            _make_known(state.targetctx, entry := Linked(), state.cr.fndesc, library)
            state["cr"] = state.cr._replace(cfunc=entry)
        else:
            _set_environments(codegen, library)
        return True


def _make_known(target: Any, entry: Linked, description: Any, library: _Library) -> None:
    # Compiled code finds a function by what Python would call.
    target.insert_user_function(entry, description, [library])


def _set_environments(codegen: Any, library: _Library) -> None:
    # numba sets that of the function itself; those of linked functions are variables of this library now.
    for variable in library._final_module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            environment = lookup_environment(variable.name)
            if environment is not None:
                codegen.set_env(variable.name, environment)


# Passes for closures, comprehensions, expressions of arrays, and functions of numba's own that are to be inlined as Python.
_UNUSED = (InlineClosureLikes, InlineInlinables, NopythonRewrites, InlineOverloads, LiteralUnroll)


class Linking(CompilerBase):  # type: ignore[misc]
    """numba's pipeline with our lowering."""

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any) -> None:
        super().__init__(typing, target, library, args, result, Options(flags), names)

    def define_pipelines(self) -> list[Any]:
        """The passes; without those that find nothing to do, each of which goes through the whole function."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        # nothing is allocated in it, so that it has no expressions of arrays, and nothing defined
        plain = not self.state.flags.nrt and not any(map(inspect.iscode, self.state.func_id.code.co_consts))
        passes.passes = [
            (_Lowering, said) if made is NativeLowering else (made, said)
            for made, said in passes.passes
            if not (plain and made in _UNUSED)
        ]
        passes.finalize()
        return [passes]


def _name(function: Any) -> tuple[str, str]:
    return function.py_func.__module__, function.py_func.__qualname__


def named(module: str, qualname: str) -> Any:
    """What a module has under a name; None where it has nothing."""
    found: Any = import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


class _LinkedImplementation(CompileResultCacheImpl):  # type: ignore[misc]
    """How linked code is written and read: itself as intermediate code, and who it calls with what types."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Files of its own beside those of machine code."""
        return PREFIX + str(super().get_filename_base(fullname, abiflags))

    def check_cachable(self, cres: Any) -> bool:
        """As numba's, and can what it calls be found again by name?"""
        owners = [library.owner[0] for library in cres.library._linking_libraries]
        if any(named(*_name(each)) is not each for each in owners):
            return False
        return bool(super().check_cachable(cres))

    def reduce(self, cres: Any) -> tuple[Any, ...]:
        """What is written."""
        library, description = cres.library, cres.fndesc
        description.typemap = description.calltypes = None  # as numba does: these may not be writable
        callees = [(*_name(each.owner[0]), each.owner[1], each.symbol) for each in library._linking_libraries]
        code = library._final_module.as_bitcode()
        return library.name, code, callees, description, cres.environment, cres.signature, cres.reload_init

    def rebuild(self, target_context: Any, payload: tuple[Any, ...]) -> Any:
        """What was written, and all that it calls; None where that was compiled by another process, under other names."""
        name, code, callees, description, environment, signature, reload_init = payload
        found = [named(module, called).linked(types) for module, called, types, _ in callees]
        if any(each.symbol != symbol for each, (*_, symbol) in zip(found, callees, strict=True)):
            return None
        for function in reload_init:
            function()
        library = _Library(target_context.codegen(), name)
        library.linked, library._final_module = True, llvm.parse_bitcode(code)
        library.owner = (current.function, tuple(signature.args))
        library._linking_libraries = found
        library.symbol = description.mangled_name
        library._finalized = True
        return compile_result(
            typing_context=target_context.typing_context,
            target_context=target_context,
            entry_point=Linked(),
            signature=signature,
            objectmode=False,
            lifted=(),
            fndesc=description,
            library=library,
            environment=environment,
            reload_init=reload_init,
            referenced_envs=(),
        )


class KeptCache(FunctionCache):  # type: ignore[misc]
    """numba's, for which files that cannot be read (empty, cut off, of somebody's else) are absent, and written anew."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it; where the index cannot be read, in a new one. Where nothing can be written it is not kept."""
        try:
            super().save_overload(sig, data)
        except Exception:
            with contextlib.suppress(Exception):
                self.flush()
                super().save_overload(sig, data)


class LinkedCache(KeptCache):
    """Keeps linked code of a function on disk."""

    _impl_class = _LinkedImplementation
