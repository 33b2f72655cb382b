"""Parameters: typed from values and from the text of the command line, or refused with what is legal."""

from __future__ import annotations

from typing import Any

import pytest

from optsched.errors import InputError
from optsched.io.traces import generate as of
from optsched.problem.cluster import Cluster


@pytest.mark.parametrize(
    ("parameter", "given", "expected"),
    [
        (of.integer(3, "m"), "7", 7),
        (of.integer(3, "m"), 7, 7),
        (of.integer(3, "m"), "1e3", 1000),
        (of.integer(3, "m"), None, 3),
        (of.integer(None, "m"), None, None),
        (of.integer(0, "m", least=0), "0", 0),
        (of.number(None, "m"), "0.5", 0.5),
        (of.non_negative(0.6, "m"), "0", 0.0),
        (of.choice("a", ("a", "b"), "m"), "b", "b"),
        (of.yes_or_no(False, "m"), "true", True),
        (of.yes_or_no(True, "m"), False, False),
        (of.cluster("8x8"), "2x4", Cluster.parse("2x4")),
        (of.cluster("8x8"), Cluster.parse("2x4"), Cluster.parse("2x4")),
    ],
)
def test_values_that_are_legal(parameter: of.Parameter, given: Any, expected: Any) -> None:
    found = parameter.resolve("test", "key", given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        (of.integer(3, "m"), "0"),
        (of.integer(3, "m"), "1.5"),
        (of.integer(3, "m"), "many"),
        (of.integer(3, "m"), "inf"),
        (of.integer(3, "m"), "nan"),
        (of.integer(3, "m"), True),
        (of.integer(3, "m"), [4]),
        (of.integer(3, "m"), 10**9),
        (of.number(1.0, "m"), "0"),
        (of.number(1.0, "m"), "nan"),
        (of.number(1.0, "m"), "-1"),
        (of.non_negative(1.0, "m"), "-0.1"),
        (of.non_negative(1.0, "m"), "inf"),
        (of.choice("a", ("a", "b"), "m"), "c"),
        (of.yes_or_no(False, "m"), "maybe"),
    ],
)
def test_values_that_are_not_legal(parameter: of.Parameter, given: Any) -> None:
    with pytest.raises(InputError) as caught:
        parameter.resolve("test", "key", given)
    text = str(caught.value)
    assert "recipe test" in text
    assert f"key = {given!r}" in text
    assert parameter.legal in text


def test_every_recipe_documents_its_parameters() -> None:
    for name, each in of.RECIPES.items():
        assert each.name == name
        assert each.summary.endswith(".")
        assert all(parameter.meaning and parameter.legal for parameter in each.parameters.values())
        assert "jobs" in each.parameters
