"""The rules of a feasible schedule (rigid gangs on exclusive GPUs, rate 1 on any allowed GPU), for `optsched.check.referee`.

At the task level jobs share GPUs; what the rules say there stands in `optsched.check.tasks`, and for two jobs on a GPU in
`optsched.check.sharing`.

============== =======================================================================================================
instance       the schedule was made for this instance (sha256 of jobs and cluster)
completeness   every job runs, every segment names a job of the instance, every number is finite
arrival        no job starts before its arrival
gang           a segment holds exactly the job's number of GPUs, and a job is never in two places at once (a forking
               schedule: it may be, every segment is a copy of it)
capacity       the GPUs exist, a segment names each of them once, and a GPU serves one segment at a time
type, memory   the GPUs are of a type the job may use (not one at which its throughput table says zero, or nothing), and
               have the memory that it needs
rate           a segment does not end before its start, nor does more work than its length allows: at rate 1, or for a job
               with a profile at one iteration in alpha(placement) seconds, its GPUs holding the replicas in order; none
               where it has no speed (`optsched.check.speed_rules`)
work           the work of a job adds up to its duration (its iterations), and none of it is negative
preemption     (where it is forbidden) a job runs in one piece: no gaps, always on the same GPUs, and not in copies
============== =======================================================================================================

**Tolerance**: `optsched.check.tolerance`. One a job: what its segments overdraw is added up.

**Complexity** O(K log K) in numpy for K (segment, GPU) pairs; only the violations that are listed become objects.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optsched.check.context import LISTED, RULES, Case, Findings, Violation
from optsched.check.speed_rules import judge_work, rate
from optsched.check.tolerance import (
    EXACT,
    RELATIVE,
    ULPS,
    job_tolerance,
    largest_of_jobs,
    number,
    of_jobs,
    overspent,
    slack,
    whole,
)
from optsched.problem.instance import Instance

__all__ = [
    "EXACT",
    "LISTED",
    "RELATIVE",
    "RULES",
    "ULPS",
    "Case",
    "Findings",
    "Violation",
    "judge",
    "judge_exclusive",
    "judge_gangs",
    "number",
    "slack",
    "whole",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def judge(case: Case, *, preemptive: bool, forking: bool = False) -> Findings:
    """Apply every rule but ``value``.

    ``preemptive``: may a job be stopped and resumed? ``forking``: may it run in several copies at once?
    """
    found = Findings()
    with np.errstate(all="ignore"):  # tampered numbers overflow; the comparisons come out right all the same
        judge_gangs(case, found)
        judge_exclusive(case, found)
        rate(case, found)
        if not forking:
            _one_place(case, found)
        if not preemptive:
            _preemption(case, found)
    return found


def judge_gangs(case: Case, found: Findings) -> None:
    """The rules that hold whether or not GPUs are shared: all but who else is there, how fast a job is, and preemption."""
    for rule in (_instance, _completeness, _arrival, _gang, _existing_gpus, _type_and_memory, judge_work):
        rule(case, found)


def _instance(case: Case, found: Findings) -> None:
    claimed, digest = case.claim.digest, case.instance.digest
    message = f"made for the instance {claimed!r} (legal: {digest!r}, the one it is checked against)"
    found.add("instance", np.flatnonzero([claimed != digest]), lambda _: Violation("instance", message))


def _completeness(case: Case, found: Findings) -> None:
    claim, rule = case.claim, "completeness"
    found.add(rule, np.flatnonzero(~case.runs), lambda j: case.of_job(rule, j, "never runs"))
    ids = f"one of the {case.instance.n} ids of the instance"
    found.add(rule, np.flatnonzero(~case.known), lambda s: case.of_segment(rule, s, "names no job", ids))
    broken = np.flatnonzero(~case.finite)
    found.add(
        rule,
        broken,
        lambda s: case.of_segment(rule, s, f"does {number(claim.work[s])} s of work", "finite times and work"),
    )


def _arrival(case: Case, found: Findings) -> None:
    rows = np.flatnonzero(case.sound)
    job, start = case.claim.job[rows], case.claim.start[rows]
    arrival = case.instance.arrival[job]
    # No sums lie behind a start: only the rounding of the clock is forgiven.
    each = slack(np.zeros(rows.size), start, arrival)
    ulp = largest_of_jobs(job, np.spacing(np.maximum(np.abs(start), arrival)), case.instance.n)
    alone, over = overspent(job, np.maximum(arrival - start, 0.0), each, ULPS * ulp)
    found.add(
        "arrival",
        alone,
        lambda i: case.of_segment(
            "arrival", int(rows[i]), "starts too early", f"from the job's arrival, {number(arrival[i])}"
        ),
    )
    found.add("arrival", over, lambda j: _in_sum(case, "arrival", j, "starts too early again and again"))


def _in_sum(case: Case, rule: str, j: int, message: str) -> Violation:
    job = case.instance.ids[j]
    return Violation(rule, f"job {job!r} {message} (legal: one tolerance for rounding, however many segments)", job)


def _tolerance(case: Case) -> Floats:
    """What the segments of a job may be together with others', or apart from each other, in all; f64[n] seconds."""
    claim, n = case.claim, case.instance.n
    rows = np.flatnonzero(case.sound)
    job, start, end = claim.job[rows], claim.start[rows], claim.end[rows]
    ulp = largest_of_jobs(job, np.spacing(np.maximum(np.abs(start), np.abs(end))), n)
    return job_tolerance(of_jobs(job, np.maximum(end - start, 0.0), n), ulp)


