"""`replay`: what a predictor would have said, without a scheduler in between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optsched.policies.predictors import predictor as predictor_of
from optsched.policies.predictors.timeline import timeline
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.policy import JobFacts, Predictor


def replay(instance: Instance, predictor: Predictor | str, wait: float | npt.ArrayLike = 0.0) -> Floats:
    """Predicted lengths f64[n]: iterations of jobs with a profile, else seconds.

    Feeds every arrival and every completion in order of time (`timeline`): a job completes ``wait`` plus its seconds alone
    after it arrives, so that predictors can be compared on the same history, whatever a policy would make of them.

    Raises
    ------
    InputError
        An unknown predictor or parameter, or what `timeline` raises.
    """
    asked = predictor_of(predictor)
    asked.begin(JobFacts(instance, revealed=getattr(asked, "oracle", False)))
    work = instance.work.tolist()
    predicted = np.full(instance.n, np.nan)
    for now, job, completed in timeline(instance, wait):
        if completed:
            asked.observe(job, now, work[job])
        else:
            predicted[job] = asked.predict(job, now)
    return predicted
