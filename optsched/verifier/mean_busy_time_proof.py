"""Theorems of mean busy times: mean-busy-time, split-busy-time, and *-busy-time on any machine.

C_j >= M_j + p_j / 2 for the mean busy time M_j of a job on one machine, and preemptive WSPT (weighted shortest processing
time first) has the least sum of u_j M_j for any multipliers 0 <= u_j <= w_j. With tasks, the weight of a job is split among
GPUs and network interfaces.
"""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Case, Proof
from .document_fields import Data, read_exponent, read_field
from .exact_numbers import floors, integers
from .refusal import DUAL, Refused, need
from .tick_machine import Machine, served

EXACT, KEPT_BITS = 64, 32  # more interrupted jobs: their mean busy times are rounded down to 2^-32 ticks


def mean_busy_time(case: Case, data: Data) -> Proof:
    """Prove the sum of mean busy times with the weights as multipliers.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``multiplier_exponent``, and those of the machine.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    on, exponent = case.machine(data), read_exponent(data, "multiplier_exponent")
    multipliers = weights_on_grid(case, on, exponent)
    more, stated = busy_times(case, on, multipliers, exponent)
    del stated["multipliers"]
    return case.least + more, {**case.stated, "multiplier_exponent": exponent, **stated}


def busy_time(case: Case, data: Data) -> Proof:
    """Prove the sum of mean busy times with the multipliers that the data state.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``multipliers``, ``multiplier_exponent``, and those of the machine.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    on, exponent = case.machine(data), read_exponent(data, "multiplier_exponent")
    multipliers = stated_multipliers(data, on)
    spent_at_most(case, [multipliers], exponent)
    more, stated = busy_times(case, on, multipliers, exponent)
    return case.least + more, {**case.stated, "multiplier_exponent": exponent, **stated}


def busy_time_or_weights(case: Case, data: Data) -> Proof:
    """Prove the sum of mean busy times, with the weights if the data state no multipliers.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate, as for `busy_time` or `mean_busy_time`.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    return (busy_time if "multipliers" in data else mean_busy_time)(case, data)


def busy_time_of_resources(case: Case, data: Data) -> Proof:
    """Prove the sum of mean busy times on one resource or two, between which the weights are split.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``resources``, objects as for `busy_time`, and ``multiplier_exponent``.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    parts, exponent = read_field(list, data, "resources"), read_exponent(data, "multiplier_exponent")
    legal = 1 <= len(parts) <= 2 and all(type(part) is dict for part in parts)
    need(legal, "data.resources must be one or two objects")
    once = len({str(part.get("resource")) for part in parts}) == len(parts)
    need(once, "data.resources names a resource twice: it serves a job only once", DUAL)
    value, resources, spent = case.least, list[Data](), list[list[int]]()
    for part in parts:
        on = case.machine(part)
        spent.append(stated_multipliers(part, on))
        more, stated = busy_times(case, on, spent[-1], exponent)
        value += more
        resources.append(stated)
    spent_at_most(case, spent, exponent)
    return value, {**case.stated, "multiplier_exponent": exponent, "resources": resources}


def weights_on_grid(case: Case, on: Machine, exponent: int) -> list[int]:
    """Return the weights of jobs with work as multipliers, rounded down.

    Parameters
    ----------
    case
        What the certificate is about.
    on
        The machine.
    exponent
        Multipliers are over two to the power of this.
    """
    rounded = floors(case.weight, case.shares, exponent)
    return [w if work > 0 else 0 for w, work in zip(rounded, on.work, strict=True)]