def _gang(case: Case, found: Findings) -> None:
    claim, rule = case.claim, "gang"
    width, gang = np.diff(claim.offset), case.gang
    found.add(
        rule,
        np.flatnonzero(case.known & (width != gang)),
        lambda s: case.of_segment(rule, s, f"has {width[s]} GPUs", f"{gang[s]}, the job's gang"),
    )


def _one_place(case: Case, found: Findings) -> None:
    claim, rule = case.claim, "gang"
    rows = np.flatnonzero(case.sound)
    later, earlier, both, each = _overlaps(claim.job[rows], claim.start[rows], claim.end[rows])
    alone, over = overspent(claim.job[rows[later]], both, each, _tolerance(case))
    found.add(
        rule,
        alone,
        lambda i: case.of_segment(
            rule, int(rows[later[i]]), f"overlaps {case.name(int(rows[earlier[i]]))}", "one place at a time"
        ),
    )
    found.add(rule, over, lambda j: _in_sum(case, rule, j, "overlaps itself again and again"))


def _existing_gpus(case: Case, found: Findings) -> None:
    segment, rule, cluster = case.segment, "capacity", case.instance.cluster
    found.add(
        rule,
        np.flatnonzero(~case.exists),
        lambda k: case.of_segment(rule, int(segment[k]), f"names {case.place(k)}", f"GPUs of {cluster.spec}"),
    )
    found.add(
        rule,
        np.flatnonzero(case.exists & ~case.first),
        lambda k: case.of_segment(rule, int(segment[k]), f"names {case.place(k)} twice", "once"),
    )


def judge_exclusive(case: Case, found: Findings) -> None:
    """The rule capacity where GPUs are not shared: a GPU serves one segment at a time."""
    claim, rule, n = case.claim, "capacity", case.instance.n
    pairs = np.flatnonzero(case.first & case.finite[case.segment])
    rows = case.segment[pairs]
    later, earlier, both, each = _overlaps(case.gpu[pairs], claim.start[rows], claim.end[rows])
    # Two gangs meet on many GPUs; that is one violation, told of the first of them.
    meeting = np.unique(rows[later] * claim.job.size + rows[earlier], return_index=True)[1]
    later, earlier, both, each = later[meeting], earlier[meeting], both[meeting], each[meeting]
    # It counts for either of the two jobs; n: no job of the instance.
    job = np.where(claim.job < 0, n, claim.job)
    blamed = np.concatenate([job[rows[later]], job[rows[earlier]]])
    allowed = np.append(_tolerance(case), np.inf)
    alone, over = overspent(blamed, np.tile(both, 2), np.tile(each, 2), allowed)
    found.add(
        rule,
        alone[alone < later.size],
        lambda i: case.of_segment(
            rule,
            int(rows[later[i]]),
            f"uses {case.place(pairs[later[i]])}, and so does {case.name(int(rows[earlier[i]]))}",
            "one segment at a time",
        ),
    )
    found.add(rule, over, lambda j: _in_sum(case, rule, j, "uses GPUs beside other jobs again and again"))


def _type_and_memory(case: Case, found: Findings) -> None:
    instance, cluster = case.instance, case.instance.cluster
    pairs = np.flatnonzero(case.exists & case.known[case.segment])
    job, node = case.claim.job[case.segment[pairs]], case.node[pairs]
    _type(case, pairs, found)

    def short_of_memory(k: int) -> Violation:
        need = instance.gpu_memory[case.claim.job[case.segment[k]]]
        offer = cluster.node_memory[case.node[k]]
        message = f"needs {number(need)} bytes on {case.place(k)}"
        return case.of_segment("memory", int(case.segment[k]), message, f"at most its {number(offer)} bytes")

    short = pairs[instance.gpu_memory[job] > cluster.node_memory[node]]
    found.add("memory", _first_of_segment(case, short), short_of_memory)


def _type(case: Case, pairs: Ints, found: Findings) -> None:
    instance, cluster = case.instance, case.instance.cluster
    if instance.table["gpu_types"].null_count() == instance.n and not instance.tabled.any():
        return
    # Which types suit every different pair of a list of types and a job type with its gang (None: any speed).
    limits = list(zip(*_limits(instance), strict=True))
    position = {limit: k for k, limit in enumerate(dict.fromkeys(limits))}
    kinds = [group.gpu for group in cluster.nodes]
    suits = np.array([[_suits(instance, kind, *limit) for kind in kinds] for limit in position], dtype=np.bool_)
    limit_of_job = np.array([position[limit] for limit in limits], dtype=np.int64)
    job, group = case.claim.job[case.segment[pairs]], cluster.node_group[case.node[pairs]]
    wrong = pairs[~suits[limit_of_job[job], group]]

    def wrong_type(k: int) -> Violation:
        j = int(case.claim.job[case.segment[k]])
        here = dict.fromkeys(kind for kind in kinds if _suits(instance, kind, *limits[j]))
        legal = ", ".join(here or instance.table["gpu_types"][j] or ["none of this cluster"])
        kind = kinds[cluster.node_group[case.node[k]]]
        return case.of_segment("type", int(case.segment[k]), f"uses {case.place(k)}, a {kind}", legal)

    found.add("type", _first_of_segment(case, wrong), wrong_type)


