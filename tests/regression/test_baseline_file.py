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
from optsched.guarantees import baseline
from optsched.guarantees.evaluate import MeasuredRatio, PolicyRatios
from optsched.guarantees.optimum_bounds import BoundShown
from optsched.regression.baseline_file import FORMAT, compared, entry, read, update

pytestmark = pytest.mark.release

BOUND = BoundShown(100.0, "known-optimum", "gang-nonpreemptive", True)
TEST = "test_it.py::test_it"


def part(*values: float) -> PolicyRatios:
    rows = (MeasuredRatio(f"i{k}", "makespan", "p", value, BOUND) for k, value in enumerate(values))
    return PolicyRatios("p", tuple(rows))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").touch()
    update(tmp_path / "kept.json", {TEST: {"p": entry(part(110.0, 150.0, 125.0))}}, tmp_path)
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
    path = written({"format": FORMAT, "tests": tests}, "kept.json")
    with one_line(match=r"kept\.json, tests.*: invalid"):
        read(path)


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


def _attack(path: Path, text: str, seeds: range) -> int:
    worse, refused = part(110.0, 300.0, 125.0), 0
    for seed in seeds:
        path.write_text(_mutated(text, random.Random(seed)), encoding="utf-8", errors="surrogateescape")
        try:
            found = read(path).get(TEST, {}).get("p")
        except InputError as error:
            refused += "\n" not in str(error)
            continue
        if found is None or found["instances"].keys() != {"i0", "i1", "i2"}:
            continue  # no entry, or of other instances: the test fails and says so
        ratios = [each for each in found["instances"].values() if each is not None]
        complaints = compared(worse, found, baseline.WORSE)
        assert complaints or max(ratios, default=math.inf) > 2.9, (seed, found)
    return refused


@pytest.mark.parametrize("count", [300, studied(5000)])
def test_damaged_baselines_are_refused_or_compared(count: int, kept: Path) -> None:
    assert 0.5 < _attack(kept, kept.read_text(), range(count)) / count < 1
