"""A new policy is one new file: it is found by its name, runs from the command line, and keeps what every policy keeps."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from examples import few

import optsched.policies
from optsched.contract.examine import examine
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from policies import test_contract as contract
from policies.levels import whole_job_policies

TOY = '''
from collections.abc import Iterator
from dataclasses import dataclass

from optsched.policies import POLICIES
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, View


@POLICIES.register("last-come")
@dataclass
class LastCome(Policy):
    """The job that came last is served first, where ``patient`` only if nobody before it waits for GPUs.

    **Problem** P | r_j, size_j, online-r_j | sum (C_j - r_j). **Knowledge** non-clairvoyant.
    **Guarantee** none. **Complexity** O(waiting jobs) an event.
    """

    patient: bool = False
    name = "last-come"
    knowledge = Knowledge.NON_CLAIRVOYANT

    def decide(self, view: View) -> Iterator[Decision]:
        for job in reversed(view.waiting):
            if view.fits(job):
                yield Start(job)
            elif self.patient:
                return
'''
ROW = '''
from optsched.policies.queue_orders import queue_order
from optsched.simulation.policy import Knowledge, KnownJobs, Order


def _within_limits(policy):
    assert policy.share >= 0, "share"


@queue_order("last-come", Knowledge.NON_CLAIRVOYANT, default_placement="random", __post_init__=_within_limits)
def last_come(jobs: KnownJobs, share: float = 0.0, strict: bool = False) -> Order:
    """The last first, unless it is wide."""
    return Order(key=-jobs.arrival / jobs.gpus**share, skip=not strict)
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One file beside the others of the package, as far as importing it goes; nothing else is touched."""
    file = tmp_path / "last_come.py"
    file.write_text(TOY)
    monkeypatch.setattr(optsched.policies, "__path__", [*optsched.policies.__path__, str(tmp_path)])
    monkeypatch.setattr(POLICIES, "_things", dict(POLICIES._things))
    monkeypatch.setattr(POLICIES, "_state", -1)  # as in a new process
    monkeypatch.setattr(POLICIES, "_searched", set())
    monkeypatch.delitem(sys.modules, "optsched.policies.last_come", raising=False)
    return file


SPECS = [*(f"last-come+{name}" for name in few(PLACEMENTS.names(), 3)), "last-come:patient=true+first-fit"]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("spec", SPECS)
def test_it_keeps_what_every_policy_keeps_with_every_placement(spec: str) -> None:
    exempt = {"exempt"} if "random" in spec else set()
    assert {each.verdict for each in examine(spec).findings} == {"holds"} | exempt


def test_it_is_written_and_found_as_the_others_are(toy: Path) -> None:
    assert specify("last-come:patient=true").policy.patient
    assert "last-come" in whole_job_policies()
    contract.test_a_policy_is_a_dataclass_that_is_made_without_arguments_and_bears_its_name("last-come")
    contract.test_the_docstring_has_its_sections("last-come")
    contract.test_one_policy_a_file_that_is_no_table(toy)


def test_a_function_is_a_policy_too(toy: Path) -> None:
    toy.write_text(ROW)
    rows = [("first", 0, 2, 2), ("second", 1, 1, 1), ("wide", 1.5, 2, 1)]
    instance = Instance([Job(name, arrival=r, gpus=g, duration=d) for name, r, g, d in rows], "1x2")
    assert examine("last-come").broken == examine("last-come:share=1,strict=true").broken == []
    assert simulate(instance, "last-come").schedule.completion.tolist() == [2, 4, 3]
    assert simulate(instance, "last-come:share=1").schedule.completion.tolist() == [2, 3, 4]
    made = specify("last-come:share=1")
    assert (made.placement.name, made.policy.share, made.policy.strict) == ("random", 1.0, False)
    assert made.policy == type(made.policy)(1.0) == pickle.loads(pickle.dumps(made.policy))
    with pytest.raises(AssertionError, match="share"):
        specify("last-come:share=-1")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.policy.share = 2.0  # type: ignore[union-attr, misc]
    assert "wide" in str(inspect.getdoc(POLICIES.get("last-come")))


@pytest.mark.usefixtures("toy")
def test_it_runs_from_the_command_line(command: Any) -> None:
    runs = command("run", "rigid-06-1", "-p", "last-come", "-p", "fifo", "--json").document["runs"]
    assert [run["policy"].partition("+")[0] for run in runs] == ["last-come", "fifo"]
