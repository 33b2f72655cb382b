"""The same jobs on another clock, and with time counted in another unit."""

from __future__ import annotations

import dataclasses
from typing import Any

from optsched.policies.predictors import PREDICTORS
from optsched.policies.predictors.conformal import Conformal
from optsched.policies.predictors.shrinkage import Shrinkage
from optsched.policies.simulate import specify
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance
from optsched.problem.profile import Profile
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.problem.throughputs import Throughputs
from optsched.registry import parameters_of

# Predictors whose prior is seconds of any job; that of the others is iterations of jobs with a profile.
IN_SECONDS = ("shrinkage", "boosting")
# What parameters of policies and predictors mean seconds, or GPU-seconds. A vocabulary, not a list of policies: a new
# policy that calls its seconds so is scaled by itself.
SECONDS = frozenset({"quantum", "round", "restart", "overhead", "interval", "threshold", "reset", "prior", "unlimited"})


def on_another_clock(instance: Instance, shift: float) -> Instance:
    """Every arrival and due date ``shift`` seconds later."""
    jobs = [
        dataclasses.replace(job, arrival=job.arrival + shift, due=None if job.due is None else job.due + shift)
        for job in instance.jobs
    ]
    return instance.replace(jobs=Instance(jobs, instance.cluster, **_models(instance)).table)


def in_another_unit(instance: Instance, unit: float) -> Instance:
    """Every time of the instance times ``unit``; what is bytes or iterations a second, divided by it."""
    jobs = [
        dataclasses.replace(
            job,
            arrival=job.arrival * unit,
            due=None if job.due is None else job.due * unit,
            duration=None if job.duration is None else job.duration * unit,
            walltime=None if job.walltime is None else job.walltime * unit,
        )
        for job in instance.jobs
    ]
    return Instance(
        jobs,
        _cluster(instance.cluster, unit),
        instance.name,
        instance.objective,
        profiles={name: _profile(each, unit) for name, each in instance.profiles.items()},
        throughputs=_throughputs(instance.throughputs, unit),
        tasks={
            name: IterationTasks(each.forward * unit, each.backward * unit, each.message)
            for name, each in instance.tasks.items()
        },
        contention=_contention(instance.contention, unit),
        scalings={name: _scaling(each, unit) for name, each in instance.scalings.items()},
        interference=instance.interference,
    )


def policy_in_another_unit(spec: str, instance: Instance, unit: float) -> Any:
    """The policy of ``spec`` with every parameter of `SECONDS` times ``unit``.

    What a predictor says before it has learned is seconds, too, unless it is iterations of jobs that all count these.
    """
    policy = specify(spec).policy
    if not dataclasses.is_dataclass(policy):
        return policy
    changes = {
        field.name: getattr(policy, field.name) * unit
        for field in dataclasses.fields(policy)
        if field.init and field.name in SECONDS
    }
    predictor = getattr(policy, "predictor", "")
    known = parameters_of(PREDICTORS.get(predictor)) if predictor in PREDICTORS else {}
    if predictor == "conformal":
        changes["predictor"] = Conformal(of=Shrinkage(prior=3600.0 * unit))
    elif "prior" in known and (not instance.profiled.all() or predictor in IN_SECONDS):
        changes["predictor"] = f"{predictor}/prior={known['prior'] * unit!r}"
    return dataclasses.replace(policy, **changes)  # type: ignore[type-var]


def _models(instance: Instance) -> dict[str, Any]:
    names = ("profiles", "throughputs", "tasks", "contention", "scalings", "interference")
    return {name: getattr(instance, name) for name in names}


def _cluster(cluster: Cluster, unit: float) -> Cluster:
    def slower(rate: float | None) -> float | None:
        return None if rate is None else rate / unit

    return Cluster(
        tuple(
            dataclasses.replace(
                group, nic_bandwidth=slower(group.nic_bandwidth), intra_bandwidth=slower(group.intra_bandwidth)
            )
            for group in cluster.nodes
        )
    )


def _profile(profile: Profile, unit: float) -> Profile:
    stages = tuple(
        dataclasses.replace(stage, forward=stage.forward * unit, backward=stage.backward * unit)
        for stage in profile.stages
    )
    return dataclasses.replace(profile, stages=stages)


def _throughputs(table: Throughputs | None, unit: float) -> Throughputs | None:
    if table is None:
        return None
    rows = {
        key: dataclasses.replace(
            each, together=each.together / unit, spread=None if each.spread is None else each.spread / unit
        )
        for key, each in table.entries.items()
    }
    pairs = {key: (a / unit, b / unit) for key, (a, b) in table.pairs.items()}
    return Throughputs(rows, pairs)


def _contention(cost: Contention | None, unit: float) -> Contention | None:
    if cost is None:
        return None
    return dataclasses.replace(
        cost, seconds_per_byte=cost.seconds_per_byte * unit, penalty=cost.penalty * unit, latency=cost.latency * unit
    )


def _scaling(scaling: Scaling, unit: float) -> Scaling:
    names = ("compute", "per_sample", "within", "within_growth", "across", "across_growth")
    times: dict[str, Any] = {name: getattr(scaling, name) * unit for name in names}
    if scaling.measured is not None:
        steps = scaling.measured
        times["measured"] = MeasuredSteps(
            tuple((p, b, i * unit, s * unit) for p, b, i, s in steps.placements),
            tuple((n, r, b, i * unit, s * unit) for n, r, b, i, s in steps.scalability),
        )
    return dataclasses.replace(scaling, **times)
