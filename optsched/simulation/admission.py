"""What an admission rule is to the engine: a compiled test, may this all-reduce start now beside those that run?

``admit(job, links, numbers) -> bool`` is asked about ready transfers in their order: about each when it becomes ready, and
again whenever another one has ended on one of its nodes; those admitted before it run already. (At any other moment AdaDUAL
and SRSF(k) would say no again. The k-way rule could change its mind when another transfer *starts*; it is not asked then.)
It may look at everything in `optsched.simulation.links.Links` and change only its scratch, ``senders``. A transfer that
waits while nothing runs on its nodes is only asked about again when one has ended there. ``numbers`` are those of the
policy's order, then nan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from optsched.compiled import njit, types
from optsched.simulation.links import new_links

_EMPTY = np.zeros(0, dtype=np.int64)
_NOTHING = new_links(np.zeros(0), np.zeros(1, np.int64), _EMPTY, _EMPTY, 0, np.zeros(3), _EMPTY, np.zeros((0, 0)))
LINKS = numba.typeof(_NOTHING)
SIGNATURE = types.boolean(types.int64, LINKS, types.float64[::1])


def admission(function: Callable[..., bool]) -> Callable[..., bool]:
    """``function`` compiled with the signature of an admission rule (and kept on disk)."""
    result: Callable[..., bool] = njit(SIGNATURE)(function)
    return result


@admission
def always(job: Any, links: Any, numbers: Any) -> bool:
    """Nothing ever waits."""
    return True
