"""Lazy compiling: when a function runs as Python, when it is compiled, and that both are the same; and the array heap."""

from __future__ import annotations

import heapq
import io
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

import optsched as osd
import optsched.compiled.function as compiled
import optsched.compiled.kept_code as kept_code
from optsched.classes.task_sharing.simulation import iterations
from optsched.compiled import Function, Stopwatch, foresee, njit, runs_compiled, slice_of, types, without_interpreting
from optsched.compiled.heap import pop, push
from optsched.policies.ties import leading_of
from optsched.simulation import engine

HERE = Path(__file__).parent


def total(values: Any) -> float:
    s = 0.0
    for k in range(values.size):
        s += values[k]
    return s


def test_interpreted_until_it_has_done_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PRICE", 1e9)
    function = njit(total)
    values = np.array([1.0, 2.0, 4.5])
    assert isinstance(function, Function)
    assert function(values) == 7.5
    assert not function.signatures
    assert not runs_compiled(function)
    assert slice_of(function, 10**6) == compiled.INTERPRETED_SLICE
    assert slice_of(function, 7) == 7
    function._paid = 1e9
    assert slice_of(function, 10**6) == 10**6
    assert function(values) == 7.5
    assert len(function.signatures) == 1


def test_a_loop_with_much_work_to_come_runs_compiled_from_its_first_event() -> None:
    few, many = njit(total), njit(patience=2)(total)
    foresee(few, compiled.CERTAIN - 1)
    foresee(many, 2 * compiled.CERTAIN - 1)
    assert not runs_compiled(few)
    assert not runs_compiled(many)
    foresee(few, compiled.CERTAIN)
    foresee(many, 2 * compiled.CERTAIN)
    assert runs_compiled(few)
    assert runs_compiled(many)


def test_what_runs_compiled_depends_on_calls_elements_and_events_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PRICE", 100)
    ticks = iter(range(10**9))  # a clock that runs away, as on a busy machine
    monkeypatch.setattr("time.thread_time", lambda: 1e6 * next(ticks))
    calls, elements, loop = njit(total), njit(total), njit(total)
    for _ in range(100):
        assert not calls.runs_compiled()
        calls(np.zeros(0))
    assert calls.runs_compiled()
    for _ in range(10):
        assert not elements.runs_compiled()
        elements(np.zeros(9 * compiled.ELEMENTS))
    assert elements.runs_compiled()
    compiled.worked(loop, 99)
    assert not loop.runs_compiled()
    compiled.worked(loop, 1)
    assert loop.runs_compiled()
    compiled.worked(total, 1)  # numba is switched off


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders of the cache are POSIX")
def test_what_is_on_disk_is_loaded_after_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PRICE", 1e9)
    monkeypatch.setattr(compiled._spent, "loads", True)
    kept: set[Any] = set()
    monkeypatch.setattr(compiled, "is_kept", lambda function, forms: (function, forms) in kept)
    monkeypatch.setattr(
        compiled, "note_kept", lambda function, forms: kept.update({(function, forms), (function, None)})
    )
    one, another, values, whole = njit(total), njit(total), np.ones(3), np.ones(3, dtype=np.int64)
    for _ in range(compiled.LOAD + 1):
        assert not one.runs_compiled(values)
        one(values)
    with without_interpreting():  # another process, say
        another(values)
    assert not one.runs_compiled(values)  # it looks again when it has done twice the work
    one._paid *= 2
    assert one.runs_compiled(values)
    assert one.runs_compiled()
    assert not one.runs_compiled(whole)  # only work decides whether to compile
    assert one(values) == 3
    assert one.signatures
    assert not one.runs_compiled(whole)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders of the cache are POSIX")
def test_machine_code_that_is_called_directly_is_noted_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = list[Any]()
    monkeypatch.setattr(compiled, "note_kept", lambda function, forms: noted.append(forms))
    declared, free, array = njit(signature=types.float64(types.float64[::1]))(total), njit(total), types.float64[::1]
    values = np.ones(3)
    assert compiled.entry(declared) is declared  # it is not worth compiling yet
    with without_interpreting():
        assert compiled.entry(declared)(values) == 3
    assert compiled.entry(declared) is declared.machine_code()
    assert free.machine_code((array,))(values) == 3
    assert set(noted) == {(array,)}


def test_large_arguments_and_impatience_compile_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PRICE", 1e9)
    large, impatient = njit(total), njit(total)
    assert large(np.ones(compiled.LARGE + 1)) == compiled.LARGE + 1
    with without_interpreting():
        assert impatient(np.ones(3)) == 3
    assert large.signatures
    assert impatient.signatures


def test_a_declared_signature_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PRICE", -1.0)
    function = njit(signature=types.float64(types.float64[::1]))(total)
    assert not function.signatures  # nothing is compiled when it is defined
    assert function(np.ones(4)) == 4.0
    assert function.signatures == [(types.float64[::1],)]
    with pytest.raises(TypeError):
        function(np.ones(4, dtype=np.complex128))


