"""`TransferProblem` refuses what is no transfer, and says which one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.problem.contention import ETHERNET_10G, Contention
from optsched.problem.transfers import TransferProblem


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
        problem.links = ()  # type: ignore[misc]


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
    with pytest.raises(InputError) as error:
        TransferProblem(**{**fields, **change})  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    for name in names:
        assert name in str(error.value)
