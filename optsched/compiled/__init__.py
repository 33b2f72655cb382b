"""Code that numba compiles: when (`function`), and where it is kept (`kept_code`)."""

from numba import types

from optsched.compiled.function import (
    FUNCTIONS,
    INLINED,
    INNER,
    KERNEL,
    NESTED,
    Function,
    Stopwatch,
    njit,
    record,
    runs_compiled,
    seconds_waited,
    slice_of,
    waiting_of_this_thread,
    without_interpreting,
    worked,
)

__all__ = [
    "FUNCTIONS",
    "INLINED",
    "INNER",
    "KERNEL",
    "NESTED",
    "Function",
    "Stopwatch",
    "njit",
    "record",
    "runs_compiled",
    "seconds_waited",
    "slice_of",
    "types",
    "waiting_of_this_thread",
    "without_interpreting",
    "worked",
]