def test_rules_are_weighed_by_themselves_within_an_interpreted_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PRICE", 1e9)
    rule = njit(signature=types.float64(types.float64[::1]))(total)
    plain = njit(total)

    def loop(values: Any) -> float:
        return float(rule(values) + plain(values))

    outer = njit(loop)
    rule._paid = plain._paid = 1e10
    assert outer(np.ones(2)) == 4.0
    assert rule.signatures
    assert not plain.signatures
    assert not outer.signatures


def test_compiling_is_told_and_not_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(compiled, "LONG", 0.0)
    monkeypatch.setattr(kept_code, "_nothing", True)  # on disk there is none of it
    function, clock = njit(interpreted=False)(total), Stopwatch()
    spent = compiled._spent.compiling
    function(np.ones(2))
    assert compiled._spent.compiling > spent
    assert clock.seconds < compiled._spent.compiling - spent
    said = capsys.readouterr().err
    assert f"optsched: compiling {__name__}.total, once for this machine" in said
    assert f"optsched: compiled {__name__}.total in " in said


def test_loading_what_is_compiled_is_not_told_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    njit(interpreted=False)(total)(np.ones(2))
    capsys.readouterr()
    monkeypatch.setattr(compiled, "LONG", 0.0)
    for _ in range(4):  # as four runs in a row
        again = njit(interpreted=False)(total)
        load = again.dispatcher()._cache.load_overload
        monkeypatch.setattr(again.dispatcher()._cache, "load_overload", partial(slowly, load))
        again(np.ones(2))
        assert sum(again.dispatcher().stats.cache_hits.values()) == 1
    assert capsys.readouterr().err == ""


def slowly(load: Any, *arguments: Any) -> Any:
    time.sleep(0.05)
    return load(*arguments)


def test_compiling_is_not_told_where_it_would_be_saved_with_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    out = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(compiled, "LONG", 0.0)
    monkeypatch.setattr(kept_code, "_nothing", True)
    monkeypatch.setattr(sys, "stderr", out)
    njit(interpreted=False)(total)(np.ones(2))
    assert out.getvalue() == ""


def test_functions_travel_by_name_where_they_have_one() -> None:
    """In another process a copy would not be the function that others call there, and would be compiled again."""
    named = leading_of
    assert len(pickle.dumps(named)) < 200
    assert pickle.loads(pickle.dumps(named)) is named
    inner = njit(lambda x: x + 1)
    with without_interpreting():
        assert pickle.loads(pickle.dumps(inner))(2) == 3


def test_loops_that_take_a_rule_prepare_each_one(monkeypatch: pytest.MonkeyPatch) -> None:
    form = types.float64(types.float64[::1])

    @njit(signature=types.float64(types.FunctionType(form), types.float64[::1]))
    def loop(rule: Any, values: Any) -> float:
        return float(rule(values))

    first, second = njit(signature=form)(total), njit(signature=form)(total)
    with without_interpreting():
        for rule in (first, second):
            assert loop(rule, np.ones(3)) == 3.0
            assert rule.signatures == [form.args]


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


def fresh(*functions: Function) -> list[Any]:
    """The same functions, compiled for nothing yet, the callees known by name to the later ones."""
    made: dict[str, Any] = {}
    for each in functions:
        plain: Any = each.py_func
        made[plain.__name__] = njit(type(plain)(plain.__code__, {**plain.__globals__, **made}, plain.__name__))
    return list(made.values())


def test_compiled_code_calls_what_is_not_compiled_yet_and_so_does_numba_s_own() -> None:
    leaf, middle, top = fresh(third, twice_third, entry)
    with without_interpreting():
        assert top(2.0) == 2.0 / 3 + 2.0 / 3 + 2.0 / 3
        assert top.signatures == [(types.float64,)]  # what it calls may lie compiled in it on disk
        with pytest.raises(ValueError, match="negative"):
            top(-1.0)

    @numba.njit
    def outside(x: float) -> float:
        return float(middle(x) + leaf(x))

    assert outside(2.0) == 2.0 / 3 + 2.0 / 3 + 2.0 / 3


def test_threads_that_ask_at_once_get_what_they_asked_for() -> None:
    functions, found = fresh(third, twice_third, entry), []
    together = threading.Barrier(3)

    def ask(function: Function) -> None:
        with without_interpreting():
            together.wait()
            found.append(function(2.0))

    threads = [threading.Thread(target=ask, args=(each,)) for each in functions]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [2.0 / 3, 2.0 / 3 + 2.0 / 3, 2.0 / 3 + 2.0 / 3 + 2.0 / 3]


