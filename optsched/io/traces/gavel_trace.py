"""Dialect ``gavel``: the traces of the Gavel simulator and its descendants. Tab-separated, no header, no quotes.

The number of columns names the variant:

=======  ========================================================================================================
columns  names in order
=======  ========================================================================================================
6        job_type, command, num_steps_arg, total_steps, arrival_time, scale_factor  (the repository's first traces)
7        the same with needs_data_dir after num_steps_arg  (legacy)
9        job_type, command, num_steps_arg, needs_data_dir, total_steps, scale_factor, priority_weight, SLO,
         arrival_time
10       the same with working_directory after command  (today's Gavel)
12       the same with mode after scale_factor and duration before arrival_time  (Shockwave)
=======  ========================================================================================================

An example row of the 10-column variant (tabs shown as ``|``)::

    ResNet-18 (batch size 128)|python3 main.py ...|image_classification/cifar10|--num_steps|1|925982|4|1|-1.000000|0

===============  ==============================  ================================================================
column           unit                            becomes
===============  ==============================  ================================================================
job_type         model (batch size n)            ``profile``, the key of Gavel's throughput tables, and ``model``
total_steps      steps > 0                       ``iterations``
scale_factor     integer >= 1                    ``gpus``
priority_weight  number >= 0                     ``weight``
SLO              multiple of the run time;       ``due`` = arrival + SLO x duration where the file has a duration;
                 -1: none                        else not kept, as in Gavel itself: the run time is not known yet
arrival_time     seconds >= 0                    ``arrival``, as it stands
duration         seconds > 0 (Shockwave only)    ``duration``; it counts, iterations become metadata
mode             text (Shockwave only)           not modelled, and said so, unless it is ``static``: see below
needs_data_dir   0 or 1                          not kept; anything else is a file of other columns
command, ...     text                            not kept. A command is data and is never executed
===============  ==============================  ================================================================

``mode`` says how a job changes its batch size while it runs (``accordion``, ``gns``). In which epochs it does stands in the
code of Shockwave, and how fast it runs then in its measurements, not in a trace; ``duration`` is total_steps over the rate
at the **first** batch size. In the authors' own simulation of their 120 jobs the first one runs for 1,182.6 s, not for
1,418 s, and all of them use 11 % fewer GPU-seconds. Here a job runs for its ``duration``; loading says how many jobs that
concerns, and the recipe of the instance keeps it (``not_modelled``).

A job bears the number of its line. Originals, read as published: of stanford-futuredata/gavel (MIT; D. Narayanan et al.,
"Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020) in ``scheduler/``: ``debug.trace``
(6 columns, first rows), ``traces/msr/seed=0/103959.trace`` (7), ``traces/physical_cluster/{max_min_fairness,small_test,
medium_test}.trace`` (10); of uw-mad-dash/shockwave (MIT, NSDI 2023) the trace of 120 jobs in ``scheduler/traces/reproduce/``
(12). No published file of 9 columns was tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.log_reading import NOT_MODELLED
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table

STATIC = "static"  # the mode of a job that keeps its batch size
_START = ("job_type", "command")
_STEPS = ("num_steps_arg", "needs_data_dir", "total_steps")
_END = ("priority_weight", "SLO")
VARIANTS = {
    6: (*_START, "num_steps_arg", "total_steps", "arrival_time", "scale_factor"),
    7: (*_START, *_STEPS, "arrival_time", "scale_factor"),
    9: (*_START, *_STEPS, "scale_factor", *_END, "arrival_time"),
    10: (*_START, "working_directory", *_STEPS, "scale_factor", *_END, "arrival_time"),
    12: (*_START, "working_directory", *_STEPS, "scale_factor", "mode", *_END, "duration", "arrival_time"),
}


def recognises(lines: Sequence[str]) -> bool:
    """Return True if the first lines of a file are those of such a trace: a known number of fields, and an option.

    Parameters
    ----------
    lines
        The first lines.
    """
    rows = [line.split("\t") for line in lines]
    return all(len(row) in VARIANTS and any(field.startswith("-") for field in row[2:5]) for row in rows)


@dialect("gavel", recognises=recognises)
def read(request: TraceRequest) -> TraceRead:
    """Gavel: tab-separated without header, 10 columns (today), 6 or 7 (legacy), 9, or 12 (Shockwave).

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(read_text_table(request.path, separator="\t", names=VARIANTS))
    profile = rows.text("job_type")
    jobs = {
        "profile": profile,
        "model": profile.str.replace(r"\s*\(batch size \d+\)$", ""),
        "iterations": (rows.count_for_information if "duration" in rows.columns else rows.positive)("total_steps"),
        "gpus": rows.gang("scale_factor"),
        "arrival": rows.non_negative("arrival_time"),
    }
    if "needs_data_dir" in rows.columns:
        rows.number("needs_data_dir", least=0, below=2, whole=True, legal="0 or 1")
    notes = {"columns_in_file": len(rows.columns)}
    if "priority_weight" in rows.columns:
        jobs["weight"] = rows.non_negative("priority_weight")
        slo = rows.number("SLO")
        if "duration" in rows.columns:
            jobs["duration"] = rows.positive("duration")
            del jobs["profile"]
            due = jobs["arrival"] + slo * jobs["duration"]
            jobs["due"] = pl.select(pl.when(slo > 0).then(due).alias("due")).to_series()
        else:
            notes["slo_not_kept"] = int((slo > 0).sum())
    read = finish(request, rows, jobs, notes=notes)
    return _say_modes(read, rows) if "mode" in rows.columns else read


def _say_modes(read: TraceRead, rows: Rows) -> TraceRead:
    """Record in the recipe, by mode, how many of the kept jobs change their batch size while they run."""
    kept = rows.line.cast(pl.String).is_in(read.table["id"].to_list())
    modes = Counter(rows.text("mode", required=False).filter(kept).fill_null("no mode").to_list())
    del modes[STATIC]
    if not modes:
        return read
    counts = " and ".join(f"{count} {mode}" for mode, count in sorted(modes.items()))
    line = (
        f"mode is not modelled: {counts} of {read.table.height} jobs change their batch size as they run, and the duration "
        "in the file is that at the first one; the authors' own simulation runs such jobs for another, mostly shorter time"
    )
    parameters = {**read.recipe["parameters"], "modes": dict(sorted(modes.items())), NOT_MODELLED: [line]}
    return replace(read, recipe={**read.recipe, "parameters": parameters})
