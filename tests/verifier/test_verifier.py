"""The verifier on documents: what it accepts is true, what somebody touched it refuses, and hostile files in one line."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds.cases import SUMS
from bounds.tampering import gangs, untouched
from bounds.test_lp_dual import cases
from examples import examples
from hypothesis import given, settings, strategies as st
from problem.documents import Change, put

from optsched.bounds import BOUNDS
from optsched.bounds.lp_dual import Prices, price_certificate
from optsched.problem.instance import Instance, Job
from optsched.verifier import document_fields, refusal
from optsched.verifier.judgement import verify
from optsched.verifier.stated_speeds import lower_hull
from verifier.certified_cases import exit_code, holds_for_optsched

CLASSES = ("gang", "gang-nonpreemptive")


code = exit_code
PARTS = st.sampled_from([1, 3, 7, 2**20])


@given(st.lists(st.tuples(st.integers(1, 9), PARTS, st.integers(0, 9), PARTS), max_size=8))
def test_the_hull_is_convex_below_all_points_and_its_corners_are_points(drawn: list[tuple[int, int, int, int]]) -> None:
    points = [(Fraction(a, b), Fraction(c, d)) for a, b, c, d in drawn]
    rate, cost, corners = Fraction(0), Fraction(0), [(Fraction(0), Fraction(0))]
    pieces = lower_hull(points)
    assert [slope for slope, _ in pieces] == sorted({slope for slope, _ in pieces})
    for slope, width in pieces:
        rate, cost = rate + width, cost + slope * width
        corners.append((rate, cost))
    assert corners[-1][0] == max((rate for rate, _ in points), default=0)
    assert set(corners[1:]) <= set(points)
    for at, above in points:
        k = next(k for k, (corner, _) in enumerate(corners) if corner >= at)
        assert above >= corners[k][1] - pieces[k - 1][0] * (corners[k][0] - at)


# --- what holds -----------------------------------------------------------------------------------------------------------


def test_gpu_types_memory_and_labels_are_part_of_the_instance(tmp_path: Path) -> None:
    jobs = [Job("a", 3, 2, 5, gpu_types=("V100",), gpu_memory=7, user="u"), Job("b", duration=2.5, profile="x")]
    instance = Instance(jobs, "2x4:V100+1x2:K80", "named", objective="makespan", recipe={"name": "any"})
    certificate = BOUNDS.get("srpt").build(instance, "total_flow_time", "gang")
    assert certificate is not None
    instance.save(tmp_path / "i.json")
    assert code(certificate.to_json(), json.loads((tmp_path / "i.json").read_text())) == 0
    other = Instance([jobs[0], Job("b", duration=2.5, profile="y")], "2x4:V100+1x2:K80")
    assert code(certificate.to_json(), other) == 1


# --- what does not --------------------------------------------------------------------------------------------------------


def touched(value: Any, rng: np.random.Generator) -> Any:
    """A JSON value that is not the one it was; of lists and objects one entry."""
    if isinstance(value, dict) and value:
        name = sorted(value)[int(rng.integers(0, len(value)))]
        return {**value, name: touched(value[name], rng)}
    if isinstance(value, list) and value:
        at = int(rng.integers(0, len(value)))
        return [*value[:at], touched(value[at], rng), *value[at + 1 :]]
    if isinstance(value, bool) or value is None:
        return 1
    if isinstance(value, int):
        return value + int(rng.choice([-1, 1, 7]))
    if isinstance(value, str) and value[-1:].isdigit() and value.lstrip("-")[0].isdigit() and len(value) != 64:
        return str(Fraction(value) + Fraction(int(rng.choice([-1, 1])), int(rng.choice([1, 3, 10**30]))))
    return f"{value}x" if isinstance(value, str) else [0]


@given(cases(), st.sampled_from(SUMS), st.sampled_from(CLASSES), st.data())
@settings(max_examples=examples(40))
def test_prices_are_judged_as_optsched_judges_them(
    case: tuple[Instance, Prices], objective: str, schedule_class: str, data: st.DataObject
) -> None:
    instance, some = case
    doc = price_certificate(instance, objective, schedule_class, some).to_json()
    assert code(doc, instance) == 0
    j = data.draw(st.integers(0, instance.n - 1))
    more = Fraction(
        1, 10 ** data.draw(st.integers(0, 20))
    )  # of a job, and of the sum: the dual is not feasible any more
    doc["data"]["jobs"][j] = str(Fraction(doc["data"]["jobs"][j]) + more)
    assert code(doc, instance) == 1
    doc["value"] = str(Fraction(doc["value"]) + more)
    doc["data"]["rounded"] = False
    assert code(doc, instance) == 1
    assert not holds_for_optsched(doc, instance)


# --- files that nobody vouches for ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "touch",
    [
        put("jobs", to=None),
        put("jobs", 0, to=7),
        put("jobs", 0, "gpus", to=10**30),
        put("jobs", 0, "gpus", to=True),
        put("jobs", 0, "duration", to=None),
        put("jobs", 0, "duration", to=float("nan")),
        put("jobs", 0, "duration", to=10**400),
        put("jobs", 0, "arrival", to=-1),
        put("jobs", 0, "weight", to="1"),
        put("jobs", 0, "colour", to="red"),
        put("cluster", to=[]),
        put("cluster", "nodes", 0, "count", to=10**9),
        put("cluster", "nodes", to=[{"gpus": 10**7, "count": 10**7}]),
    ],
)
def test_an_instance_that_is_not_legal_or_not_known_cannot_be_judged(touch: Change) -> None:
    assert code(untouched("srpt"), touch(gangs().to_json())) == 2


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1, 2]", "3", "null", "\x00\x01", "[" * 100_000, '{"format": 1, "format": 2}', "9" * 5000, "\\ud800"],
)
def test_no_json_object_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(refusal.Refused) as refused:
        document_fields.read_file(str(tmp_path / "c.json"), "optsched-certificate/1")
    assert refused.value.rule == refusal.UNJUDGED
    assert "\n" not in str(refused.value)


def test_files_that_are_too_long(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"format": "optsched-certificate/1"}' + " " * document_fields.MOST_BYTES)
    with pytest.raises(refusal.Refused, match="at most"):
        document_fields.read_file(str(tmp_path / "c.json"), "optsched-certificate/1")


@pytest.mark.parametrize("kind", ["shared-srpt", "elastic-volume", "task-path", "own-kind"])
def test_kinds_that_are_not_known_here_are_left_to_optsched(kind: str) -> None:
    instance = gangs()
    with pytest.raises(refusal.Refused, match="use optsched verify") as refused:
        verify({**untouched("srpt"), "kind": kind}, instance.to_json())
    assert refused.value.rule == refusal.UNJUDGED
