"""Mean busy times: the mean moments of jobs' work on machines that are as fast as the cluster.

**Problem**: sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j - d_j, 0), and the unweighted forms, on the machines of a
relaxation (`optsched.bounds.relaxation`): one, or R of them in parallel (GPUs and network interfaces).
**Bound**: for any multipliers u_ij >= 0 with ``u_j = sum_i u_ij <= w_j``

    sum_i min sum_j u_ij M_ij + sum_ij u_ij (h_ij / 2 - c_j) + sum_j (w_j - u_j) max(0, r_j + e_j - c_j),

c_j = 0, r_j or the due date, e_j the seconds that j takes alone, M_ij the mean busy times on machine i, with the least
possible sums, attained by preemptive WSPT, and h_ij the *reach*: C_j >= M_ij + h_ij / 2. One machine has h_j = e_j.
``busy-time`` takes the best u that the search below finds; ``mean-busy-time`` takes u = w, which does not serve
tardiness; u = 0 is `optsched.bounds.alone`. Multipliers are rounded down to a grid ``2**-m``; they are 0 for jobs with
no work on the machine.
**Proof**: split the cost as sum_i u_ij + (w_j - u_j). A cost max(0, C_j - c_j) is at least C_j - c_j, so that each of
the first parts is at least u_ij (M_ij + h_ij / 2 - c_j) with the mean moment M_ij of j's work on machine i in the
schedule; the last part is at least its value if j never waits. h_j = e_j on one machine: let phi_j(t) <= 1 / e_j be the
fraction of job j done per second, on any GPUs that the class allows; partners and small sub-batches only lower it. The
mean moment at which j is done is at most C_j - e_j / 2. The share of the machine that j takes is at least p_j phi_j(t)
at every moment (this is how the relaxations are proved), so that these rates add up to at most 1, and these M_j are
mean busy times of a processor-sharing schedule there, whose weighted sum is at least the least one. (`task_times` shows
the reaches of its two machines.) The minima are taken separately: one schedule for all machines only costs more.
Rounding down on the grid only enlarges the set of schedules (`optsched.bounds.integer_grid`), and so does rounding mean busy
times down.
**Relations**: for r_j = 0 and one-GPU jobs on m GPUs, u = w is the bound of Eastman, Even and Isaacs (Management
Science 11, 1964): ``WSPT on one machine / m + (m - 1) / (2 m) sum w_j p_j``; and that of S m machines if GPUs are
shared at equal charges 1 / S. Neither this nor `srpt` is larger everywhere. With the best multipliers it is, by
duality, the optimum of the linear program that minimises the cost over C_j and mean busy times in the polyhedra of the
machines, with the inequalities above for C_j. Note that ``max(M_j + e_j / 2, r_j + e_j)`` summed over j is no bound:
M_j is least in the sum only, not job by job.
**Guarantee** none: with tasks, measured schedules are two to three times above.
**Complexity** O(n log n) a step: some hundred for the multipliers, at most 240 for prices and charges.
**Reference**: Goemans et al., SIAM J. Discrete Math. 15 (2002), 165-192, and Lagrangian duality over their polyhedron;
C_j >= M_j + e_j / 2 on a relaxation of the cluster is derived here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from optsched.bounds.certificate import Proof, best_proof
from optsched.bounds.exact_dot import exact_dot, exact_products, exact_total
from optsched.bounds.fast_machine import served_in_order
from optsched.bounds.integer_grid import GridJobs, fraction_bits
from optsched.bounds.relaxation import FastMachine, Machines, Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import COMPLETION, FLOW, SUMS, SumCosts
from optsched.problem.arrays import Bools, Floats, Ints

# The least ``sum u_j M_j`` on the fast machine, exactly, or rounded down in the last place of a very fine grid.
#
# M_j is the mean busy time of job j: the mean moment at which the machine works on it. Preemptive WSPT, which serves the
# released job with the largest u_j / work_j, minimises the sum over all preemptive and processor-sharing schedules.
#
# M_j has the denominator ``work_j``, another for every interrupted job. Up to `EXACT` interrupted jobs are added as
# fractions; beyond that each M_j is rounded down to a multiple of ``2**-HELD_UP_BITS`` ticks. The exact sum is the same
# however ties are broken; so that the rounded one is too, jobs of equal density are served in order of release, then
# of position.
#
# Reference: Goemans, Queyranne, Schulz, Skutella, Wang, Single machine scheduling with release dates, SIAM J. Discrete
# Math. 15 (2002), 165-192 (section 2: mean busy times, their polyhedron and its greedy optimum).

EXACT = 64  # interrupted jobs whose fractions are added; the sum then has at most 64 x 61 bits below one
HELD_UP_BITS = 32


def least_busy_time_sum(release: Ints, work: Ints, multiplier: Ints) -> tuple[Fraction, int | None]:
    """Return the least ``sum multiplier_j M_j`` of one machine, in ticks. Complexity O(n log n).

    Parameters
    ----------
    release
        Release ticks, i64[n].
    work
        Work in ticks, positive, i64[n].
    multiplier
        Multipliers, positive and below 2**53, i64[n].

    Returns
    -------
    tuple
        The sum; None if it is exact, else the number of bits below a tick that were kept.
    """
    order = np.argsort(release, kind="stable")
    release, work, multiplier = release[order], work[order], multiplier[order]
    done, high, low = served_in_order(release, work, densest_first(multiplier, work))
    least = Fraction(exact_products(multiplier, 2 * done - work), 2)
    interrupted = np.flatnonzero((high | low) != 0)
    held_up = (high[interrupted].astype(object) << 64) + low[interrupted].astype(object)
    work, multiplier = work[interrupted].astype(object), multiplier[interrupted].astype(object)
    if interrupted.size <= EXACT:
        return least - sum(map(Fraction, (multiplier * held_up).tolist(), work.tolist()), Fraction(0)), None
    rounded = -(-(held_up << HELD_UP_BITS) // work)  # up, in parts of 2**-HELD_UP_BITS ticks
    return least - Fraction(int(np.dot(multiplier, rounded)), 1 << HELD_UP_BITS), HELD_UP_BITS


def densest_first(multiplier: Ints, work: Ints) -> Ints:
    """Return indices i64[n] by ``multiplier / work`` descending, compared as fractions, then by position.

    Floats order nearly all jobs; only if neighbours contradict the fractions are these sorted. Complexity O(n log n).

    Parameters
    ----------
    multiplier
        Multipliers, positive, i64[n].
    work
        Work in ticks, positive, i64[n].
    """
    if multiplier.size == 0 or int(multiplier.min()) == int(multiplier.max()):
        return np.argsort(work, kind="stable")
    ratio = work / multiplier
    order = np.argsort(ratio, kind="stable")
    # the ratio has three roundings: what differs by more is in order
    ratio = ratio[order]
    near = np.flatnonzero(ratio[1:] <= ratio[:-1] * (1 + 2.0**-48))
    first, second = order[near], order[near + 1]
    u, w = multiplier.astype(object), work.astype(object)
    more = u[first] * w[second] - u[second] * w[first]
    if bool(((more > 0) | ((more == 0) & (first < second))).all()):
        return order
    exact = [Fraction(*pair) for pair in zip(work.tolist(), multiplier.tolist(), strict=True)]
    return np.array(sorted(order.tolist(), key=lambda j: (exact[j], j)), dtype=np.int64)


WEIGHT_BITS = 52  # multipliers stay exact as floats, and their products with ticks fit in 128 bits
SHARE_BITS = 16  # multipliers are multiples of w_j / 65536 where the weights leave bits for it
TOO_MANY = 200_000  # jobs, for a search


def build_mean(relaxed: Relaxed, objective: str) -> Proof | None:
    """Return the proof with u = w on the best machine.

    Its data are the machine, the grids of time and weight, and the flow constant.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.
    """
    costs = relaxed.costs(objective)
    weight, exponent = weights_on_grid(costs.weight)
    proofs = []
    for machines in relaxed.machines(partial(rough_gain, costs, costs.weight)):
        grids = [machine.grid() for machine in machines]
        multipliers = [np.where(grid.work > 0, weight, 0) for grid in grids]
        value, data = _proof(costs, machines, grids, multipliers, exponent)
        if "resources" not in data:
            del data["multipliers"]  # they are w
        proofs.append((value, data))
    return best_proof(proofs)


def build_split(relaxed: Relaxed, objective: str) -> Proof | None:
    """Return the proof with the best mixture that the searches for machines and multipliers meet.

    Its data are those of u = w, and the multipliers u_ij 2**m. For more than 200,000 jobs u = w, or None if
    `build_mean` says the same.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.
    """
    if relaxed.mean_beside and relaxed.instance.n > TOO_MANY:
        return None
    costs = relaxed.costs(objective)
    weight, exponent = weights_on_grid(costs.weight, SHARE_BITS)
    proofs = []
    for machines, grids, shares in _mixtures(relaxed, costs):
        multipliers = [
            np.where(grid.work > 0, np.floor(weight * part), 0).astype(np.int64)
            for grid, part in zip(grids, shares, strict=True)
        ]
        proofs.append(_proof(costs, machines, grids, multipliers, exponent))
    return best_proof(proofs)


def _mixtures(relaxed: Relaxed, costs: SumCosts) -> Iterator[tuple[Machines, list[GridJobs], Floats]]:
    part = costs.weight  # with which machines are looked for

    def value(machine: FastMachine) -> float:
        return rough_gain(costs, part, machine)

    for machines in relaxed.machines(value, rounds=2):
        grids = [machine.grid() for machine in machines]
        corners = np.eye(len(machines))[:, :, None] * np.ones(costs.weight.size)
        shares = corners[0] if costs.weight.size > TOO_MANY else shares_on(costs, machines, grids)
        part = shares[0] * costs.weight
        yield machines, grids, shares
        if len(machines) > 1:
            yield from ((machines, grids, corner) for corner in corners)


def shares_on(costs: SumCosts, machines: Machines, grids: list[GridJobs]) -> Floats:
    """Return the best shares u_ij / w_j that an ascent meets, f64[R, n].

    Parameters
    ----------
    costs
        Costs of the jobs.
    machines
        R machines.
    grids
        The jobs on the grid of every machine.
    """
    able = np.array([(grid.work > 0) & (costs.weight > 0) for grid in grids])
    orders = [_by_release(grid, used) for grid, used in zip(grids, able, strict=True)]
    fixed = [_beyond_waiting(costs, machine)[order] for machine, order in zip(machines, orders, strict=True)]
    weights = [costs.weight[order] for order in orders]

    def gain(shares: Floats) -> tuple[float, Floats]:
        slope, value = np.zeros(shares.shape), 0.0
        for i, (grid, order) in enumerate(zip(grids, orders, strict=True)):
            part, weight = shares[i, order], weights[i]
            excess = (mean_busy_times(grid, part * weight, order) + fixed[i]) * weight
            slope[i, order] = excess
            value += float(part @ excess)
        return value, slope

    return best_shares(gain, able)


def rough_gain(costs: SumCosts, part: Floats, machine: FastMachine) -> float:
    """Return the difference of the bound with multipliers from the cost if no job waits, in floats.

    Parameters
    ----------
    costs
        Costs of the jobs.
    part
        Multipliers, f64[n].
    machine
        The machine.
    """
    grid = machine.rough_grid()
    order = _by_release(grid, (grid.work > 0) & (part > 0))
    with np.errstate(all="ignore"):
        used = part[order]
        return float(used @ (mean_busy_times(grid, used, order) + _beyond_waiting(costs, machine)[order]))


def _beyond_waiting(costs: SumCosts, machine: FastMachine) -> Floats:
    # h / 2 - c, less the cost of never waiting
    return machine.reach / 2 - costs.counted - np.maximum(costs.release + costs.duration - costs.counted, 0.0)


def _by_release(grid: GridJobs, used: Any) -> Ints:
    jobs = np.flatnonzero(used)
    return np.asarray(jobs[np.argsort(grid.release[jobs], kind="stable")])


def weights_on_grid(weight: Floats, extra_bits: int = 0) -> tuple[Ints, int]:
    """Return ``floor(w_j 2**m)``, i64[n], and m.

    m makes all weights integers with ``extra_bits`` to spare, if `WEIGHT_BITS` allow it.

    Parameters
    ----------
    weight
        Weights, f64[n].
    extra_bits
        Further bits of m.
    """
    most = float(weight.max(initial=0.0))
    fits = min(WEIGHT_BITS - math.frexp(most)[1], 1000)
    exponent = min(fraction_bits(weight.copy(), fits) + extra_bits, fits)
    return np.floor(np.ldexp(weight, exponent)).astype(np.int64), exponent


def _proof(costs: SumCosts, machines: Machines, grids: list[GridJobs], multipliers: list[Ints], exponent: int) -> Proof:
    value, parts = costs.alone(costs.weight), list[dict[str, Any]]()
    for machine, grid, multiplier in zip(machines, grids, multipliers, strict=True):
        if not parts or multiplier.any():
            more, bits = gain_with(costs, machine.reach, grid, multiplier, exponent)
            value += more
            parts.append({**machine.data(grid), "held_up_bits": bits, "multipliers": multiplier.tolist()})
    data = {**costs.data(), "multiplier_exponent": exponent}
    return value, {**data, "resources": parts} if "resource" in machines[0].stated() else {**data, **parts[0]}


def gain_with(
    costs: SumCosts, reach: Floats, grid: GridJobs, multiplier: Ints, exponent: int
) -> tuple[Fraction, int | None]:
    """Return the amount that the multipliers of a machine add to the cost if no job waits.

    Parameters
    ----------
    costs
        Costs of the jobs.
    reach
        Reach of every job, in seconds, f64[n].
    grid
        The jobs on the machine's grid.
    multiplier
        Multipliers ``multiplier_j 2**-exponent``, i64[n].
    exponent
        Exponent of the multipliers.

    Returns
    -------
    tuple
        The amount; None if its sum is exact, else the number of bits below a tick that were kept.
    """
    used = multiplier > 0
    columns = (grid.release, grid.work, multiplier)
    least, bits = least_busy_time_sum(*(columns if used.all() else (column[used] for column in columns)))
    least += grid.origin * exact_total(multiplier)
    u = np.ldexp(multiplier.astype(np.float64), -exponent)
    value = least * grid.tick / Fraction(2) ** exponent - costs.alone(u)
    return value + exact_dot(u, reach) / 2 - exact_dot(u, costs.counted), bits


LEAST = "least mean busy times on one machine"
theorem(Theorem("mean-busy-time", (*COMPLETION, *FLOW), LEAST, build_mean))
MIXED = "mean busy times on one machine, mixed job by job with seconds alone"
theorem(Theorem("busy-time", SUMS, MIXED, build_split))


# Parts of each job's weight for several bounds on its cost: one search for all bounds that mix job by job.
#
# A bound ``constant + sum_i gain_i(x_i)``, concave in shares x_ij >= 0 of the weights w_j with ``sum_i x_ij <= 1``, has the
# mean busy times of machine i as the supergradient of its gain: by how much the cost that they prove exceeds that of never
# waiting.
#
# **Method**: projected ascent in floats, in phases. The first steps are scaled job by job, as in AdaGrad (Duchi, Hazan,
# Singer, JMLR 12, 2011): they go far quickly, and stop in corners. Those of the other phases start from the best shares met
# and go straight along the slope, by 1 / sqrt(k), from a shorter and shorter first move. Of five times as many steps they
# lose 0.006 % of the bound in the mean of 384 pairs of an instance and an objective, 0.15 % at most; AdaGrad alone 0.07 %
# and 9.5 %. Heuristic: whatever shares are found, they are evaluated exactly, and the verifier takes any. **Complexity**
# O(n log n) a step.
#
# **Ends**: no share gains anything if the slope is nowhere positive, since the gain is concave and 0 without shares. On one
# machine a step that changes nothing ends its phase: the moves that follow are shorter.

STEPS, FEWEST_STEPS, JOB_STEPS = 200, 12, 100_000  # of ascent: as many as JOB_STEPS allow within the two limits
# part of the steps, and the first move in shares of the weight (root mean square, but for AdaGrad's)
PHASES = ((0.3, 0.3), (0.3, 0.2), (0.2, 0.03), (0.2, 0.005))

Gain = Callable[[Floats], tuple[float, Floats]]  # shares f64[R, n] to the gain and its supergradient


def best_shares(gain: Gain, able: Bools) -> Floats:
    """Return the best shares that the ascent meets, f64[R, n].

    Parameters
    ----------
    gain
        Function from shares, f64[R, n], to the gain and its supergradient.
    able
        Where shares may be positive, bool[R, n].
    """
    share = np.where(able, 1.0 / np.maximum(able.sum(axis=0), 1), 0.0)
    best, most, squares = np.zeros(able.shape), 0.0, np.zeros(able.shape)
    if not able.any():
        return best
    steps = min(max(JOB_STEPS // able.shape[1], FEWEST_STEPS), STEPS)
    with np.errstate(all="ignore"):  # of times near the ends of the floats nothing but the direction suffers
        for phase, (part, move) in enumerate(PHASES):
            for step in range(round(part * steps)):
                value, slope = gain(share)
                if (slope <= 0).all():
                    return np.zeros(able.shape)
                if value > most:
                    best, most = share, value
                squares += slope**2
                scale = np.sqrt((step + 1) * np.mean(slope**2) if phase else squares)
                before, share = share, onto_simplex(share + np.nan_to_num(move * slope / scale)) * able
                if share.shape[0] == 1 and np.array_equal(share, before):
                    break
            share = best
    return best


def onto_simplex(part: Floats) -> Floats:
    """Return the nearest point with part >= 0 and column sums <= 1 (Held, Wolfe, Crowder 1974).

    Parameters
    ----------
    part
        Any point, f64[R, n].
    """
    if part.shape[0] == 1:
        return np.minimum(np.maximum(part, 0.0), 1.0)
    inside = np.maximum(part, 0.0)
    descending = -np.sort(-part, axis=0)
    excess = (np.cumsum(descending, axis=0) - 1.0) / np.arange(1, part.shape[0] + 1)[:, None]
    level = np.max(excess, axis=0)  # the largest is that of the true support
    outside = inside.sum(axis=0) > 1.0
    return np.where(outside, np.maximum(part - level, 0.0), inside)


def mean_busy_times(grid: GridJobs, multiplier: Floats, order: Ints) -> Floats:
    """Return M_j in seconds for some jobs, f64[k]; ties and last bits do not matter here.

    Parameters
    ----------
    grid
        The jobs on the machine's grid.
    multiplier
        Multipliers of these jobs, f64[k].
    order
        Indices of the jobs, by release, i64[k].
    """
    work = grid.work[order]
    done, high, low = served_in_order(grid.release[order], work, np.argsort(work / multiplier, kind="stable"))
    held_up = high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    return np.asarray(float(grid.tick) * (done - work / 2 - held_up / work + grid.origin))
