"""One gang set: jobs of which every two meet on some GPU and no three can run at once, wherever they are put.

Then it does not matter which GPUs a job has: at any time at most two run, and they share. That is so if all jobs need all
G GPUs, and on one node with n_j + n_k > G for every two and n_i + n_j + n_k > 2 G for every three (a GPU holds two).
"""

from __future__ import annotations

from optsched.models.shared_jobs import Gang, SharedJobs


def one_gang_set(jobs: SharedJobs) -> str | None:
    """None where the jobs are one gang set, else one sentence why not."""
    G, sizes = len(jobs.gpu_node), sorted(jobs.gang)
    if all(size == G for size in sizes):
        return None
    if len(jobs.node_memory) > 1:
        return f"on several nodes every job must need all {G} GPUs, one needs {sizes[0]}"
    if sum(sizes[:2]) <= G and len(sizes) > 1:
        return f"gangs of {sizes[0]} and {sizes[1]} GPUs run side by side on {G}"
    if sum(sizes[:3]) <= 2 * G and len(sizes) > 2:
        return f"three gangs of {', '.join(map(str, sizes[:3]))} GPUs run at once on {G} GPUs, two jobs on each"
    return None


def first_gangs(jobs: SharedJobs) -> tuple[Gang, ...]:
    """The GPUs of every job, the first ones: all that matters is how many."""
    return tuple(tuple(range(size)) for size in jobs.gang)
