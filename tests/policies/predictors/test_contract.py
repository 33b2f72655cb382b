"""What every registered predictor must do: say something positive, know nothing of the future, be deterministic."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.predictors import PREDICTORS, predictor
from optsched.problem.instance import Instance
from optsched.simulation.predictor import JobFacts, Predictor

from .workloads import errors, replay, timeline, with_length, workload, workloads

# small forests that are refitted at every turn, so that their trees speak on a dozen jobs
TEXTS = [name for name in PREDICTORS.names() if name != "forest"] + [
    "forest/trees=2/refit=3",
    "boosting/refit=3",
    "conformal/of=group-mean/level=0.5/window=2",
    "group-mean/mean=arithmetic",
]
HONEST = [text for text in TEXTS if not getattr(predictor(text), "oracle", False)]
LEARNERS = [text for text in HONEST if getattr(predictor(text), "learns", True)]


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_a_predictor_that_reads_its_own_name(text: str) -> None:
    made = predictor(text)
    assert isinstance(made, Predictor)
    assert made.name.partition("/")[0] in PREDICTORS
    again = predictor(made.name)
    assert again.name == made.name
    assert again == made


@settings(max_examples=examples(40))
@given(instance=workloads(), text=st.sampled_from(TEXTS))
def test_every_prediction_is_a_positive_number_and_the_same_every_time(instance: Instance, text: str) -> None:
    made = predictor(text)
    first = replay(instance, made)
    assert np.isfinite(first).all()
    assert (first > 0).all()
    replay(instance.replace(jobs=instance.table.reverse()), made)  # begin() forgets
    assert replay(instance, made).tolist() == first.tolist()
    assert replay(instance, text).tolist() == first.tolist()


@given(instance=workloads(), text=st.sampled_from(HONEST), data=st.data())
def test_nothing_leaks_before_a_run_completes(instance: Instance, text: str, data: st.DataObject) -> None:
    # A job that grows from one length to another completes at the earlier of two times: up to then nobody may know.
    job = data.draw(st.integers(0, instance.n - 1))
    longer = with_length(instance, job, data.draw(st.sampled_from([0.5, 7.0, 60.0, 1e5])))
    ends = min(x.arrival[job] + x.duration[job] for x in (instance, longer))
    untold = instance.arrival < ends
    before, after = replay(instance, text), replay(longer, text)
    assert before[untold].tolist() == after[untold].tolist()


@pytest.mark.parametrize("text", LEARNERS)
def test_a_completed_run_is_told_and_forgotten_in_the_next(text: str) -> None:
    # ... or the test above could not fail: the same change matters to whoever arrives after the completion
    jobs = [(10.0 * k, 4.0, "a", "x") for k in range(8)]
    instance = workload(*jobs)
    changed = with_length(instance, 0, 9.0)
    made = predictor(text)
    differs = replay(instance, text) != replay(changed, made)
    assert not differs[0]
    assert differs[2 if text == "last-two" else 1]  # the second run of the user, too, has completed
    assert replay(instance, made).tolist() == replay(instance, text).tolist()  # begin() forgets


@settings(max_examples=examples(20))
@given(instance=workloads(), text=st.sampled_from(TEXTS))
def test_two_predictors_of_one_kind_do_not_share_what_they_learned(instance: Instance, text: str) -> None:
    one, other = predictor(text), predictor(text)
    expected = replay(instance, copy.deepcopy(other))
    replay(instance, one)
    other.begin(JobFacts(instance, revealed=getattr(other, "oracle", False)))
    for now, job, completed in timeline(instance):
        if completed:
            other.observe(job, now, float(instance.work[job]))
        else:
            assert other.predict(job, now) == expected[job]


def test_perfect_is_perfect() -> None:
    instance = generate("recurring", seed=3, jobs=200, plain=True)
    found = errors(instance.work, replay(instance, "perfect"))
    assert found == (1.0, 1.0, 1.0, 1.0, 1.0)


def test_every_job_may_wait_its_own_time() -> None:
    instance = workload((0, 4, "a", "x"), (0, 4, "a", "x"), (5, 9, "a", "x"))
    assert list(timeline(instance, [0.0, 2.0, 0.0])) == [
        (0.0, 0, False),
        (0.0, 1, False),
        (4.0, 0, True),
        (5.0, 2, False),
        (6.0, 1, True),
        (14.0, 2, True),
    ]


def test_unknown_predictors_and_parameters() -> None:
    with pytest.raises(InputError, match="did you mean forest"):
        predictor("forrest")
    with pytest.raises(InputError, match="did you mean shrinkage"):
        predictor("conformal/of=shrink")
    with pytest.raises(InputError, match="did you mean refit"):
        predictor("forest/refitt=3")


@pytest.mark.parametrize(
    "text",
    [
        *("global-mean/mean=median", "global-mean/prior=-1", "group-mean/prior=0", "group-mean/prior=nan"),
        *("group-mean/prior=x", "forest/trees=0", "forest/leaf=0", "forest/refit=0", "forest/window=0"),
        *("forest/seed=-1", "forest/trees=x", "noisy/error=0.5"),
        *(
            "noisy/error=nan",
            "noisy/error=inf",
            "noisy/seed=-1",
            "noisy/error=x",
            "noisy/seed=1.5",
            "shrinkage/group=0",
        ),
        *("shrinkage/half_life=inf", "boosting/quantile=1", "boosting/refit=0", "conformal/level=0"),
    ],
)
def test_parameters_that_are_not_legal(text: str) -> None:
    name = text.partition("/")[2].partition("=")[0]
    with pytest.raises(InputError, match=rf"{name} = .*expected: ") as caught:
        predictor(text)
    assert "\n" not in str(caught.value)
