"""Mean busy times of GPUs and of network interfaces, and paths, mixed job by job: the best bound for jobs with tasks.

**Problem**: jobs with tasks (class ``task-sharing``); sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j - d_j, 0), and the
unweighted forms.
**Bound**: for any multipliers y_j, z_j >= 0 with y_j + z_j <= w_j

    min sum y_j M^G_j + sum y_j ((L_j + c_j) / 2 - k_j)
    + min sum z_j M^N_j + sum z_j ((L_j - t_j - a) / 2 - k_j)
    + sum (w_j - y_j - z_j) max(0, r_j + L_j - k_j),

k_j = 0, r_j or the due date; the minima are over all preemptive schedules of all GPUs as one machine, and of all
interfaces as one. `optsched.bounds.task_times` has the notation and proves what a job needs. y = w is K3 of the sheet below
(``task-busy-time``), z = w for the gangs that must span nodes N3 (``link-busy-time``), y = z = 0 is `task_path`; the mixture
(``split-task-busy-time``) is at least the best of them.
**Proof**: split the cost of j as y_j + z_j + the rest. A cost max(0, C_j - k_j) is at least C_j - k_j, which is at least
M^G_j + (L_j + c_j) / 2 - k_j and M^N_j + (L_j - t_j - a) / 2 - k_j, with the mean moments of j's compute and bytes in the
schedule (shown in `task_times`); and it is at least its value when j never waits. The shares of a resource add up to at
most 1 at any moment, so these mean moments are mean busy times of a processor-sharing schedule of one machine, whose
weighted sum is at least the least one, attained by preemptive WSPT. The two minima are taken apart: one schedule for both
only costs more. Rounding on the grid lowers the bound (`optsched.bounds.grid`).
**Relations**: with the best multipliers it is the optimum of the linear program that minimises sum w_j C_j over C_j and mean
busy times M^G, M^N in the polyhedra of the two machines with the three inequalities for C_j, by duality.
**Method**: concave in (y, z); supergradient: by how much each of the first two costs exceeds that of never waiting. Steps of
projected ascent in floats, shorter and shorter: within 0.2 % of the optimum on the recipe ``ada-srsf``, where those of
AdaGrad, as in `split_busy_time`, stop 4 % below it. Then multipliers on a grid, evaluated exactly; the verifier takes any.
**Guarantee** none: measured schedules are two to three times above. Void for interfaces with measured ratios of contention.
**Complexity** O(n log n) a step.
**Reference**: section 4.3 of this project's reference sheet on AdaDUAL; Goemans et al., SIAM J. Discrete Math. 15 (2002),
165-192.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.busy_time_sum import least_busy_time_sum
from optsched.bounds.certificate import (
    TASK_SHARING_CLASSES,
    Certificate,
    CertificateError,
    data_integer,
    register_kind,
    require_same,
)
from optsched.bounds.exact_dot import exact_dot
from optsched.bounds.grid import GridJobs
from optsched.bounds.mean_busy_time import proved_busy_times, weights_on_grid
from optsched.bounds.split_busy_time import OBJECTIVES, rough_mean_busy_times
from optsched.bounds.sum_costs import SumCosts
from optsched.bounds.task_times import Resource, TaskTimes, machine_data, task_certificate
from optsched.bounds.task_verifier import Needs, machine_of_needs, needs_of
from optsched.bounds.verifier import MAX_EXPONENT, Times
from optsched.bounds.wide_integers import sum_words, total
from optsched.problem.instance import Instance

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ON_GPUS, ON_LINKS, SPLIT = "task-busy-time", "link-busy-time", "split-task-busy-time"
SHARE_BITS = 10  # multipliers are multiples of w_j / 1024 where the weights leave room
STEPS, FEWEST_STEPS, JOB_STEPS = 300, 12, 100_000  # of ascent: as many as JOB_STEPS allow within the two limits
FIRST_MOVE = 0.1  # of a share of the weight, root mean square


@lower_bound(
    ON_GPUS,
    objectives=OBJECTIVES,
    classes=TASK_SHARING_CLASSES,
    statement="least mean busy times of all GPUs as one machine",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """K3. Data: the exponent of the multipliers, flow constant; for the resource its machine, grid and multipliers."""

    def prove(times: TaskTimes) -> tuple[Fraction, dict[str, Any]] | None:
        return _Proof(instance, objective, [times.gpus], times).with_shares([np.ones(instance.n)])

    return task_certificate(instance, objective, schedule_class, ON_GPUS, prove)


@lower_bound(
    ON_LINKS,
    objectives=OBJECTIVES,
    classes=TASK_SHARING_CLASSES,
    statement="least mean busy times of all network interfaces as one machine, for gangs that must span nodes",
)
def build_links(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """N3; None where no gang must span nodes, or contention is measured. Data as of K3."""

    def prove(times: TaskTimes) -> tuple[Fraction, dict[str, Any]] | None:
        return _Proof(instance, objective, [times.links], times).with_shares([np.ones(instance.n)])

    return task_certificate(instance, objective, schedule_class, ON_LINKS, prove)


@lower_bound(
    SPLIT,
    objectives=OBJECTIVES,
    classes=TASK_SHARING_CLASSES,
    statement="mean busy times of GPUs and of network interfaces, and paths, mixed job by job",
)
def build_split(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The best mixture that the ascent meets, or one of K3 and N3. Data as of K3, for one resource or both."""

    def prove(times: TaskTimes) -> tuple[Fraction, dict[str, Any]] | None:
        if not instance.n:
            return None
        proof = _Proof(instance, objective, [times.gpus, times.links], times)
        ones, zeros = np.ones(instance.n), np.zeros(instance.n)
        shares = [[ones, zeros], [zeros, ones], proof.best_shares()]
        found = [each for each in map(proof.with_shares, shares) if each is not None]
        return max(found, key=lambda each: each[0]) if found else None

    return task_certificate(instance, objective, schedule_class, SPLIT, prove)


