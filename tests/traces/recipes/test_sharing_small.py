"""Recipe ``sharing-small``: what is drawn follows the laws it states, and a table of slow-downs is drawn for ``exp``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.problem.interference import Interference


def test_laws() -> None:
    drawn = generate("sharing-small", 1, jobs=4000, gpus=4, xi="1.3", span=0.001)
    logs = np.log10(drawn.duration)
    assert np.abs(np.quantile(logs, [0, 0.25, 0.5, 0.75, 1]) - [-1, -0.5, 0, 0.5, 1]).max() < 0.06
    assert np.bincount(drawn.gpus)[1:].min() > 900
    assert set(drawn.gpus.tolist()) == {1, 2, 3, 4}
    late = drawn.arrival[drawn.arrival > 0]
    assert late.size / 4000 == pytest.approx(0.6, abs=0.03)
    assert late.max() == pytest.approx(0.001 * drawn.duration.sum(), rel=0.01)
    assert late.mean() == pytest.approx(0.0005 * drawn.duration.sum(), rel=0.05)
    assert drawn.interference == Interference(1.3)
    each = generate("sharing-small", 1, jobs=4000, gpus=4, xi="1.3", span=0.001, per_gpu=True)
    share = float(each.gpus @ each.duration) / 4 / each.duration.sum()
    assert each.arrival == pytest.approx(drawn.arrival * share)
    assert drawn.objective == "total_flow_time"


def test_exponential_slowdowns_of_ordered_pairs() -> None:
    drawn = generate("sharing-small", 2, jobs=60, xi="exp")
    assert drawn.interference is not None
    ratios = np.array(drawn.interference.ratios, dtype=float)
    assert ratios.shape == (60, 60)
    assert ratios.min() >= 1
    assert (ratios - 1).mean() == pytest.approx(0.5, abs=0.03)
    assert (ratios - 1).std() == pytest.approx(0.5, abs=0.05)
    assert not np.allclose(ratios, ratios.T)
    assert len(set(drawn.kinds)) == 60


def test_whole_numbers_and_files(tmp_path: Path) -> None:
    drawn = generate("sharing-small", 3, jobs=20, gpus=2, whole=True)
    assert drawn.interference is not None
    for times in (drawn.duration, drawn.arrival, 8 * np.array(drawn.interference.ratios, dtype=float)):
        assert (times == np.floor(times)).all()
    assert drawn.duration.min() >= 1
    drawn.save(tmp_path / "small.json")
    again = Instance.load(tmp_path / "small.json")
    assert again.digest == drawn.digest
    assert again.interference == drawn.interference


@pytest.mark.parametrize("xi", ["0.9", "nan", "inf", "expo", True, -1])
def test_slowdowns_that_are_none(xi: object) -> None:
    with pytest.raises(InputError, match=r"xi = .*from 1"):
        generate("sharing-small", 0, xi=xi)
