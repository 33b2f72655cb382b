"""The rules of a feasible schedule (rigid gangs on exclusive GPUs, rate 1 on any allowed GPU), for `optsched.check.referee`.

Classes of schedules with other rules register them in `optsched.check.class_rules`.

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
               with a profile at one iteration in alpha(placement) seconds, its GPUs holding the replicas in order, and
               longer beside others on its network interfaces where jobs contend; none where it has no speed, and none
               in the seconds for which a job that was stopped is resumed, where it says how many
               (`optsched.check.speed_rules`, `optsched.check.restarts`)
work           the work of a job adds up to its duration (its iterations), and none of it is negative
preemption     (where it is forbidden) a job runs in one piece: no gaps, always on the same GPUs, and not in copies
============== =======================================================================================================

**Tolerance**: `optsched.check.tolerance`. One a job: what its segments overdraw is added up.

**Complexity** O(K log K) in numpy for K (segment, GPU) pairs; only the violations that are listed become objects.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from optsched.check.context import CheckContext, Violation, Violations
from optsched.check.speed_rules import judge_work, rate
from optsched.check.tolerance import ULPS, job_tolerance, largest_of_jobs, number, of_jobs, overspent, slack
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.speed_model import SpeedModel


def judge(
    context: CheckContext, *, preemptive: bool, copies: bool = False, resized: Mapping[int, float] | None = None
) -> Violations:
    """Apply every rule except ``value``.

    Parameters
    ----------
    context
        The schedule.
    preemptive
        Whether a job may be stopped and resumed.
    copies
        Whether a job may run in several copies at once.
    resized
        For the segments of elastic jobs, which may have other gangs, the share of communication that contends.
    """
    found = Violations()
    with np.errstate(all="ignore"):  # tampered numbers overflow; the comparisons come out right all the same
        judge_gangs(context, found)
        judge_exclusive(context, found)
        rate(context, found, resized)
        if not copies:
            one_place(context, found)
        if not preemptive:
            _preemption(context, found)
    return found


def judge_gangs(context: CheckContext, found: Violations) -> None:
    """Apply the rules that hold whether or not GPUs are shared: all except capacity, rate and preemption.

    Parameters
    ----------
    context
        The schedule.
    found
        Violations so far.
    """
    for rule in (_instance, _completeness, _arrival, _gang, _existing_gpus, _type_and_memory, judge_work):
        rule(context, found)


def _instance(context: CheckContext, found: Violations) -> None:
    claimed, digest = context.document.digest, context.instance.digest
    message = f"made for the instance {claimed!r} (expected: {digest!r}, the one it is checked against)"
    found.add("instance", np.flatnonzero([claimed != digest]), lambda _: Violation("instance", message))


def _completeness(context: CheckContext, found: Violations) -> None:
    tell, work, rule = context.of_segment, context.document.work, "completeness"
    found.add(rule, np.flatnonzero(~context.runs), lambda j: context.of_job(rule, j, "never runs"))
    found.blame(tell, rule, ~context.known, "names no job", f"one of the {context.instance.n} ids of the instance")
    found.blame(tell, rule, ~context.finite, lambda s: f"does {number(work[s])} s of work", "finite times and work")


def _arrival(context: CheckContext, found: Violations) -> None:
    rows = np.flatnonzero(context.sound)
    job, start = context.document.job[rows], context.document.start[rows]
    arrival = context.instance.arrival[job]
    if (start >= arrival).all():
        return
    # No sums lie behind a start: only the rounding of the clock is forgiven.
    each = slack(np.zeros(rows.size), start, arrival)
    ulp = largest_of_jobs(job, np.spacing(np.maximum(np.abs(start), arrival)), context.instance.n)
    alone, over = overspent(job, np.maximum(arrival - start, 0.0), each, ULPS * ulp)
    tell, rule = context.of_segment, "arrival"
    found.blame(tell, rule, alone, "starts too early", lambda i: f"from the job's arrival, {number(arrival[i])}", rows)
    found.add(rule, over, lambda j: in_sum(context, rule, j, "starts too early again and again"))


def in_sum(context: CheckContext, rule: str, j: int, message: str) -> Violation:
    """Return the violation of a job that breaks a rule by more than rounding with all its segments together.

    Parameters
    ----------
    context
        The schedule.
    rule
        The rule.
    j
        Index of the job.
    message
        What the job does.
    """
    job = context.instance.ids[j]
    return Violation(rule, f"job {job!r} {message} (expected: one tolerance for rounding, however many segments)", job)


def tolerance_of_jobs(context: CheckContext) -> Floats:
    """Return the seconds that the segments of a job may overlap others, or lie apart from each other, in all, f64[n].

    Parameters
    ----------
    context
        The schedule.
    """
    document, n = context.document, context.instance.n
    rows = np.flatnonzero(context.sound)
    job, start, end = document.job[rows], document.start[rows], document.end[rows]
    ulp = largest_of_jobs(job, np.spacing(np.maximum(np.abs(start), np.abs(end))), n)
    return job_tolerance(of_jobs(job, np.maximum(end - start, 0.0), n), ulp)


def overspent_together(context: CheckContext, segments: Ints, seconds: Floats, each: Floats) -> tuple[Ints, Ints]:
    """Return the times that are too long by themselves, and the jobs with too many of them.

    Parameters
    ----------
    context
        The schedule.
    segments
        For every time, the segments whose jobs it counts for, i64[W, R].
    seconds
        The times, f64[R].
    each
        Tolerance of every time, f64[R].
    """
    n, ways = context.instance.n, len(segments)  # n: no job of the instance
    job = np.where(context.document.job < 0, n, context.document.job)[segments].ravel()
    allowed = np.append(tolerance_of_jobs(context), np.inf)
    alone, over = overspent(job, np.tile(seconds, ways), np.tile(each, ways), allowed)
    return alone[alone < seconds.size], over


def _gang(context: CheckContext, found: Violations) -> None:
    width, gang = np.diff(context.document.offset), context.gang
    tell, wrong = context.of_segment, context.known & (width != gang)
    found.blame(tell, "gang", wrong, lambda s: f"has {width[s]} GPUs", lambda s: f"{gang[s]}, the job's gang")


def one_place(context: CheckContext, found: Violations) -> None:
    """Apply the rule gang to jobs that do not run in copies: a job is never in two places at once.

    Parameters
    ----------
    context
        The schedule.
    found
        Violations so far.
    """
    document, rule = context.document, "gang"
    rows = np.flatnonzero(context.sound)
    rows = rows[np.bincount(document.job[rows], minlength=1)[document.job[rows]] > 1]
    later, earlier, both, each = overlaps_of(document.job[rows], document.start[rows], document.end[rows])
    if not later.size:
        return
    alone, over = overspent(document.job[rows[later]], both, each, tolerance_of_jobs(context))

    def overlaps(i: int) -> str:
        return f"overlaps {context.name(int(rows[earlier[i]]))}"

    found.blame(context.of_segment, rule, alone, overlaps, "one place at a time", rows[later])
    found.add(rule, over, lambda j: in_sum(context, rule, j, "overlaps itself again and again"))


def _existing_gpus(context: CheckContext, found: Violations) -> None:
    tell, legal = context.of_segment, f"GPUs of {context.instance.cluster.spec}"
    found.blame(tell, "capacity", ~context.exists, lambda k: f"names {context.place(k)}", legal, context.segment)
    twice = context.exists & ~context.first
    found.blame(tell, "capacity", twice, lambda k: f"names {context.place(k)} twice", "once", context.segment)


def judge_exclusive(context: CheckContext, found: Violations) -> None:
    """Apply the rule capacity to GPUs that are not shared: a GPU serves one segment at a time.

    Parameters
    ----------
    context
        The schedule.
    found
        Violations so far.
    """
    document, rule = context.document, "capacity"
    pairs = np.flatnonzero(context.first & context.finite[context.segment])
    rows = context.segment[pairs]
    later, earlier, both, each = overlaps_of(context.gpu[pairs], document.start[rows], document.end[rows])
    if not later.size:
        return
    # Two gangs meet on many GPUs; that is one violation, reported for the first of them.
    meeting = np.unique(rows[later] * document.job.size + rows[earlier], return_index=True)[1]
    later, earlier, both, each = later[meeting], earlier[meeting], both[meeting], each[meeting]
    alone, over = overspent_together(context, np.array([rows[later], rows[earlier]]), both, each)

    def uses(i: int) -> str:
        return f"uses {context.place(pairs[later[i]])}, and so does {context.name(int(rows[earlier[i]]))}"

    found.blame(context.of_segment, rule, alone, uses, "one segment at a time", rows[later])
    found.add(rule, over, lambda j: in_sum(context, rule, j, "uses GPUs beside other jobs again and again"))


def _type_and_memory(context: CheckContext, found: Violations) -> None:
    instance, cluster = context.instance, context.instance.cluster
    pairs = np.flatnonzero(context.exists & context.known[context.segment])
    job, node = context.document.job[context.segment[pairs]], context.node[pairs]
    _type(context, pairs, found)

    def short_of_memory(k: int) -> Violation:
        need = instance.gpu_memory[context.document.job[context.segment[k]]]
        offer = cluster.node_memory[context.node[k]]
        message = f"needs {number(need)} bytes on {context.place(k)}"
        return context.of_segment("memory", int(context.segment[k]), message, f"at most its {number(offer)} bytes")

    short = pairs[instance.gpu_memory[job] > cluster.node_memory[node]]
    found.add("memory", _first_of_segment(context, short), short_of_memory)


def _type(context: CheckContext, pairs: Ints, found: Violations) -> None:
    instance, cluster = context.instance, context.instance.cluster
    limited = {name: model for model in instance.models if model.limits_types for name in model.names}
    if instance.table["gpu_types"].null_count() == instance.n and not limited:
        return
    # Which types suit every different pair of a list of types and a profile with its gang (None: any speed).
    limits = list(zip(*_limits(instance, limited), strict=True))
    position = {limit: k for k, limit in enumerate(dict.fromkeys(limits))}
    kinds = [group.gpu for group in cluster.nodes]
    suits = np.array([[_suits(limited, kind, *limit) for kind in kinds] for limit in position], dtype=np.bool_)
    limit_of_job = np.array([position[limit] for limit in limits], dtype=np.int64)
    job, group = context.document.job[context.segment[pairs]], cluster.node_group[context.node[pairs]]
    wrong = pairs[~suits[limit_of_job[job], group]]

    def wrong_type(k: int) -> Violation:
        j = int(context.document.job[context.segment[k]])
        here = dict.fromkeys(kind for kind in kinds if _suits(limited, kind, *limits[j]))
        legal = ", ".join(here or instance.table["gpu_types"][j] or ["none of this cluster"])
        kind = kinds[cluster.node_group[context.node[k]]]
        return context.of_segment("type", int(context.segment[k]), f"uses {context.place(k)}, a {kind}", legal)

    found.add("type", _first_of_segment(context, wrong), wrong_type)


Limited = Mapping[str, SpeedModel]  # what gives speeds to the profiles that do not run on GPUs of every type


def _limits(instance: Instance, limited: Limited) -> tuple[list[frozenset[str] | None], list[tuple[str, int] | None]]:
    """Return the types that every job names, and its profile with its gang if that limits them."""
    named = instance.table["gpu_types"].to_list()
    rows = zip(instance.profiled.tolist(), instance.table["profile"].to_list(), instance.gpus.tolist(), strict=True)
    allowed = [names if names is None else frozenset(map(str.casefold, names)) for names in named]
    return allowed, [(name, gang) if profiled and name in limited else None for profiled, name, gang in rows]


def _suits(limited: Limited, kind: str, allowed: frozenset[str] | None, row: tuple[str, int] | None) -> bool:
    """Return whether a job may run on GPUs of a type: not if its table says zero, together or spread, or nothing."""
    if allowed is not None and kind.casefold() not in allowed:
        return False
    return row is None or limited[row[0]].runs_on(row[0], kind, row[1])


def _first_of_segment(context: CheckContext, pairs: Ints) -> Ints:
    return pairs[np.unique(context.segment[pairs], return_index=True)[1]]


def _preemption(context: CheckContext, found: Violations) -> None:
    document, rule = context.document, "preemption"
    # an empty segment is no run
    rows = np.flatnonzero(context.sound & ((document.end > document.start) | (document.work > 0)))
    rows = rows[np.bincount(document.job[rows], minlength=1)[document.job[rows]] > 1]
    if not rows.size:  # every job has one segment at most
        return
    rows = rows[np.lexsort((document.end[rows], document.start[rows], document.job[rows]))]
    before, after = rows[:-1], rows[1:]
    same = document.job[before] == document.job[after]
    before, after = before[same], after[same]
    stop, resume = document.end[before], document.start[after]
    length = np.minimum(stop - document.start[before], document.end[after] - resume)
    gaps, over = overspent(
        document.job[after], np.abs(resume - stop), slack(length, stop, resume), tolerance_of_jobs(context)
    )
    gap = np.zeros(after.size, dtype=np.bool_)
    gap[gaps] = True

    def resumes(i: int) -> str:
        return f"resumes what {context.name(int(before[i]))} began" + ("" if gap[i] else " on other GPUs")

    cut, legal = gap | _moved(context, before, after), "one run without gaps on the same GPUs"
    found.blame(context.of_segment, rule, cut, resumes, legal, after)
    found.add(rule, over, lambda j: in_sum(context, rule, j, "stops again and again"))


def _moved(context: CheckContext, before: Ints, after: Ints) -> Bools:
    """Return which pairs of segments hold different sets of GPUs."""
    order = np.lexsort((context.gpu, context.segment))  # the pairs stay with their segment, its GPUs ascending
    gpu, offset = context.gpu[order], context.document.offset
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


def by_key_and_start(key: Ints, start: Floats) -> Ints:
    """Return the order of rows by key, then by start, i64[R].

    Parameters
    ----------
    key
        Key >= 0 of every row, i64[R].
    start
        Start of every row in seconds, f64[R].

    Notes
    -----
    O(R log R), and O(R) if the rows are in the order of their starts and all keys are below 2**16: numpy then counts keys.
    """
    order = np.argsort(start, kind="stable")
    small = np.uint16 if int(key.max(initial=0)) < 1 << 16 else np.int64
    return np.asarray(order[np.argsort(key[order].astype(small), kind="stable")])


def overlaps_of(key: Ints, start: Floats, end: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the rows that start while another row of the same key is still running.

    Rows of no length occupy nothing. Every row is compared with the one that ends last among those that started before
    it, so that a long row that covers many later ones clashes with each of them. The seconds of a key add up to the
    difference of the total length of its rows from the time that they cover.

    Parameters
    ----------
    key
        Key of every row, i64[R].
    start
        Start of every row in seconds, f64[R].
    end
        End of every row in seconds, f64[R].

    Returns
    -------
    tuple
        The rows; the other row of each; seconds of the overlap; tolerance in seconds.
    """
    rows = np.flatnonzero(end > start)
    rows = rows[by_key_and_start(key[rows], start[rows])]
    key, start, end = key[rows], start[rows], end[rows]
    if not ((key[1:] == key[:-1]) & (start[1:] < end[:-1])).any():  # each row ends before the next of its key starts
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0), np.zeros(0)
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
