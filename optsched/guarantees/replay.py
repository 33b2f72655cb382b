"""An instance on which a guarantee was violated, kept so that the run can be repeated."""

from __future__ import annotations

import os
import re
from pathlib import Path

from optsched.guarantees.judge import Judgement
from optsched.problem.instance import Instance


def save_violation(instance: Instance, judgement: Judgement, folder: str | os.PathLike[str] = ".") -> Path:
    """Write ``violated-<theorem>-<policy>-<digest>.json`` into ``folder`` and return its path.

    ``optsched run FILE -p POLICY`` repeats the run. The same violation gives the same file.
    """
    policy = re.sub(r"[^A-Za-z0-9._=-]+", "-", judgement.policy).strip("-")
    path = Path(folder) / f"violated-{judgement.id}-{policy}-{instance.digest[:8]}.json"
    instance.save(path)
    return path
