"""Policies at the size of a real cluster: `sjf-bsbf` where jobs queue, `a-srpt`, and `goodput`.

The ratio is that of a plain form of the policy to the package's, on the same instance in the same process. The rows of
the study have the sizes of a month, without the plain form where it takes minutes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.timing import cpu_seconds
from policies.goodput_plain import PlainGoodput
from policies.sharing_plain import plain_sharing
from simulation.plain_policies import Ordered

import optsched
from optsched.compiled import without_interpreting
from optsched.io.traces.generate import generate
from optsched.policies.a_srpt import ASrpt
from optsched.policies.goodput import Goodput
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from optsched.simulation.policy import Order


class ReadableASrpt(ASrpt):
    """The readable form."""

    def accelerator(self, jobs: Any) -> Any:
        return None


def plain_sjf_bsbf() -> Any:
    """`sjf-bsbf` whose rule keeps nothing and leaves nothing out."""
    numbers = (1.0, 1.0, 1.0, 2.0, 1.0, 0.5)
    return Ordered(
        lambda jobs: Order(jobs.duration, rule=plain_sharing, numbers=numbers), "clairvoyant", "plain", ("sharing",)
    )


PLAIN: dict[str, Callable[[], Any]] = {
    "sjf-bsbf": plain_sjf_bsbf,
    "a-srpt": ReadableASrpt,
    "goodput": PlainGoodput,
    "goodput:round=300": lambda: PlainGoodput(round=300.0),
}
FORMS: dict[str, Callable[[], Any]] = {
    "sjf-bsbf": lambda: "sjf-bsbf",
    "a-srpt": ASrpt,
    "goodput": Goodput,
    "goodput:round=300": lambda: Goodput(round=300.0),
}


@cache
def instance_of(recipe: str, jobs: int, cluster: str, load: float) -> Instance:
    if recipe == "sharing-cluster":
        return generate(recipe, 1, jobs=jobs, nodes=int(cluster.partition("x")[0]), load=load)
    if recipe == "ddl-cluster":
        return generate(recipe, 1, jobs=jobs)
    return generate(recipe, 1, jobs=jobs, cluster=cluster)


ROWS = [
    ("sjf-bsbf", "sharing-cluster", 2_000, "250x4", 1.2),
    ("sjf-bsbf", "sharing-cluster", 5_000, "250x4", 1.2),
    ("a-srpt", "philly-like", 2_000, "64x8", 0.0),
    ("a-srpt", "ddl-cluster", 2_000, "", 0.0),
    ("goodput", "sharing-cluster", 240, "16x4", 1.0),
    ("goodput:round=300", "philly-like", 500, "64x8", 0.0),
]
STUDY = [
    ("sjf-bsbf", "sharing-cluster", 20_000, "250x4", 1.2),
    ("sjf-bsbf", "sharing-cluster", 20_000, "1000x4", 1.2),
    ("a-srpt", "philly-like", 20_000, "64x8", 0.0),
    ("a-srpt", "philly-like", 20_000, "1000x8", 0.0),
    ("goodput:round=300", "philly-like", 2_000, "64x8", 0.0),
]


def measure(benchmark: Any, policy: str, instance: Instance, *, plain: bool) -> None:
    with without_interpreting():
        for form in (FORMS, PLAIN):
            simulate(instance.head(50), form[policy]())  # compiles
        run = benchmark.pedantic(lambda: simulate(instance, FORMS[policy]()), rounds=1)
        seconds = cpu_seconds(lambda: simulate(instance, FORMS[policy]()), 2)
        if plain:
            begun = time.process_time()
            same = simulate(instance, PLAIN[policy]())
            benchmark.extra_info["ratio"] = (time.process_time() - begun) / seconds
            assert same.value() == run.value()
    benchmark.extra_info["cpu_seconds"] = seconds
    benchmark.extra_info["events_per_second"] = run.events / seconds
    assert run.unfinished == []


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("policy", "recipe", "jobs", "cluster", "load"), ROWS)
def test_a_run_and_its_plain_form(
    benchmark: Any, policy: str, recipe: str, jobs: int, cluster: str, load: float
) -> None:
    measure(benchmark, policy, instance_of(recipe, jobs, cluster, load), plain=True)


@pytest.mark.study
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("policy", "recipe", "jobs", "cluster", "load"), STUDY)
def test_a_long_run(benchmark: Any, policy: str, recipe: str, jobs: int, cluster: str, load: float) -> None:
    measure(benchmark, policy, instance_of(recipe, jobs, cluster, load), plain=False)


@pytest.mark.study
@pytest.mark.benchmark(timer=time.process_time)
def test_all_of_philly_under_a_srpt(benchmark: Any) -> None:
    """82,247 jobs of a public log on the cluster that its load suits."""
    folder = os.environ.get("OPTSCHED_DATA")
    if not folder or not (Path(folder) / "philly" / "philly.csv").is_file():
        pytest.skip("OPTSCHED_DATA has no philly/philly.csv")
    instance = optsched.load(f"philly:{folder}/philly/philly.csv", cluster="60x8", skip_bad=True)
    measure(benchmark, "a-srpt", instance, plain=False)


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("policy", "sizes"), [("sjf-bsbf", (1_000, 2_000, 4_000)), ("a-srpt", (4_000, 8_000, 16_000))])
def test_it_grows_as_the_jobs_do(benchmark: Any, policy: str, sizes: tuple[int, ...]) -> None:
    """Seconds of a run grow as jobs ** ``exponent``; `sjf-bsbf` in overload, where the queue grows, too."""
    recipe, cluster = ("sharing-cluster", "250x4") if policy == "sjf-bsbf" else ("philly-like", "64x8")
    instances, seconds = [instance_of(recipe, jobs, cluster, 1.2) for jobs in sizes], []
    with without_interpreting():
        simulate(instances[0].head(50), FORMS[policy]())  # compiles
        for instance in instances:
            seconds.append(cpu_seconds(partial(simulate, instance, FORMS[policy]()), 3))
        run = benchmark.pedantic(simulate, (instances[-1], FORMS[policy]()), rounds=1)
    benchmark.extra_info["exponent"] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    benchmark.extra_info["events_per_second"] = run.events / seconds[-1]
    assert run.unfinished == []
