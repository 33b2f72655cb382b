"""The rule batch: a job runs in the sub-steps of one of the ways to split its batch."""

from __future__ import annotations

import numpy as np

from optsched.check.context import CheckContext, Violation, Violations
from optsched.speeds.duration import SubSteps, segment_sub_steps


def judge_whole_batches(context: CheckContext, found: Violations) -> None:
    """Apply the rule where GPUs are not shared: jobs run with their largest sub-batch, and a file need not say so.

    Parameters
    ----------
    context
        The schedule.
    found
        Violations so far.
    """
    if context.document.steps is not None:
        sub_steps = sub_steps_of(context)
        sub_steps.legal[:] = context.document.steps == sub_steps.first
        judge_batches(context, sub_steps, found, 'those of the largest sub-batch without "sharing": true')


def sub_steps_of(context: CheckContext) -> SubSteps:
    """Return the sub-steps of every segment, 1 where a segment states none.

    Parameters
    ----------
    context
        The schedule.
    """
    document = context.document
    steps = np.ones(document.job.size, dtype=np.int64) if document.steps is None else document.steps
    return segment_sub_steps(context.instance, document.job, steps, document.offset, document.node)


def judge_batches(context: CheckContext, sub_steps: SubSteps, found: Violations, legal: str) -> None:
    """Apply the rule to all segments.

    Parameters
    ----------
    context
        The schedule.
    sub_steps
        Those of every segment, and which of them are legal.
    found
        Violations so far.
    legal
        Describes the legal sub-steps.
    """
    steps = context.document.steps

    def wrong(s: int) -> Violation:
        j = int(context.document.job[s])
        options = sorted({each.steps for each in context.instance.sub_batches(j)}) or [1]
        shown = ", ".join(map(str, options[:8])) + (", ..." if len(options) > 8 else "")
        return context.of_segment(
            "batch", s, f"runs in {1 if steps is None else steps[s]} sub-steps", f"{shown}: {legal}"
        )

    found.add("batch", np.flatnonzero(context.known & ~sub_steps.legal), wrong)
