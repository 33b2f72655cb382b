"""Dialect ``azure-llm``: requests of language models at Azure, 2023.

Comma-separated, with a header::

    TIMESTAMP,ContextTokens,GeneratedTokens
    2023-11-16 18:15:46.6805900,374,44

===============  ==========================  =======================================================================
column           unit                        becomes
===============  ==========================  =======================================================================
TIMESTAMP        date-time                   ``arrival`` in rounds from the first request on, rounded down
ContextTokens    tokens of the prompt        ``profile`` ``prompt-S``
GeneratedTokens  tokens of the answer        ``iterations``; 0 counts as 1
===============  ==========================  =======================================================================

``azure-llm:FILE#cells=65536,round=0.05`` states the cells of the cache (16,492) and the seconds of a round (0.2; ``affine``:
rounds of affine length, arrivals in seconds). ``most=8000`` is the largest peak, other requests are left out; ``first=2000``
leaves out that number of the others, too; ``at-once=true`` lets all arrive at 0.

Source: ``AzureLLMInferenceTrace_conv.csv`` and ``_code.csv`` of Azure/AzurePublicDataset (CC-BY-4.0). Cite P. Patel et al.,
"Splitwise", ISCA 2024.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.classes.kv_cache.problem.requests import PROMPT, worker
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.generate import integer, number, settings, yes_or_no
from optsched.io.traces.rows import Rows, seconds_of_date_times
from optsched.io.traces.text_table import read_text_table
from optsched.registry import check_known

HEADER = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
USUAL = "cells=16492,round=0.2,most=8000,first=0,at-once=false"
STATED = {
    "cells": integer(16_492, "cells of the cache", least=2, most=10**9),
    "most": integer(8000, "largest peak"),
    "first": integer(0, "requests that are left out", least=0),
    "at_once": yes_or_no(False, "all requests arrive at 0"),
}


@dialect("azure-llm", header=HEADER, fragment=USUAL, brings_cluster=True)
def read(request: TraceRequest) -> TraceRead:
    """Azure's requests of language models, 2023: arrival, prompt and answer in tokens.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    given = settings((request.fragment or "round=0.2").split(","), option="#")
    length = given.pop("round", "0.2")
    affine = length == "affine"
    seconds_each = number(1.0, "").resolve("azure-llm", "round", None if affine else length)
    for name in given:
        check_known(name, STATED, "field", "the dialect has no such field", field="#")
    stated = {name: each.resolve("azure-llm", name, given.get(name)) for name, each in STATED.items()}
    rows = Rows(read_text_table(request.path))
    require_header(rows, HEADER)
    prompt = rows.number("ContextTokens", least=0, whole=True)
    output = rows.number("GeneratedTokens", least=0, whole=True).clip(1)
    seconds = seconds_of_date_times(rows.text("TIMESTAMP"))
    rows.reject(seconds.is_null(), "TIMESTAMP", "a date-time, e.g. 2023-11-16 18:15:46.6805900", "invalid")
    most = min(stated["most"], stated["cells"])
    rows.leave_out(prompt + output > most, f"peaks above {most:,} cells")
    kept = rows.good.to_numpy()
    rows.leave_out(pl.Series(kept & (np.cumsum(kept) <= stated["first"])), "the first ones")
    begin = seconds.filter(rows.good)
    arrival = (seconds - begin.min() if len(begin) and not stated["at_once"] else seconds * 0).clip(0)
    jobs = {
        "arrival": arrival if affine else (arrival / seconds_each).floor(),
        "gpus": pl.Series([1]).new_from_index(0, rows.count),
        "iterations": output.cast(pl.Float64),
        "profile": PROMPT + prompt.cast(pl.Int64).cast(pl.String),
    }
    place = worker(stated["cells"], affine=affine)
    return finish(request, rows, jobs, cluster=place, objective="total_flow_time")
