"""`azure_batch`: consecutive batches of Azure's conversations of 2023, if their file is at hand.

The file is ``azure-llm/AzureLLMInferenceTrace_conv.csv`` in the folder that OPTSCHED_DATA names (dialect ``azure-llm``).
Seed k takes the k-th ``jobs`` of its requests in order, without those whose peak is above 8,000 cells. The last batch may be
smaller.
"""

from __future__ import annotations

import os
from pathlib import Path

from optsched.errors import InputError
from optsched.io.sources import load
from optsched.problem.instance import Instance

FILE = Path("azure-llm", "AzureLLMInferenceTrace_conv.csv")


def azure_batch(
    seed: int, *, jobs: int = 1000, cells: int = 16_492, online: bool = False, round: float = 0.2
) -> Instance:
    """Return the batch of a seed.

    Parameters
    ----------
    seed
        Number of the batch, from 1.
    jobs
        Number of requests.
    cells
        M, the cells of the cache.
    online
        True: requests arrive as in the trace; False: all at 0.
    round
        Length of a round in seconds, which turns times into boundaries between rounds.

    Raises
    ------
    InputError
        If the file is missing, or has no such batch.
    """
    place = os.environ.get("OPTSCHED_DATA", "")
    path = Path(place) / FILE
    if not place or not path.is_file():
        raise InputError("no file", file=FILE, legal="OPTSCHED_DATA names the folder of public traces")
    stated = f"first={(seed - 1) * jobs},cells={cells},round={round},at-once={str(not online).lower()}"
    return load(f"azure-llm:{path}#{stated}", limit=jobs).replace(name=f"azure-conversations-{seed}")
