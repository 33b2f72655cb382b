"""``predicted-jobs``: whole jobs whose lengths are predicted wrongly, in the worst of many ways."""

from __future__ import annotations

import re
from dataclasses import dataclass

from optsched.adversary.candidate import Candidate, Quantity
from optsched.adversary.space import SPACES
from optsched.adversary.spaces.whole_jobs import WholeJobs
from optsched.policies import AnyPolicy
from optsched.policies.specification import Specification, specify

SEEDS = 999
_NOISY = re.compile(r"predictor=(noisy(?:/error=[^/,+]+)?)[^,+]*")


@SPACES.register("predicted-jobs")
@dataclass(frozen=True)
class PredictedJobs(WholeJobs):
    """Whole jobs under a policy with the predictor ``noisy``: who is over- and who underestimated, its seed, is searched.

    The policy is text that says the error, ``a-srpt:predictor=noisy/error=2``.
    """

    @property
    def shared(self) -> tuple[Quantity, ...]:
        """The seed."""
        return (Quantity("seed", 0, SEEDS),)

    @classmethod
    def serves(cls, policy: AnyPolicy) -> bool:
        """Policies that say ``predictor=noisy/...``."""
        return super().serves(policy) and str(getattr(policy, "predictor", "")).startswith("noisy")

    def specification(self, policy: Specification, candidate: Candidate) -> Specification:
        """With the seed of the candidate; a policy without ``noisy`` in its text stays as it is."""
        text = _NOISY.sub(rf"predictor=\1/seed={candidate.shared[0]}", policy.text)
        return policy if text == policy.text else specify(text)