class _Proof:
    """The bound as a function of the shares of a job's weight that go to each resource, f64[n] each in 0..1."""

    def __init__(self, instance: Instance, objective: str, resources: list[Resource], times: TaskTimes) -> None:
        self.costs: SumCosts = times.costs(instance, objective)
        self.resources = resources
        self.grids = [resource.grid() for resource in resources]
        self.weight, self.exponent = weights_on_grid(self.costs.weight, SHARE_BITS)

    def with_shares(self, shares: list[Floats]) -> tuple[Fraction, dict[str, Any]] | None:
        """(bound, data), exactly; None where no job has a multiplier."""
        value, parts = self.costs.alone(self.costs.weight), []
        for resource, grid, share in zip(self.resources, self.grids, shares, strict=True):
            multiplier = np.where(grid.work > 0, np.floor(self.weight * share), 0).astype(np.int64)
            if multiplier.any():
                more, bits = self._part(resource, grid, multiplier)
                value += more
                data = {**machine_data(resource.name, grid), "held_up_bits": bits, "multipliers": multiplier.tolist()}
                parts.append(data)
        if not parts:
            return None
        return value, {**self.costs.data(), "multiplier_exponent": self.exponent, "resources": parts}

    def _part(self, resource: Resource, grid: GridJobs, multiplier: Ints) -> tuple[Fraction, int | None]:
        # what the multipliers of one resource add to the bound of nobody waiting
        used = multiplier > 0
        least, bits = least_busy_time_sum(grid.release[used], grid.work[used], multiplier[used])
        least += grid.origin * total(sum_words(multiplier))
        u = np.ldexp(multiplier.astype(np.float64), -self.exponent)
        value = least * grid.tick / Fraction(2) ** self.exponent - self.costs.alone(u)
        return value + exact_dot(u, resource.reach) / 2 - exact_dot(u, self.costs.counted), bits

    def best_shares(self) -> list[Floats]:
        """The best shares that the ascent meets (float arithmetic)."""
        costs = self.costs
        able = np.array([(grid.work > 0) & (costs.weight > 0) for grid in self.grids])
        never = np.maximum(costs.release + costs.duration - costs.counted, 0.0)
        fixed = np.array([resource.reach / 2 for resource in self.resources]) - costs.counted - never
        share, best, best_gain = np.zeros(able.shape), np.zeros(able.shape), 0.0
        with np.errstate(all="ignore"):  # of times near the ends of the floats nothing but the direction suffers
            for step in range(min(max(JOB_STEPS // costs.weight.size, FEWEST_STEPS), STEPS)):
                rows = zip(self.grids, share * costs.weight, able, strict=True)
                moments = np.array([_moments(*row) for row in rows])
                excess = np.where(able, moments + fixed, 0.0) * costs.weight
                gain = float((share * excess).sum())
                if step == 0 and not (excess > 0).any():
                    break  # nobody waits
                if gain > best_gain:
                    best, best_gain = share, gain
                length = FIRST_MOVE / np.sqrt((step + 1) * np.mean(excess**2))
                share = np.where(able, onto_simplex(share + np.nan_to_num(length * excess)), 0.0)
        return list(best)


def _moments(grid: GridJobs, multiplier: Floats, able: npt.NDArray[np.bool_]) -> Floats:
    # mean busy times in seconds, f64[n], of the jobs that have work there; 0 elsewhere
    found = np.zeros(multiplier.size)
    used = np.flatnonzero(able)
    used = used[np.argsort(grid.release[used], kind="stable")]
    busy = rough_mean_busy_times(grid.release[used], grid.work[used], multiplier[used])
    found[used] = float(grid.tick) * (busy + grid.origin)
    return found


def onto_simplex(part: Floats) -> Floats:
    """The nearest point with part >= 0 and column sums <= 1 of an array f64[R, n] (Held, Wolfe, Crowder 1974)."""
    inside = np.maximum(part, 0.0)
    descending = -np.sort(-part, axis=0)
    excess = (np.cumsum(descending, axis=0) - 1.0) / np.arange(1, part.shape[0] + 1)[:, None]
    level = np.max(excess, axis=0)  # the largest is that of the true support
    outside = inside.sum(axis=0) > 1.0
    return np.where(outside, np.maximum(part - level, 0.0), inside)


@register_kind(SPLIT, objectives=OBJECTIVES, classes=TASK_SHARING_CLASSES)
@register_kind(ON_LINKS, objectives=OBJECTIVES, classes=TASK_SHARING_CLASSES)
@register_kind(ON_GPUS, objectives=OBJECTIVES, classes=TASK_SHARING_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Read the needs again, check y, z >= 0 and y + z <= w, and run preemptive WSPT in Python integers."""
    needs = needs_of(instance)
    times = needs.times(instance, certificate.objective)
    exponent = data_integer(certificate, "multiplier_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    parts = certificate.data.get("resources")
    if not isinstance(parts, list) or not 1 <= len(parts) <= 2 or any(not isinstance(part, dict) for part in parts):
        raise CertificateError("value", "data.resources must be a list of one or two objects")
    if len({str(part.get("resource")) for part in parts}) < len(parts):
        raise CertificateError("dual-feasibility", "data.resources names a resource twice: it serves a job once only")
    value, proofs = times.cost_alone(), []
    spent = [0] * instance.n
    for part in parts:
        more, data = _proved_part(replace(certificate, data=part), instance, needs, times, exponent)
        value += more
        proofs.append(data)
        spent = [before + u for before, u in zip(spent, data["multipliers"], strict=True)]
    _check_spent(spent, times, exponent, instance)
    require_same(certificate, value, {**times.data(), "multiplier_exponent": exponent, "resources": proofs})


def _proved_part(
    part: Certificate, instance: Instance, needs: Needs, times: Times, exponent: int
) -> tuple[Fraction, dict[str, Any]]:
    machine, data = machine_of_needs(part, needs)
    jobs = needs.jobs[str(data["resource"])]
    multipliers = part.data.get("multipliers")
    if (
        not isinstance(multipliers, list)
        or len(multipliers) != instance.n
        or any(type(u) is not int for u in multipliers)
    ):
        raise CertificateError("value", f"multipliers must be a list of {instance.n} integers")
    for j, u in enumerate(multipliers):
        if u < 0 or (u > 0 and machine.work[j] == 0):
            raise CertificateError(
                "dual-feasibility", f"multiplier {u} of job {instance.ids[j]!r}: < 0, or without work"
            )
    used = [j for j, u in enumerate(multipliers) if u > 0]
    doubled, bits = proved_busy_times([(machine.release[j], machine.work[j], multipliers[j]) for j in used])
    value = doubled * machine.tick / 2
    for j in used:
        less = Fraction((times.counted[j] or 0) + times.alone(j), times.per_second)
        value += multipliers[j] * (jobs[j].reach / 2 - less)
    return value / Fraction(2) ** exponent, {**data, "held_up_bits": bits, "multipliers": multipliers}


def _check_spent(spent: list[int], times: Times, exponent: int, instance: Instance) -> None:
    for j, u in enumerate(spent):
        weight = 0 if times.counted[j] is None else times.weight[j]
        if Fraction(u) / Fraction(2) ** exponent > Fraction(weight, times.per_weight):
            raise CertificateError(
                "dual-feasibility", f"multipliers of job {instance.ids[j]!r} are more than its weight together"
            )
