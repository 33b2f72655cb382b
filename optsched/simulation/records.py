"""The records that a run is made of: one array for each kind, with named fields.

Compiled and interpreted code use the same arrays.
A compiled function that receives fifty arrays passes some three hundred words. With a few arrays of records it passes
thirty, compiles in a tenth of the time, and finds the data of a job on two lines of the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from optsched.compiled import record
from optsched.problem.arrays import Floats, Ints

FUTURE, WAITING, RUNNING, DONE = 0, 1, 2, 3  # Job.status
FINISHED_RUN, LOG_FULL, PAUSED, THRASHES, ASKED = range(5)  # why a loop stops, or that something is to be decided
NOBODY = -1  # Segment.job of a segment that was taken back
FREE, TRIAL, SIZE = range(3)  # rows of State.pools
POOL, COUNT, NUMBER = range(3)  # rows of State.out

JOB = record(
    arrival="real",
    left="real",  # units of work left when its segment began, or now if it does not run
    least="real",  # units of work that count as none: a remainder of the rounding of its copies' parts
    attained="real",  # GPU-seconds held, or seconds where service is time alone, up to `mark`
    mark="real",  # of one that waits: when it last stopped
    key="real",  # smaller (level, key, index) is served first
    origin="real",  # the key when the segment began
    slope="real",  # growth of the key with a unit of work
    restart="real",  # seconds that resuming it costs, where it says so itself, else -1
    gpus="int",  # of its gang; of one that may be resized, those that it has or had last
    kind="int",  # what a placement may see of a job: its gang size and its eligible nodes
    execution="int",  # -1: it does not run
    stop_record="int",  # which of `State.executions` remembers its stop at this instant, -1: none
    nth="int",  # not of this job: the job that arrives as the nth
    place="int",  # its place in its queue, or among those that run and may be evicted; -1: nowhere
    rises="int",  # its place in the heap of those that wait and will be promoted
    status="int",
    level="int",
    ran="int",  # segments begun so far
    copies="int",  # executions at once
    alone="int",  # GPUs that no other job is on, if GPUs have names
)

# What runs: a gang at work. All its times are in seconds, its work in units of the job.
EXECUTION = record(
    job="int",
    entries="int",  # of `State.parts`, from execution x width on
    other="int",  # the next copy of its job, -1: none
    option="int",  # its sub-batch
    vacant="int",  # not of this execution: the nth that is not in use
    begun="real",
    paid="real",  # when its overhead is over; afterwards when it was last settled
    target="real",  # units of work when its segment began: the job's own, or the part that a copy is to do
    left="real",  # units of work at `paid`
    pace="real",  # seconds a unit takes there alone
    slow="real",  # slow-down by its present partners, >= 1
    finish="real",
    # of one that was stopped at this instant, which goes on with it if it starts again on the same GPUs
    segment="int",
    left_then="real",  # units of work when its segment began
    origin="real",
)

# Some GPUs of a pool, or one GPU by its number where jobs share GPUs.
PART = record(pool="int", count="int")

SEGMENT = record(
    job="int",
    start="real",
    end="real",
    work="real",
    first="int",  # of its `State.parts`
    entries="int",
    option="int",
)

QUEUE = record(first="int", jobs="int", blocked="int")

# The clock, the rules of the run, and counts.
ENGINE = record(
    now="real",
    tick="real",  # when the policy wants to be asked
    began="real",  # the first event of the present instant
    last="real",  # the end of the instant whose events are being applied, else -inf
    restart="real",
    first_start="real",  # overhead of a job's first start
    period="real",  # of rounds; 0: none
    first_round="real",  # when rounds begin, the first arrival
    starvation="real",
    copies="int",  # 1: a job may run in several copies at once; a job that stops and starts begins a new segment
    skip="int",
    preemptive="int",
    by_time="int",
    requeue="int",
    fading="int",  # keys fall with work
    growing="int",  # keys grow with work
    levels="int",  # below which service has a threshold
    listed="int",  # waiting jobs are one sorted list, and the rule is asked about all of them
    width="int",  # W: parts that a gang may have
    promotion_queue="int",  # where in `State.heap` those begin that will be promoted
    runner="int",  # and those that run and may be evicted
    next="int",  # arrivals so far
    rising="int",  # jobs that will be promoted
    active="int",  # executions
    ranked="int",  # jobs that may be evicted: those that are tried are taken off the heap for a moment
    gpus="int",  # of the cluster
    free="int",  # idle GPUs
    alone="int",  # GPUs with one job on them, where GPUs have names
    finished="int",
    segments="int",
    logged="int",
    events="int",
    starts="int",
    stops="int",
    queued="int",
    stop_record="int",  # stops at this instant
    livelock="int",  # segments in a row that did no work to speak of
    livelock_limit="int",  # from this number on, jobs are taken to stop each other for ever
)

# Where two jobs may be on a GPU.
GPU = record(
    one="int",  # jobs there, -1: none
    other="int",
    jobs="int",
    node="int",
    free_memory="real",  # bytes
    capacity="real",
)

NODE = record(
    first="int",  # its first GPU
    jobs="int",  # different jobs on it
    open="int",  # GPUs with one job
    changed="int",  # 1: a job has come or gone, or its end has changed; rules set it to 0 when they have seen that
    roomy="int",  # scratch of rules: the node in this place of the list of nodes with idle GPUs or GPUs with one job
)

# What a job is to others on its GPUs.
SHARER = record(
    model="int",  # row and column of the table of slow-downs
    options="int",
    spans="int",  # 1: the gang is wider than every node that suits it
    alone="real",  # seconds with the first option at best
    rank="int",  # place in the order of arrivals
    alike="int",  # first job that is the same to every rule but for its arrival
    mark="int",  # scratch of rules, -1
    refused="int",  # scratch of rules, as all that follows
    waits="int",
    asked="int",
    priced="int",
    value="real",
    loss="real",
    closing="real",
    own="real",
)

# Scratch of rules.
CANDIDATE = record(job="int", value="real", other="real", open="int")
PARTNER = record(job="int", execution="int", left="real")
WAIT = record(version="int", end="real")
KEPT = record(
    version="int",
    generation="int",
    now="real",
    listed="int",
    timed="int",
    partners="int",
    firm="int",
    asks="int",
    roomy="int",
    roomy_at="int",
)


class State(NamedTuple):
    """The mutable state of a run: n jobs, P pools of GPUs, R executions at once at most, W parts of a gang at most."""

    engine: Any  # ENGINE[1]
    jobs: Any  # JOB[n]
    executions: Any  # EXECUTION[2 R]: those that run, and behind them those that stopped at this instant
    parts: Any  # PART[]: R W of those that run, then those of the log, grown between calls
    segments: Any  # SEGMENT[]: the log, grown between calls
    queues: Any  # QUEUE[Q]
    heap: Any  # ENTRY[]: n that wait, a heap a queue (a sorted list under a rule), those that rise, R that run
    clocks: Any  # ENTRY[2 P], P >= R: when the state of a running job changes next (`optsched.simulation.next_event`)
    pools: Ints  # i64[3, P]
    out: Ints  # i64[3, W]: what a placement, or a rule, chose
    numbers: Floats  # thresholds of an order, numbers of a rule
