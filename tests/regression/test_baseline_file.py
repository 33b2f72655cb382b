"""A baseline that somebody damaged is refused in one line, or says what its numbers say; it never lets worse ones pass."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from examples import studied
from refusals import one_line

from optsched.errors import InputError
from optsched.evaluation import ratio_baseline as baseline
from optsched.evaluation.measured_ratio import BoundShown, MeasuredRatio
from optsched.evaluation.suite_ratios import PolicyRatios
from optsched.regression.baseline_file import FIRST, FORMAT, compared, compared_alone, entry, has_digests, read, update

pytestmark = pytest.mark.release

BOUND = BoundShown(100.0, "known-optimum", "gang-nonpreemptive", True)
ZERO = BoundShown(0.0, "known-optimum", "gang-nonpreemptive", True)
TEST = "test_it.py::test_it"
DIGESTS = {f"i{k}": f"{k}" * 64 for k in range(3)}


def part(*values: float, bound: BoundShown | None = BOUND, objective: str = "makespan") -> PolicyRatios:
    rows = (MeasuredRatio(f"i{k}", objective, "p", value, bound) for k, value in enumerate(values))
    return PolicyRatios("p", tuple(rows))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").touch()
    update(tmp_path / "kept.json", {TEST: {"p": entry(part(110.0, 150.0, 125.0), DIGESTS)}}, tmp_path)
    return tmp_path / "kept.json"


BROKEN: list[Any] = [
    5,
    [],
    {"t": 5},
    {"t": {"p": 5}},
    {"t": {"p": {"mean": 1.0, "worst_instance": "i", "without": 0, "instances": {"i": 1.0}}}},
    {"t": {"p": {"worst": "1.0", "worst_instance": "i", "mean": 1.0, "without": 0, "instances": {"i": 1.0}}}},
    {"t": {"p": {"worst": 2.0, "worst_instance": "i", "mean": 1.0, "without": 0, "instances": {"i": 1.0}}}},
    {"t": {"p": {"worst": None, "worst_instance": "i", "mean": None, "without": 0, "instances": {"i": 1.0}}}},
    {"t": {"p": {"worst": 10**400, "worst_instance": "i", "mean": 1.0, "without": 0, "instances": {"i": 1.0}}}},
    {"t": {"p": {"worst": math.nan, "worst_instance": "i", "mean": 1.0, "without": 0, "instances": {"i": 1.0}}}},
    {"t": {"p": {"worst": math.inf, "worst_instance": "i", "mean": 1.0, "without": 0, "instances": {"i": 1.0}}}},
    {"t": {"p": {"worst": 1.0, "worst_instance": "i", "mean": 1.0, "without": 0, "instances": {"i": -1.0}}}},
]


@pytest.mark.parametrize("tests", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_baseline_is_refused_in_one_line(written: Any, tests: Any) -> None:
    path = written({"format": FIRST, "tests": tests}, "kept.json")
    with one_line(match=r"kept\.json, tests.*: (invalid|missing|there is no such field)"):
        read(path)
    path = written({"format": FORMAT, "tests": _with_instances(tests)}, "kept.json")
    with one_line(match=r"kept\.json, tests.*: (invalid|missing|there is no such field)"):
        read(path)


def _with_instances(tests: Any) -> Any:
    """The same in the format of today, where an instance is more than its ratio."""
    tests = json.loads(json.dumps(tests))
    for each in [one for labels in [tests] if isinstance(labels, dict) for one in labels.values()]:
        kept = each.get("p") if isinstance(each, dict) else None
        if isinstance(kept, dict):
            kept["instances"] = {
                name: {"digest": "0" * 64, "ratio": ratio} for name, ratio in kept["instances"].items()
            }
    return tests


@pytest.mark.parametrize(
    "wrong",
    [
        1.0,
        {},
        {"digest": "0" * 64, "ratio": None},
        {"digest": "0" * 64, "ratio": None, "value": "10"},
        {"digest": "0" * 64, "ratio": 1.0, "value": 10.0},
        {"digest": "xyz", "ratio": 1.0},
        {"digest": 5, "ratio": 1.0},
        {"ratio": None, "value": 10.0, "extra": 1},
    ],
    ids=str,
)
def test_an_instance_has_a_digest_and_either_a_ratio_or_a_value(written: Any, wrong: Any) -> None:
    ratio = 1.0 if isinstance(wrong, float) or wrong.get("ratio") else None
    one = {"worst": ratio, "worst_instance": "i", "mean": ratio, "without": 0, "instances": {"i": wrong}}
    path = written({"format": FORMAT, "tests": {TEST: {"p": one}}}, "kept.json")
    with one_line(match=r"kept\.json, tests.*instances\.i.*: (invalid|missing|there is no such field)"):
        read(path)


def kept_of(path: Path, measured: PolicyRatios) -> Any:
    """An entry as it is read from the file to which it was written."""
    (path.parent / "test_it.py").touch()
    update(path, {TEST: {"p": entry(measured, DIGESTS)}}, path.parent)
    return read(path)[TEST]["p"]


def said(*arguments: Any, factor: float = baseline.WORSE) -> str:
    return "; ".join(each.text for each in compared(*arguments, factor))


def test_where_there_is_no_ratio_values_are_compared(tmp_path: Path) -> None:
    then = kept_of(tmp_path / "kept.json", part(10.0, 20.0, bound=ZERO))
    assert then["instances"]["i0"] == {"digest": "0" * 64, "ratio": None, "value": 10.0, "bound": 0.0}
    for fine in ((10.1, 20.0), (5.0, 20.2), (0.0, 0.0)):
        assert not said(part(*fine, bound=ZERO), DIGESTS, then)
    worse = said(part(10.2, 199920.0, bound=ZERO), DIGESTS, then)
    assert "makespan rose from 10 to 10.2, on the instance i0 (optimum 0, so there is no ratio)" in worse
    assert "rose from 20 to 199920, on the instance i1" in worse
    assert said(part(10.001, 20.0, bound=ZERO), DIGESTS, then, factor=1.0)
    (alone,) = compared_alone(PolicyRatios("p", part(11.0, bound=ZERO).measured), DIGESTS, then, baseline.WORSE)
    assert alone.instance == "i0"
    # a bound that is found later makes ratios, with which nothing can be compared but values
    assert not said(part(10.0, 20.0), DIGESTS, then)
    assert "rose from 10 to 30" in said(part(30.0, 20.0), DIGESTS, then)


def test_of_a_gain_a_smaller_value_is_worse(tmp_path: Path) -> None:
    then = kept_of(tmp_path / "kept.json", part(10.0, bound=None, objective="total_utility"))
    assert not said(part(11.0, bound=None, objective="total_utility"), DIGESTS, then)
    assert "total_utility fell from 10 to 9, on the instance i0 (no bound is known" in said(
        part(9.0, bound=None, objective="total_utility"), DIGESTS, then
    )


def test_an_instance_that_changed_under_its_name_is_named(tmp_path: Path) -> None:
    then = kept_of(tmp_path / "kept.json", part(110.0, 150.0, 125.0))
    other = {**DIGESTS, "i1": "f" * 64}
    line = "the instance i1 is not that of the baseline (digest ffffffff, it was 11111111): run pytest --ratio-update"
    assert said(part(100.0, 100.0, 100.0), other, then).startswith(line)
    assert not compared_alone(part(100.0), other, then, baseline.WORSE)


def test_the_first_format_is_read_and_lacks_digests(written: Any, tmp_path: Path) -> None:
    old = {"worst": 1.1, "worst_instance": "i0", "mean": 1.1, "without": 1, "instances": {"i0": 1.1, "i1": None}}
    path = written({"format": FIRST, "tests": {TEST: {"p": old}}}, "kept.json")
    then = read(path)[TEST]["p"]
    assert not has_digests(then)
    rows = (*part(110.0).measured, *part(0.0, 10.0, bound=ZERO).measured[1:])
    # null let anything pass: what it stands for is not known
    assert said(PolicyRatios("p", rows), DIGESTS, then) == (
        "the baseline has neither a ratio nor a value of the instance i1: run pytest --ratio-update"
    )
    assert "rose from 1.1000" in said(PolicyRatios("p", (*part(120.0).measured, *rows[1:])), DIGESTS, then)
    # tests that did not run keep what there is of them, in the format of today
    (tmp_path / "test_it.py").touch()
    update(path, {"test_it.py::test_new": {"p": entry(part(110.0), DIGESTS)}}, tmp_path)
    assert json.loads(path.read_text())["format"] == FORMAT
    assert read(path)[TEST]["p"] == then
    assert has_digests(read(path)["test_it.py::test_new"]["p"])


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, '{"format": 1}', "[1]", '{"format": "x", "tests": {}}', "null"])
def test_what_is_no_document_is_refused_in_one_line(written: Any, text: str) -> None:
    path = written(text, "kept.json")
    for load in (read, baseline.load):
        with one_line("kept.json"):
            load(path)


def test_the_shipped_baseline_has_finite_ratios_only(written: Any) -> None:
    document = baseline.load()
    document["policies"]["fifo"]["suites"]["single"]["worst"] = math.nan
    with pytest.raises(InputError, match=r"policies\.fifo\.suites\.single\.worst = nan: invalid.*finite"):
        baseline.load(written(document))


NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, -1, 0, 1e308, 10**400, True]
VALUES = [*NUMBERS, None, "1", "", "\x1b[2J", [], {}, [[[[]]]]]


def _mutated(text: str, random: random.Random) -> str:
    kind = random.random()
    if kind < 0.15:  # a bit
        data = bytearray(text.encode())
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        return data.decode(errors="surrogateescape")
    if kind < 0.25:  # a line twice: mostly a key
        lines = text.splitlines(keepends=True)
        at = random.randrange(len(lines))
        return "".join([*lines[: at + 1], *lines[at:]])
    if kind < 0.6:  # the text
        at, length = random.randrange(len(text)), random.randrange(1, 12)
        put = random.choice(["", "9", "NaN", "Infinity", "-", '"', "}", ",", "null", "\x00", "1e999", "[" * 200])
        return text[:at] + put + text[at + length :]
    document = json.loads(text)
    here = document
    while True:  # a value of it
        key = random.choice(list(here))
        if isinstance(here[key], dict) and here[key] and random.random() < 0.85:
            here = here[key]
            continue
        if random.random() < 0.3:
            del here[key]
        else:
            here[key] = random.choice(VALUES)
        return json.dumps(document)


def _attack(path: Path, worse: PolicyRatios, kept_as: str, enough: float, seeds: range) -> int:
    """How many damaged copies are refused; all others complain of what is worse, or keep ``enough`` as a number."""
    text, refused = path.read_text(), 0
    for seed in seeds:
        path.write_text(_mutated(text, random.Random(seed)), encoding="utf-8", errors="surrogateescape")
        try:
            found = read(path).get(TEST, {}).get("p")
        except InputError as error:
            refused += "\n" not in str(error)
            continue
        if found is None or found["instances"].keys() != {"i0", "i1", "i2"}:
            continue  # no entry, or of other instances: the test fails and says so
        numbers = [each[kept_as] for each in found["instances"].values() if each.get(kept_as) is not None]
        complaints = compared(worse, DIGESTS, found, baseline.WORSE)
        assert complaints or max(numbers, default=math.inf) > enough, (seed, found)
    return refused


@pytest.mark.parametrize("count", [300, studied(5000)])
def test_damaged_baselines_are_refused_or_compared(count: int, kept: Path) -> None:
    assert 0.5 < _attack(kept, part(110.0, 300.0, 125.0), "ratio", 2.9, range(count)) / count < 1


@pytest.mark.parametrize("count", [300, studied(5000)])
def test_damaged_baselines_of_values_are_refused_or_compared(count: int, tmp_path: Path) -> None:
    kept_of(tmp_path / "kept.json", part(10.0, 20.0, 30.0, bound=ZERO))
    worse = part(10.0, 199920.0, 30.0, bound=ZERO)
    assert 0.4 < _attack(tmp_path / "kept.json", worse, "value", 190000.0, range(count)) / count < 1
