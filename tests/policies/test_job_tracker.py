"""Names of copies, splitting of work, aggregation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.policies.job_tracker import JobTracker


def test_every_id_tells_its_parent_and_its_number() -> None:
    tracker = JobTracker(7)
    pairs = [(parent, i) for parent in range(7) for i in range(1, 6)]
    ids = [tracker.copy_id(parent, i) for parent, i in pairs]
    assert len(set(ids)) == len(ids)
    assert min(ids) >= 7  # no copy bears the id of a parent
    assert [(tracker.parent_of(each), tracker.number_of(each)) for each in ids] == pairs
    assert tracker.copy_id(3, 2) == 17  # max_job_count * i + job_id


@pytest.mark.parametrize(("parent", "i"), [(7, 1), (-1, 1), (0, 0)])
def test_ids_outside_the_ranges(parent: int, i: int) -> None:
    with pytest.raises(ValueError, match="no copy"):
        JobTracker(7).copy_id(parent, i)


@given(st.floats(1, 1e6), st.lists(st.floats(0.1, 100), min_size=1, max_size=8), st.floats(1, 1000))
def test_targets_fill_the_round_or_do_what_is_left_and_end_together(left: float, rates: list[float], s: float) -> None:
    targets = JobTracker.split(left, rates, s)
    exact = [Fraction(x) * Fraction(s) for x in rates]
    factor = min(Fraction(1), Fraction(left) / sum(exact))
    assert targets.tolist() == pytest.approx([float(factor * x) for x in exact], rel=1e-12)
    seconds = targets / np.array(rates)
    assert seconds.max() <= s * (1 + 1e-12)
    assert seconds.max() == pytest.approx(seconds.min(), rel=1e-12)  # all copies of a job end together
    assert targets.sum() <= left * (1 + 1e-12)


def test_what_the_copies_did_adds_up() -> None:
    tracker = JobTracker(3)
    tracker.aggregate(1, [30.0, 10.0])
    assert tracker.weights[1] == {4: 0.75, 7: 0.25}
    tracker.aggregate(1, [5.0])
    assert tracker.weights[1] == {4: 1.0}  # one copy: its parameters as they are
    assert tracker.steps == {4: 35.0, 7: 10.0}
    assert (tracker.total(1), tracker.total(0)) == (45.0, 0)
    assert (tracker.most, tracker.aggregations) == ({1: 2}, {1: 1})