def stated_multipliers(data: Data, on: Machine) -> list[int]:
    """Return the multipliers that the data of a certificate state: an integer for every job, 0 without work.

    Parameters
    ----------
    data
        Data of the certificate: ``multipliers``.
    on
        The machine.
    """
    multipliers: list[int] = read_field(list, data, "multipliers")
    legal = len(multipliers) == len(on.work) and set(map(type, multipliers)) <= {int}
    need(legal, "data.multipliers must be integers, one for every job")
    legal = all((u > 0 and work > 0) or u == 0 for u, work in zip(multipliers, on.work, strict=True))
    need(legal, "data.multipliers: one is negative, or of a job without work on the machine", DUAL)
    return multipliers


def spent_at_most(case: Case, multipliers: list[list[int]], exponent: int) -> None:
    """Refuse multipliers of a job that are together more than its weight.

    Parameters
    ----------
    case
        What the certificate is about.
    multipliers
        Multipliers of every job on every machine.
    exponent
        Multipliers are over two to the power of this.
    """
    up, down = case.shares << max(-exponent, 0), max(exponent, 0)
    for j, (w, *u) in enumerate(zip(case.weight, *multipliers, strict=True)):
        if sum(u) * up > w << down:
            raise Refused(f"data.multipliers[{j}] are together more than the weight of the job", DUAL)


def densest_first(work: list[int], multipliers: list[int], release: list[int]) -> list[int]:
    """Return jobs by multiplier over work, falling, then by release.

    With ``2^K >= u^2`` for all multipliers u, two ratios work / u are ordered as ``floor(2^K work / u)`` are.

    Parameters
    ----------
    work
        Works, positive.
    multipliers
        Multipliers u, positive.
    release
        Releases.
    """
    order = sorted(range(len(work)), key=release.__getitem__)
    bits = 2 * max(multipliers, default=0).bit_length()
    density = work
    if multipliers and min(multipliers) < max(multipliers):
        density = [(w << bits) // u for w, u in zip(work, multipliers, strict=True)]
    order.sort(key=density.__getitem__)
    return order


def busy_times(case: Case, on: Machine, multipliers: list[int], exponent: int) -> Proof:
    """Return what multipliers add to the cost of nobody waiting, and what certificates state of it.

    Twice the work of a job times its mean busy time is the sum of b^2 - a^2 over its pieces [a, b): work (2 end - work) if
    nothing interrupts it, and less by a gap if something does.

    Parameters
    ----------
    case
        What the certificate is about.
    on
        The machine.
    multipliers
        Multipliers of every job.
    exponent
        Multipliers are over two to the power of this.
    """
    used = [j for j, u in enumerate(multipliers) if u]
    u, work = [multipliers[j] for j in used], [on.work[j] for j in used]
    release = [on.release[j] for j in used]
    ends, gaps = served(release, work, densest_first(work, u, release))
    total = sum([x * (2 * end - w) for x, end, w in zip(u, ends, work, strict=True)])
    bits = KEPT_BITS if len(gaps) > EXACT else None
    if bits is None:
        doubled = total - sum((Fraction(u[j] * gap, work[j]) for j, gap in gaps.items()), Fraction(0))
    else:
        rounded = sum(u[j] * -((-gap << bits) // (2 * work[j])) for j, gap in gaps.items())
        doubled = total - Fraction(2 * rounded, 1 << bits)
    value = doubled / on.second + _beyond_waiting(case, on, used, u)
    return value / 2 / Fraction(2) ** exponent, {**on.stated, "held_up_bits": bits, "multipliers": multipliers}


def _beyond_waiting(case: Case, on: Machine, used: list[int], u: list[int]) -> Fraction:
    # twice what the jobs take from the mean moment on, less c_j and their cost alone
    counted = sum([x * (case.moment[j] + case.alone[j]) for x, j in zip(u, used, strict=True)])
    if on.reach is None:
        taken = sum([x * case.length[j] for x, j in zip(u, used, strict=True)])
        return Fraction(taken - 2 * counted, case.unit)
    reaches, parts = integers(on.reach)
    taken = sum([x * reaches[j] for x, j in zip(u, used, strict=True)])
    return Fraction(taken, parts) - Fraction(2 * counted, case.unit)
