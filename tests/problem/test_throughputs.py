"""`Throughputs` and `TransferProblem`: what they refuse, how types match, what a file holds."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import one_line

from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.errors import InputError
from optsched.problem.contention import ETHERNET_10G, Contention
from optsched.problem.throughputs import Throughput, Throughputs

A, B = "ResNet-18 (batch size 128)", "LM (batch size 5)"
TABLE = Throughputs(
    {
        (A, "V100", 1): Throughput(18.0),
        (A, "V100", 2): Throughput(24.0, 24.5),
        (A, "K80", 1): Throughput(1.8, measured=False),
        (B, "v100", 1): Throughput(109.0),
        (B, "V100", 4): Throughput(0.0, 0.0),
    },
    {("V100", (A, 1), (B, 1)): (9.0, 50.0), ("k80", (A, 1), (A, 1)): (1.0, 1.0)},
)


def test_gpu_types_match_without_case_and_job_types_with_it() -> None:
    assert TABLE.get(A, "v100", 2) == TABLE.get(A, "V100", 2) == Throughput(24.0, 24.5)
    assert TABLE.get(A.lower(), "V100", 2) is None
    assert TABLE.get(A, "V100", 3) is None
    assert TABLE.gpu_types == ("V100", "K80")
    assert TABLE.job_types == (A, B)
    assert TABLE.gang_sizes(B, "V100") == (1, 4)
    assert TABLE.gang_sizes(B, "K80") == ()


def test_rates_over_nodes_are_as_together_where_nothing_is_said() -> None:
    assert (Throughput(3).over_nodes, Throughput(3, 2).over_nodes, Throughput(3, 0).over_nodes) == (3, 2, 0)
    assert Throughput(0, 1).fits
    assert Throughput(1, 0).fits
    assert not Throughput(0).fits


def test_pairs_answer_from_either_side() -> None:
    assert TABLE.together_with("v100", (A, 1), (B, 1)) == (9.0, 50.0)
    assert TABLE.together_with("v100", (B, 1), (A, 1)) == (50.0, 9.0)
    assert TABLE.together_with("K80", (B, 1), (A, 1)) is None


def test_a_restricted_table_keeps_rows_and_pairs_of_its_job_types() -> None:
    only = TABLE.restricted([A, "unknown"])
    assert only.job_types == (A,)
    assert len(only.entries) == 3
    assert list(only.pairs) == [("k80", (A, 1), (A, 1))]
    assert TABLE.restricted([A, B]) == TABLE != only


@pytest.mark.parametrize("rate", [-1e-9, math.nan, math.inf, -math.inf, "3", True, None, 10**400])
def test_rates_are_finite_and_not_negative(rate: Any) -> None:
    with pytest.raises(InputError, match=r"together.*invalid \(expected: a finite number of iterations/s >= 0\)"):
        Throughput(rate)
    if rate is not None:
        with pytest.raises(InputError, match="spread"):
            Throughput(1.0, rate)


@pytest.mark.parametrize("gpus", [0, -1, 1.0, True, "2", None])
def test_gangs_are_at_least_one(gpus: Any) -> None:
    with pytest.raises(InputError, match=r"on .* V100 = .*an integer >= 1"):
        Throughputs({(A, "V100", gpus): Throughput(1.0)})
    with pytest.raises(InputError, match="an integer >= 1"):
        Throughputs({}, {("V100", (A, 1), (B, gpus)): (1.0, 1.0)})


@pytest.mark.parametrize(
    ("entries", "pairs", "told"),
    [
        ({(A, "V100"): Throughput(1)}, {}, "job type, GPU type, gang size"),
        ({("", "V100", 1): Throughput(1)}, {}, "job type, GPU type, gang size"),
        ({(A, "V100", 1): 3.0}, {}, "Throughput"),
        ({(A, "V100", 1): Throughput(1), (A, "v100", 1): Throughput(1)}, {}, "given twice"),
        ({}, {("V100", (A, 1), (B, 1)): (1.0,)}, "two rates"),
        ({}, {("V100", (A, 1), (B, 1)): (1.0, -2.0)}, "-2.0"),
        ({}, {("V100", (A, 1), B): (1.0, 2.0)}, "two rates"),
    ],
)
def test_what_is_no_table_is_refused(entries: Any, pairs: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Throughputs(entries, pairs)


def test_a_table_comes_back_from_its_file() -> None:
    document = json.loads(json.dumps(TABLE.to_json()))
    assert document[A][1] == {"gpu": "V100", "gpus": 2, "together": 24.0, "spread": 24.5}
    assert document[A][2] == {"gpu": "K80", "gpus": 1, "together": 1.8, "measured": False}
    back = Throughputs.from_json(document)
    assert back.to_json() == document
    assert back.entries == TABLE.entries
    assert back.pairs == {}


rates = st.floats(0, 1e9)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from([A, B]), st.sampled_from(["K80", "V100"]), st.integers(1, 9)),
        st.builds(Throughput, rates, st.none() | rates, st.booleans()),
    )
)
def test_any_table_comes_back(entries: dict[tuple[str, str, int], Throughput]) -> None:
    table = Throughputs(entries)
    back = Throughputs.from_json(json.loads(json.dumps(table.to_json())))
    assert back == table
    assert all(back.get(*key) == entry for key, entry in entries.items())


def test_a_row_given_twice_is_refused_by_name() -> None:
    row = {"gpu": "V100", "gpus": 1, "together": 1}
    with one_line(match=r"throughputs\.*.*\.1: .*given twice"):
        Throughputs.from_json({A: [row, row | {"together": 2}]})


# -- `TransferProblem` refuses what is no transfer, and says which one ----------------------------------------------------


def test_all_share_one_link_unless_told_otherwise() -> None:
    problem = TransferProblem([0.0, 1.0], [1e6, 2e6], ETHERNET_10G)
    assert (problem.n, problem.links, problem.link_numbers, problem.users(0)) == (2, ((0,), (0,)), (0,), (0, 1))
    assert problem.alone.tolist() == [0.856e-9 * 1e6, 0.856e-9 * 2e6]


def test_links_are_sorted_and_found() -> None:
    problem = TransferProblem([0, 0, 0], [1, 2, 3], ETHERNET_10G, ((7, 2), (2,), (np.int64(9),)))
    assert (problem.links, problem.link_numbers) == (((2, 7), (2,), (9,)), (2, 7, 9))
    assert [problem.users(link) for link in (2, 7, 9, 1)] == [(0, 1), (0,), (2,), ()]


def test_it_is_its_own_and_frozen() -> None:
    size = np.array([1.0, 2.0])
    problem = TransferProblem([0, 0], size, ETHERNET_10G)
    size[0] = 5.0
    assert problem.size.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        problem.size[0] = 3.0
    with pytest.raises(AttributeError):
        problem.links = ()


def test_no_transfers_are_legal() -> None:
    assert TransferProblem([], [], ETHERNET_10G).link_numbers == ()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"size": [1.0, 0.0]}, ["transfer 1, size = 0.0", "transfer of 0 bytes", "> 0"]),
        ({"size": [-1.0, 1.0]}, ["transfer 0, size = -1.0", "> 0"]),
        ({"size": [1.0, math.nan]}, ["transfer 1, size = nan", "> 0"]),
        ({"size": [math.inf, 1.0]}, ["transfer 0, size = inf", "> 0"]),
        ({"size": "no numbers"}, ["size"]),
        ({"size": [[1.0, 2.0]]}, ["size = (1, 2)", "one number for each"]),
        ({"release": [0.0, -1.0]}, ["transfer 1, release = -1.0", ">= 0"]),
        ({"release": [0.0, math.inf]}, ["transfer 1, release = inf", "finite"]),
        ({"release": [0.0]}, ["release = 1", "2 numbers"]),
        ({"links": ((0,),)}, ["links = 1", "2 tuples"]),
        ({"links": ((0,), ())}, ["transfer 1, links = ()", "at least one"]),
        ({"links": ((0,), (-1,))}, ["transfer 1, links = (-1,)", ">= 0"]),
        ({"links": ((3, 3), (0,))}, ["transfer 0, links = (3, 3)", "once"]),
        ({"links": ((True,), (0,))}, ["transfer 0, links", "integers"]),
        ({"links": ((0.5,), (0,))}, ["transfer 0, links", "integers"]),
        ({"links": (0, 0)}, ["transfer 0, links = 0", "at least one"]),
        ({"contention": Contention(1.0, -0.5)}, ["contention.penalty = -0.5", ">= 0"]),
        ({"contention": Contention(1.0, 0.1, 2.0)}, ["contention.latency = 2.0", "expected: 0"]),
        ({"contention": Contention(1.0, kinds=("a",), ratios=((0.5,),))}, ["contention.ratios"]),
    ],
)
def test_what_is_not_legal_is_named(change: dict[str, object], names: list[str]) -> None:
    fields: dict[str, object] = {"release": [0.0, 1.0], "size": [1.0, 2.0], "contention": ETHERNET_10G, "links": ()}
    with one_line(*names):
        TransferProblem(**{**fields, **change})