def _limits(instance: Instance) -> tuple[list[frozenset[str] | None], list[tuple[str, int] | None]]:
    """Of every job: the types that it names, and its row of the throughput table (type of job, gang)."""
    named = instance.table["gpu_types"].to_list()
    rows = zip(instance.tabled.tolist(), instance.table["profile"].to_list(), instance.gpus.tolist(), strict=True)
    allowed = [names if names is None else frozenset(map(str.casefold, names)) for names in named]
    return allowed, [(name, gang) if tabled else None for tabled, name, gang in rows]


def _suits(instance: Instance, kind: str, allowed: frozenset[str] | None, row: tuple[str, int] | None) -> bool:
    """May a job run on GPUs of a type? Not where its table says zero, together or spread, or nothing."""
    if allowed is not None and kind.casefold() not in allowed:
        return False
    if row is None or instance.throughputs is None:
        return True
    found = instance.throughputs.get(row[0], kind, row[1])
    return found is not None and found.together > 0 and (found.spread is None or found.spread > 0)


def _first_of_segment(case: Case, pairs: Ints) -> Ints:
    return pairs[np.unique(case.segment[pairs], return_index=True)[1]]


def _preemption(case: Case, found: Findings) -> None:
    claim, rule = case.claim, "preemption"
    rows = np.flatnonzero(case.sound & ((claim.end > claim.start) | (claim.work > 0)))  # an empty segment is no run
    rows = rows[np.lexsort((claim.end[rows], claim.start[rows], claim.job[rows]))]
    before, after = rows[:-1], rows[1:]
    same = claim.job[before] == claim.job[after]
    before, after = before[same], after[same]
    stop, resume = claim.end[before], claim.start[after]
    length = np.minimum(stop - claim.start[before], claim.end[after] - resume)
    gaps, over = overspent(claim.job[after], np.abs(resume - stop), slack(length, stop, resume), _tolerance(case))
    gap = np.zeros(after.size, dtype=np.bool_)
    gap[gaps] = True
    cut = np.flatnonzero(gap | _moved(case, before, after))
    found.add(
        rule,
        cut,
        lambda i: case.of_segment(
            rule,
            int(after[i]),
            f"resumes what {case.name(int(before[i]))} began" + ("" if gap[i] else " on other GPUs"),
            "one run without gaps on the same GPUs",
        ),
    )
    found.add(rule, over, lambda j: _in_sum(case, rule, j, "stops again and again"))


def _moved(case: Case, before: Ints, after: Ints) -> Bools:
    """Which pairs of segments hold different sets of GPUs."""
    order = np.lexsort((case.gpu, case.segment))  # the pairs stay with their segment, its GPUs ascending
    gpu, offset = case.gpu[order], case.claim.offset
    width = np.diff(offset)
    moved = np.asarray(width[before] != width[after])
    alike = np.flatnonzero(~moved)
    pair = np.repeat(np.arange(alike.size), width[before[alike]])
    step = np.arange(pair.size) - np.repeat(
        np.cumsum(width[before[alike]]) - width[before[alike]], width[before[alike]]
    )
    differs = gpu[offset[before[alike]][pair] + step] != gpu[offset[after[alike]][pair] + step]
    moved[alike[pair[differs]]] = True
    return moved


def _overlaps(key: Ints, start: Floats, end: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """(rows that start while another row of the same key is still running, that other row, seconds, what is forgiven).

    Rows of no length occupy nothing. Every row is compared with the one that ends last among those that started
    before it, so a long row that covers many later ones clashes with each of them; and the seconds of a key add up to
    what its rows are longer than the time they cover.
    """
    rows = np.flatnonzero(end > start)
    rows = rows[np.lexsort((start[rows], key[rows]))]
    key, start, end = key[rows], start[rows], end[rows]
    by_end = np.lexsort((end, key))
    rank = np.empty(rows.size, dtype=np.int64)
    rank[by_end] = np.arange(rows.size)
    # Ranks grow from key to key, so the running maximum never reaches back into another key.
    holder = by_end[np.maximum.accumulate(rank)[:-1]]
    this = np.arange(1, rows.size)
    until = np.minimum(end[holder], end[this])
    clash = np.flatnonzero((key[holder] == key[this]) & ~(until <= start[this]))
    this, holder, until = this[clash], holder[clash], until[clash]
    length = np.minimum(end[holder] - start[holder], end[this] - start[this])
    return rows[this], rows[holder], until - start[this], slack(length, start[this], until)
