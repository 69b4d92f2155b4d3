"""The binomial law of a fair coin, beside fifty digits."""

import mpmath
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.noise.half_binomial import log_half_binomial


@for_each("count", [1, 2, 7, 16, 17, 31, 32, 33, 60, 1_000, 10**6, 10**9])
def test_the_log_of_the_chance_that_heads_are_so_many_ahead(count):
    """Up to 16 and beyond, where another formula takes over."""
    least = count % 2
    ahead = sorted(
        {count, *(least + 2 * int(share * (count - least) / 2) for share in (0, 1e-3, 0.1, 0.49, 0.6, 0.99))}
    )
    found = log_half_binomial(count, np.array(ahead, dtype=np.float64))
    with mpmath.workdps(50):
        for lead, log in zip(ahead, found.tolist(), strict=True):
            tails = (count - lead) // 2
            exact = (
                mpmath.loggamma(count + 1) - mpmath.loggamma(tails + 1) - mpmath.loggamma(count - tails + 1)
            )
            exact -= count * mpmath.log(2)
            assert log == pytest.approx(float(exact), rel=1e-14, abs=2e-13)
