"""Functions that only compiled code calls are linked into it: the same numbers, callable by anybody, kept on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import FunctionCache
from numba.core.compiler import Flags

from optsched.compiled import Function, njit, without_interpreting
from optsched.compiled.linking import Linked, LinkedCache, Options


@njit
def third(x: float) -> float:
    if x < 0:
        raise ValueError("negative")
    return x / 3.0


@njit
def twice_third(x: float) -> float:
    return third(x) + third(x)


@njit
def entry(x: float) -> float:
    return twice_third(x) + third(x)


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optsched.compiled.function.folder_of", lambda function: str(tmp_path / "kept"))


def kinds(function: Function) -> list[bool]:
    """Of each form of a function: is it only linked?"""
    return [isinstance(each.entry_point, Linked) for each in function.overloads.values()]


def fresh(*functions: Function) -> list[Any]:
    """The same functions, compiled for nothing yet, the callees known by name to the later ones."""
    made: dict[str, Any] = {}
    for each in functions:
        plain = each.py_func
        made[plain.__name__] = njit(type(plain)(plain.__code__, {**plain.__globals__, **made}, plain.__name__))
    return list(made.values())


def test_what_compiled_code_calls_is_linked_and_becomes_machine_code_when_python_calls_it() -> None:
    leaf, middle, top = fresh(third, twice_third, entry)
    with without_interpreting():
        assert top(2.0) == 2.0 / 3 + 2.0 / 3 + 2.0 / 3
        assert (kinds(leaf), kinds(middle), kinds(top)) == ([True], [True], [False])
        assert middle(2.0) == 2.0 / 3 + 2.0 / 3
        assert (kinds(leaf), kinds(middle)) == ([True], [False])
        assert leaf(2.0) == 2.0 / 3
        assert kinds(leaf) == [False]


def test_code_that_knows_nothing_of_linking_calls_linked_code() -> None:
    leaf, middle, top = fresh(third, twice_third, entry)

    @numba.njit
    def outside(x: float) -> float:
        return float(middle(x) + leaf(x))

    assert outside(2.0) == 2.0 / 3 + 2.0 / 3 + 2.0 / 3
    assert kinds(middle) == [True]
    with without_interpreting():
        assert top(2.0) == outside(2.0)


def test_a_function_is_a_value_in_compiled_code_where_its_signature_is_declared() -> None:
    signature = numba.float64(numba.float64)
    (leaf,) = fresh(third)
    declared = njit(signature)(third.py_func)

    @njit(numba.float64(numba.types.FunctionType(signature), numba.float64))
    def call(function: Any, x: float) -> float:
        return float(function(x))

    with without_interpreting():
        assert call(declared, 2.0) == 2.0 / 3
        with pytest.raises(TypeError, match="third is to be a value in compiled code: its signature must be declared"):
            call(leaf, 2.0)


def test_threads_that_ask_for_both_forms_at_once_get_them() -> None:
    leaf, middle, top = fresh(third, twice_third, entry)
    together, found = threading.Barrier(3), []

    def ask(function: Function) -> None:
        with without_interpreting():
            together.wait()
            found.append(function(2.0))

    threads = [threading.Thread(target=ask, args=(each,)) for each in (leaf, middle, top)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [2.0 / 3, 2.0 / 3 + 2.0 / 3, 2.0 / 3 + 2.0 / 3 + 2.0 / 3]
    assert all(isinstance(each._cache, FunctionCache) for each in (leaf, middle, top))
    assert not any(isinstance(each._cache, LinkedCache) for each in (leaf, middle, top))


def test_who_is_inlined_does_not_have_inlined_what_it_calls() -> None:
    leaf, middle, top = fresh(third, twice_third, entry)
    middle.targetoptions["forceinline"] = True
    with without_interpreting():
        assert top(2.0) == 2.0 / 3 + 2.0 / 3 + 2.0 / 3

    def inlined(function: Function) -> bool:
        (found,) = function.overloads.values()
        return "alwaysinline" in str(found.library.alone())

    assert (inlined(leaf), inlined(middle)) == (False, True)


def test_options_are_equal_as_numba_s_are() -> None:
    same, other, plain = Options(), Options(), Flags()
    same.forceinline = other.forceinline = plain.forceinline = True
    other.nrt = Flags.options["nrt"].default  # said, and as it would be
    assert same == other == plain == Options(plain)
    assert len({same, other, plain, Options(plain)}) == 1
    other.nrt = not other.nrt
    assert other not in (same, plain)


def test_errors_of_linked_code_are_raised() -> None:
    (top,) = fresh(third, twice_third, entry)[2:]
    with without_interpreting(), pytest.raises(ValueError, match="negative"):
        top(-1.0)


PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import linked_chain as chain
from optsched.compiled import without_interpreting
with without_interpreting():
    value = getattr(chain, sys.argv[2])(2.0)
hits = {name: sum(getattr(chain, name).stats.cache_hits.values()) for name in ("third", "twice_third", "entry")}
print(json.dumps([value, hits]))
"""


def test_linked_code_is_kept_and_found_by_other_processes(tmp_path: Path) -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    chain = source[source.index("@njit\ndef third") : source.index("@pytest.fixture")]
    (tmp_path / "linked_chain.py").write_text(f"from optsched.compiled import njit\n\n\n{chain}", encoding="utf-8")

    def call(name: str) -> Any:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), name]
        return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    assert call("entry") == [2.0 / 3 + 2.0 / 3 + 2.0 / 3, {"third": 0, "twice_third": 0, "entry": 0}]
    # Python calls what was only linked before: machine code of it is made, from linked code of what it calls.
    assert call("twice_third") == [2.0 / 3 + 2.0 / 3, {"third": 1, "twice_third": 0, "entry": 0}]
    assert call("twice_third") == [2.0 / 3 + 2.0 / 3, {"third": 0, "twice_third": 1, "entry": 0}]


MIXED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numba
for _ in range(int(sys.argv[3])):  # numba numbers what it compiles: other numbers than those of other processes
    numba.njit(lambda x: x)(1.0)
import linked_chain as chain
from optsched.compiled import without_interpreting
with without_interpreting():
    print(json.dumps(getattr(chain, sys.argv[2])(2.0)))
"""


def test_what_two_processes_have_kept_under_other_names_is_not_linked_together(tmp_path: Path) -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    chain = source[source.index("@njit\ndef third") : source.index("@pytest.fixture")]
    more = "@njit\ndef another(x):\n    return third(x)\n"
    (tmp_path / "linked_chain.py").write_text(
        f"from optsched.compiled import njit\n\n\n{chain}{more}", encoding="utf-8"
    )

    def call(name: str, numbers: int) -> Any:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", MIXED, str(tmp_path), name, str(numbers)]
        return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    assert call("entry", 0) == 2.0
    forgotten = [file for file in (tmp_path / "cache").rglob("*") if ".third-" in file.name or ".entry-" in file.name]
    assert forgotten
    for file in forgotten:
        file.unlink()
    assert call("another", 7) == 2.0 / 3  # third is kept anew, under another number
    assert call("entry", 0) == 2.0  # twice_third, which is kept, calls third by its old one
    assert call("entry", 3) == 2.0