def test_what_is_used_of_numba_beyond_its_documentation_is_there() -> None:
    """Each by its name: which one a release of numba took away, or gave another meaning."""
    for option in ("_nrt", "forceinline", "no_cpython_wrapper", "no_cfunc_wrapper"):
        numba.njit(**{option: False})(total)
    assert isinstance(numba.config.CACHE_DIR, str)
    signature = types.float64(types.float64[::1])
    made = numba.njit(total)
    made.compile(signature.args)
    assert made.signatures == [signature.args]
    assert made.get_overload(signature)(np.ones(3)) == 3.0
    assert sum(made.stats.cache_misses.values()) == 1  # nothing was on disk
    made.disable_compile()
    with pytest.raises(TypeError):
        made(np.ones(3, dtype=np.int64))


def test_nothing_else_of_numba_is_used() -> None:
    package = HERE.parent / "optsched"
    found: dict[str, list[str]] = {"numba.core": [], "llvmlite": [], "numba.np": [], "_nrt": [], "numba.config.C": []}
    for file in package.rglob("*.py"):
        for word, where in found.items():
            if word in file.read_text(encoding="utf-8"):
                where.append(file.name)
    assert found.pop("_nrt") == ["function.py"]
    assert found.pop("numba.config.C") == ["kept_code.py"]
    assert not any(found.values())


@given(st.integers(0, 3), st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=60))
def test_push_and_pop_are_heapq(base: int, steps: list[int | None]) -> None:
    # None: pop. The heap stands somewhere inside a longer array whose rest must stay untouched.
    array = np.full(base + len(steps) + 2, 99, dtype=np.int64)
    size, mirror = 0, []
    for value in steps:
        if value is not None:
            heapq.heappush(mirror, value)
            size = push(array, base, size, value)
        elif mirror:
            assert pop(array, base, size) == heapq.heappop(mirror)
            size -= 1
        assert size == len(mirror)
        assert sorted(array[base : base + size].tolist()) == sorted(mirror)
    assert (array[:base] == 99).all()
    assert (array[base + len(steps) :] == 99).all()


class Greedy:
    """Starts what fits; waits a thousand seconds for the compiler each time that it is asked."""

    name = "greedy"
    knowledge = "non-clairvoyant"

    def decide(self, view: Any) -> Any:
        waits_for_the_compiler()
        return [osd.Start(job) for job in view.waiting[:1] if view.fits(job)]


def waits_for_the_compiler(*_: Any) -> None:
    """What `Function.compile` notes when it has taken a thousand seconds."""
    compiled._spent.compiling += 1000.0
    compiled._spent.waiting += 1000.0


@pytest.mark.parametrize(
    ("source", "policy"),
    [
        ("rigid-06-1", "fifo"),
        ("rigid-06-1", Greedy()),
        ("contention-cluster", "srsf"),
        ("sharing-cluster", "sjf-bsbf"),
        ("hetero", "hadar-e"),
    ],
    ids=["orders", "plain Python", "tasks", "shared GPUs", "forks"],
)
def test_seconds_of_a_run_are_without_compiling(source: str, policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (iterations, engine):
        monkeypatch.setattr(room, "SLICE", 5)  # so that a small run tells of its progress, too
    monkeypatch.setattr(engine, "PLAIN_SLICE", 5)
    instance = osd.generate("hetero-small", seed=1) if source == "hetero" else osd.load(source, limit=4)
    assert osd.simulate(instance, policy, progress=waits_for_the_compiler).seconds < 0


def test_seconds_of_a_solution_are_without_compiling() -> None:
    assert osd.solve("rigid-06-1", progress=waits_for_the_compiler).seconds < 0


NOTHING = """
import json, sys
from optsched.cli import main
from optsched.compiled import FUNCTIONS
codes = []
for call in json.loads(sys.argv[1]):
    sys.argv = ["optsched", *call]
    try:
        main()
        codes.append(0)
    except SystemExit as end:
        codes.append(end.code or 0)
print(json.dumps([codes, [f"{f.py_func.__module__}.{f.py_func.__name__}" for f in FUNCTIONS if f.signatures]]))
"""


def compiled_by(calls: list[list[str]], folder: Path) -> list[Any]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", NOTHING, json.dumps(calls)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.compiled
def test_small_runs_and_all_that_computes_nothing_need_no_compiler(tmp_path: Path) -> None:
    calls = [
        ["list", "policies"],
        ["generate", "rigid", "--set", "jobs=6", "-o", "six.json"],
        ["convert", "six.json", "-o", "six.parquet"],
        ["bound", "six.json", "-o", "bound.json"],
        ["verify", "bound.json", "--instance", "six.json"],
        ["run", "cluster-week", "-p", "fifo", "-p", "srtf+consolidated"],
        ["run", "contention-cluster", "--limit", "2", "-p", "srsf"],
        ["run", "rigid-06-1", "--interference", "1.2", "-p", "sjf-bsbf"],
        ["solve", "rigid-06-1"],
        ["run", "no-such-file.json"],
    ]
    assert compiled_by(calls, tmp_path) == [[0] * 9 + [2], []]
