"""The compiled exact sum is `math.fsum`."""

import math

import numpy as np
from examples import examples
from hypothesis import example, given, settings, strategies as st

from optsched.compiled.exact_sum import exact_sum

FINITE = st.floats(-1e300, 1e300, allow_nan=False)


@settings(max_examples=examples(500), deadline=None)
@given(values=st.lists(FINITE | st.sampled_from([1e16, 1.0, -1e16, 2.0**-53, 1e-320]), max_size=40))
@example(values=[])
@example(values=[1e16, 1.0, 2.0**-53])
@example(values=[1.0, 2.0**-53, 2.0**-106])
@example(values=[-1.0, -(2.0**-53), -(2.0**-106)])
def test_the_sum_is_rounded_once(values: list[float]) -> None:
    assert exact_sum(np.array(values)) == math.fsum(values)
