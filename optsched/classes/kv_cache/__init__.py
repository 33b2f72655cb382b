"""Class ``kv-cache``: requests of a language model that fill the KV cache of one worker, a cell a token.

The specification is in `optsched.classes.kv_cache.problem.requests`.
"""

from optsched.classes.schedule_class import add_class
from optsched.problem.instance import Instance

MODEL = "requests"  # name of the model of speeds


def is_served(instance: Instance) -> bool:
    """Return True if the jobs of an instance are requests.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    return instance.n > 0 and instance.jobs_at(MODEL).size == instance.n


add_class(
    name="kv-cache",
    optimum="the best schedule of the requests",
    place=6,
    verified=False,  # its bounds are of its own, with proofs of their own in the verifier
    has=is_served,
    suits=is_served,
    lacking="prompts",
    only=True,
    usual=True,
    alone=False,
    whole=False,
    preemptive=False,
    stated="requests",
    means="requests",
    method="ranks",
    policies=lambda _: ("mc-fcfs", "mc-sf", "least-volume"),
)
