"""Jobs that meet on network interfaces, from the segments of a schedule, for the rule rate if jobs contend.

A segment over several nodes whose job communicates is on the interfaces of its nodes from its start to its end, whether or
not it works. How much longer a unit of work takes it is worked out here anew, interface by interface, from the starts and
ends of all of them and the readable formula of `optsched.speeds.interface_sharing`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from optsched.check.context import CheckContext
from optsched.problem.arrays import Floats, Ints
from optsched.speeds.duration import communicating
from optsched.speeds.interface_sharing import CommunicationShares, others_met

Slow = list[tuple[float, float]]  # (from this moment on, so many times as long), by time


def slow_on_interfaces(
    context: CheckContext, pace: Floats, steps: Ints | None = None, resized: Mapping[int, float] | None = None
) -> dict[int, Slow]:
    """Return the slow-downs of the segments that ever meet others on an interface, by time.

    Complexity O(segments on an interface) for every start and end.

    Parameters
    ----------
    context
        The schedule.
    pace
        Seconds of a unit of work of every segment alone, f64[S].
    steps
        Sub-steps of every segment, i64[S]; None: those of the largest sub-batch of the job.
    resized
        Shares of communication of the segments whose gang is not that of their job; None if all gangs are.
    """
    if not communicating(context.instance, elastic=resized is not None).any():
        return {}
    shares, of = CommunicationShares(context.instance), _shares(context, pace, steps, resized or {})
    changes: dict[int, list[tuple[float, int, float]]] = defaultdict(list)
    for node, segments in _by_node(context, of):
        for moment, present in _presence(context, segments):
            for s, met in zip(present, others_met([of[s] for s in present], shares.step), strict=True):
                changes[s].append((moment, node, met))
    return {
        s: list(_worst(sorted(each), of[s] * shares.step)) for s, each in changes.items() if any(x[2] for x in each)
    }


def worth_beside(since: float, end: float, slow: Slow) -> float:
    """Return the seconds alone that a stay is worth: the integral of 1 / slow over it.

    Parameters
    ----------
    since
        Start of the stay, or later, in seconds.
    end
        End of the stay in seconds.
    slow
        Slow-downs by time.
    """
    times = [max(since, moment) for moment, _ in slow] + [max(since, end)]
    return math.fsum((times[k + 1] - times[k]) / each for k, (_, each) in enumerate(slow))


def _shares(context: CheckContext, pace: Floats, steps: Ints | None, resized: Mapping[int, float]) -> dict[int, float]:
    """Return p of the segments that communicate: those of a gang at work, wherever it is legal."""
    document, shares = context.document, CommunicationShares(context.instance)
    known: dict[tuple[int, tuple[int, ...], int], float] = {}
    found: dict[int, float] = {}
    for s in np.flatnonzero(context.sound & context.placed & (document.end > document.start)).tolist():
        if s in resized:
            found[s] = resized[s]
            continue
        nodes = tuple(context.node[document.offset[s] : document.offset[s + 1]].tolist())
        j = int(document.job[s])
        largest = context.instance.sub_batches(j)[:1]
        key = j, nodes, int(steps[s]) if steps is not None else largest[0].steps if largest else 1
        if key not in known:
            known[key] = shares.share(key[0], nodes, float(pace[s]), key[2])
        found[s] = known[key]
    return {s: share for s, share in found.items() if share > 0}


def _by_node(context: CheckContext, segments: dict[int, float]) -> Iterator[tuple[int, list[int]]]:
    offset, on = context.document.offset, defaultdict[int, list[int]](list)
    for s in segments:
        for node in set(context.node[offset[s] : offset[s + 1]].tolist()):
            on[node].append(s)
    yield from on.items()


def _presence(context: CheckContext, segments: list[int]) -> Iterator[tuple[float, list[int]]]:
    """Yield (moment, segments from then on) at every start and end; ends and starts of one moment together."""
    document = context.document
    begins, ends = defaultdict[float, list[int]](list), defaultdict[float, list[int]](list)
    for s in segments:
        begins[float(document.start[s])].append(s)
        ends[float(document.end[s])].append(s)
    present: list[int] = []
    for moment in sorted({*begins, *ends}):
        gone = set(ends.get(moment, ()))
        present = [s for s in present if s not in gone] + begins.get(moment, [])
        yield moment, present


def _worst(changes: list[tuple[float, int, float]], step: float) -> Iterator[tuple[float, float]]:
    # Its slowest interface rules. Of changes at one moment the last one counts: the others are over at once.
    met: dict[int, float] = {}
    for moment, node, others in changes:
        met[node] = others
        yield moment, 1.0 + step * max(met.values())
