"""`Study`: a paper's experiments, declared as tables, that can be run again: name, summary, tables, what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from optsched.errors import check_legal
from optsched.registry import Registry
from optsched.studies.campaign import Advance, run_all
from optsched.studies.estimate import CONFIDENCE
from optsched.studies.experiment import Experiment, Numbers, RunOutcome
from optsched.studies.findings import findings
from optsched.studies.measures import OBJECTIVE, Measure

METHOD = (
    "each seed is one workload, shared by all rows of a column; intervals: 95 % of Student's t over the seeds; rows are "
    "compared on the same workloads, by the geometric mean of their ratios of mean JCT (sum C moves in the same direction) "
    "and its interval, not corrected for the number of comparisons; every schedule was accepted by the referee, every bound "
    "was proved again"
)


@dataclass(frozen=True)
class Study:
    """Experiments that belong together. ``declare(small)`` gives their tables, the default size or one for a quick look.

    ``method`` says how the numbers come about, ``seeds`` how many workloads of every kind are usual.
    """

    name: str
    summary: str
    declare: Callable[[bool], tuple[Experiment, ...]]
    method: str = METHOD
    seeds: int = 5

    def run(
        self,
        seeds: int | None = None,
        *,
        small: bool = False,
        workers: int | None = None,
        progress: Advance | None = None,
        so_far: Callable[[Reproduction], None] | None = None,
    ) -> Reproduction:
        """Run all experiments on the seeds 1..``seeds`` (default: the usual number, or that of the experiment).

        The same numbers whenever and on however many ``workers``. ``so_far`` is called with the experiments that are
        finished, whenever there are more of them.

        Raises `InputError` unless ``seeds`` and ``workers`` are at least 1.
        """
        experiments = self.declare(small)
        if seeds is not None:
            check_legal(seeds >= 1, "seeds", seeds, "an integer >= 1")
            experiments = tuple(replace(each, seeds=None) for each in experiments)
        named = tuple(range(1, (self.seeds if seeds is None else seeds) + 1))
        finished = 0

        def outcomes(numbers: Numbers) -> tuple[RunOutcome, ...]:
            return tuple(RunOutcome(each, each.seeds_of(named), numbers) for each in experiments)

        def heard(numbers: Numbers) -> None:
            nonlocal finished
            complete = tuple(each for each in outcomes(numbers) if each.complete)
            if so_far is not None and len(complete) > finished:
                finished = len(complete)
                so_far(Reproduction(self, small, named, complete))

        numbers = run_all(experiments, named, workers=workers, progress=progress, heard=heard)
        return Reproduction(self, small, named, outcomes(numbers))


@dataclass(frozen=True)
class Reproduction:
    """The outcomes of a study, with the settings that gave them."""

    study: Study
    small: bool
    seeds: tuple[int, ...]
    outcomes: tuple[RunOutcome, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """What a reader needs to get the same numbers."""
        return {
            "size": "small" if self.small else "default",
            "seeds": list(self.seeds),
            "objective": OBJECTIVE,
            "confidence": CONFIDENCE,
            "method": self.study.method,
        }

    @property
    def measures(self) -> dict[str, Measure]:
        """All measures of the experiments by name."""
        return {name: m for each in self.outcomes for name, m in each.experiment.measurement.measures.items()}

    def to_json(self) -> dict[str, Any]:
        """The document of ``reproduce --json``."""
        return {
            "study": self.study.name,
            "summary": self.study.summary,
            "settings": self.settings,
            "measures": {name: {"unit": m.unit, "meaning": m.meaning} for name, m in self.measures.items()},
            "experiments": [{**each.to_json(), "findings": findings(each)} for each in self.outcomes],
        }


STUDIES: Registry[Study] = Registry("study", package="optsched.studies")
study = STUDIES.maker(Study, lambda made: made.name)
