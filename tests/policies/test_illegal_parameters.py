"""Parameters that no policy takes: one line names policy, parameter and what is legal."""

from __future__ import annotations

import pytest

from optsched.errors import InputError
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job

SECONDS = "invalid (expected: a finite number of seconds >= 0)"
ILLEGAL = [
    ("a-srpt:beta=0", "beta"),
    ("a-srpt:beta=1.5", "beta"),
    ("a-srpt:tau=-1", "tau"),
    ("a-srpt:tau=inf", "tau"),
    ("a-srpt:overtake=-1", "overtake"),
    ("a-srpt:overtake=nan", "overtake"),
    ("a-srpt:virtual_alpha=mean", "virtual_alpha"),
    ("a-srpt:predictor=forrest", "forest"),
    ("alpha-points:alpha=0", "alpha"),
    ("alpha-points:alpha=1.5", "alpha"),
    ("alpha-points:alpha=nan", "alpha"),
    ("fifo+random:seed=-1", "random: seed = -1: invalid (expected: an integer >= 0)"),
    ("gavel:policy=max_min_fairnes", "max_min_fairness"),
    ("gavel:policy=las", "allocation policies"),
    ("gavel:round=0", "gavel: round"),
    ("gavel:round=inf", "gavel: round"),
    ("gavel:reset=-1", "gavel: reset"),
    ("gavel:restart=nan", "gavel: restart"),
    ("gavel:seed=-1", "gavel: seed"),
    ("gavel:rounds=360", "round"),
    ("goodput:p=2", "goodput: p"),
    ("goodput:round=0", "goodput:round=0: round"),
    ("goodput:q=1", "q"),
    ("auction-rounds:utility=speed", "auction-rounds: utility"),
    ("makespan-rounds:round=0", "makespan-rounds: round"),
    ("makespan-rounds:round=9e-4", "makespan-rounds: round"),
    ("makespan-rounds:restart=-1", "makespan-rounds: restart"),
    ("hadar:utility=speed", "hadar: utility"),
    ("hadar:round=-1", "hadar: round"),
    ("hadar:round=9e-4", "hadar: round"),
    ("hadar:restart=360", "hadar: restart"),
    ("hadar:low=-1", "hadar: low"),
    ("hadar:low=2,high=1", "hadar: low"),
    ("hadar:high=inf", "hadar: high"),
    ("hadar-e:rule=fast", "hadar-e: rule = 'fast': invalid (expected: lp, work, payoff)"),
    ("hadar-e:estimate=false", "hadar-e: estimate = 'false': invalid (expected: true, device, noisy)"),
    ("hadar-e:error=-1", "hadar-e: error = -1.0: invalid"),
    ("hadar-e:error=nan", "hadar-e: error = nan: invalid"),
    ("hadar-e:seed=-1", "hadar-e: seed = -1: invalid"),
    ("hadar-e:copies=-1", "hadar-e: copies = -1: invalid (expected: an integer >= 1; 0: one a node)"),
    ("hadar-e:copies=two", "hadar-e: copies = 'two': invalid (expected: an integer)"),
    ("hadar-e:round=0", "hadar-e: round = 0.0: invalid"),
    ("hadar-e:round=inf", "hadar-e: round = inf: invalid"),
    ("hadar-e:overhead=-1", "hadar-e: overhead = -1.0: invalid"),
    ("hadar-e:round=10", "hadar-e: overhead = 10.0: invalid (expected: 0 or more seconds, less than"),
    ("leader-first:width=-1", "leader-first: width"),
    ("leader-first:caution=nan", "leader-first: caution"),
    ("leader-first:caution=inf", "leader-first: caution"),
    ("random-alpha-points:seed=-1", "seed"),
    ("srtf:restart=-1", SECONDS),
    ("srtf:restart=nan", SECONDS),
    ("srtf:restart=inf", SECONDS),
    ("tiresias:round=-5", SECONDS),
    ("tiresias:threshold=0", "threshold = 0.0: invalid (expected: GPU-seconds > 0"),
    ("tiresias:threshold=-1", "threshold = -1.0: invalid (expected: GPU-seconds > 0"),
    ("tiresias:threshold=nan", "threshold = nan: invalid (expected: GPU-seconds > 0"),
    ("unified:restart=-1", "restart"),
    ("unified:restart=inf", "restart"),
    ("unified:predictor=nobody", "predictor"),
]


@pytest.mark.parametrize(("text", "told"), ILLEGAL)
def test_it_is_one_line(text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(Instance([Job("a", duration=1)], "2x1"), text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
