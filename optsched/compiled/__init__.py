"""Code compiled by numba: its compilation (`function`) and its cache (`kept_code`)."""

from numba import types as types

from optsched.compiled.function import (
    FUNCTIONS as FUNCTIONS,
    INLINED as INLINED,
    INNER as INNER,
    KERNEL as KERNEL,
    NESTED as NESTED,
    Function as Function,
    Stopwatch as Stopwatch,
    entry as entry,
    foresee as foresee,
    njit as njit,
    quick_call as quick_call,
    record as record,
    runs_compiled as runs_compiled,
    seconds_waited as seconds_waited,
    slice_of as slice_of,
    waiting_of_this_thread as waiting_of_this_thread,
    without_interpreting as without_interpreting,
    without_machine_code as without_machine_code,
    worked as worked,
)
