"""Bounds of how far the score of a privately chosen candidate lies below the best score."""

from __future__ import annotations

import bisect
import math
import sys
from typing import Literal, TypeAlias, get_args

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.selection.exponential import check_rounds, rate_of_rounds, selection_rate
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

NoisyChoice: TypeAlias = Literal["laplace", "exponential"]


def exponential_accuracy(
    *,
    candidates: int,
    epsilon: float,
    beta: float,
    count: int = 1,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    delta: float = 0.0,
) -> float:
    """Bound how far the scores of the exponential mechanism's choices lie below the best score.

    With probability at least ``1 - beta``, the score chosen in each round lies below the best remaining score by less
    than the result. This holds for all scores.

    Parameters
    ----------
    candidates : int
        Number ``n`` of candidates; at least 1.
    epsilon, count, sensitivity, monotonic, delta
        As for `exponential_top`.
    beta : float
        Failure probability of all rounds together, in (0, 1).

    Returns
    -------
    float
        Bound of the distance in the scores' unit; it includes the rounding to the grid, less than one step.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Let ``D`` be the sensitivity and ``e`` epsilon. For one round the result is ``a = (2D/e) ln((n-1) (1-beta) /
    beta)``, with ``D/e`` in place of ``2D/e`` if scores are monotonic. No smaller bound holds: one best candidate and
    ``n - 1`` candidates at the distance ``a`` below it attain it. Each of ``c`` rounds gets ``beta/c``, and ``e/c`` or,
    if delta is above 0, `bounded_range_epsilon_each`. Section 5 of [1]_ has this bound for ``c = 1``. It is less than a
    quarter of the sparse vector technique's, ``8 (ln n + ln(2/beta)) D / e``. The bound of the book [2]_,
    ``(2D/e) (ln n + ln(1/beta))``, is a little larger.

    References
    ----------
    .. [1] Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy", section 5.
    .. [2] Dwork and Roth (2014), Theorem 3.11, Corollary 3.12.

    Examples
    --------
    >>> round(exponential_accuracy(candidates=1000, epsilon=1.0, beta=0.05), 2)
    19.7
    """
    _check(candidates=candidates, epsilon=epsilon, beta=beta)
    check_rounds(count, candidates)
    grid = Grid.of(sensitivity)
    rate = float(
        rate_of_rounds(count, epsilon=epsilon, delta=delta, sensitivity=grid.sensitivity, monotonic=monotonic)
    )
    if candidates == 1:
        return 0.0
    each = beta / count
    steps = max(0.0, math.log(candidates - 1) + math.log1p(-each) - math.log(each)) / rate
    return (steps + 1) * grid.step


def noisy_max_accuracy(
    *,
    candidates: int,
    epsilon: float,
    beta: float,
    k: int = 1,
    noise: NoisyChoice = "laplace",
    sensitivity: float = 1.0,
    monotonic: bool = False,
) -> float:
    """Bound how far the scores of candidates chosen by a noisy ranking lie below the best scores.

    With probability at least ``1 - beta``, the score of every chosen candidate lies below the k-th best score by less
    than the result. This holds for all scores.

    Parameters
    ----------
    candidates, beta
        As for `exponential_accuracy`.
    epsilon, sensitivity, monotonic
        As for `exponential_mechanism`.
    k : int
        Number of candidates chosen at once, as in `noisy_top_k_gaps`; from 1 to n. With exponential noise it must be 1.
    noise : {"laplace", "exponential"}
        Law of the noise: "laplace" for `report_noisy_max` and `noisy_top_k_gaps`, "exponential" also for
        `permute_and_flip`. For Gumbel noise see `exponential_accuracy`.

    Returns
    -------
    float
        Bound of the distance in the scores' unit; it includes the rounding to the grid, less than one step.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    A candidate at this distance is chosen only if its noisy score overtakes that of one of the k best. So the bound is
    a union bound over ``k (n-k)`` pairs, with the exact tail of the difference of two noises. With sensitivity ``D``
    and epsilon ``e`` the scale of the noise is ``2kD/e``, or ``kD/e`` if scores are monotonic. At a distance of ``t``
    scales this tail is ``exp(-t)/2`` for exponential noise and ``exp(-t) (1/2 + t/4)`` for Laplace noise; ties count as
    overtaking. For permute-and-flip the bound is ``(2D/e) ln((n-1) / (2 beta))``, which is below `exponential_accuracy`
    by ``(2D/e) ln 2`` for small beta.

    References
    ----------
    .. [1] Dwork and Roth (2014), Claim 3.9, for the mechanism.
    .. [2] McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection".
    .. [3] Ding et al. (2021), "The permute-and-flip mechanism is identical to report-noisy-max with exponential noise".

    Examples
    --------
    >>> round(noisy_max_accuracy(candidates=1000, epsilon=1.0, beta=0.05, noise="exponential"), 2)
    18.42
    """
    _check(candidates=candidates, epsilon=epsilon, beta=beta)
    if not 1 <= k <= candidates:
        raise InputError(f"k lies between 1 and the number of candidates, {candidates}; got {k}")
    if noise not in get_args(NoisyChoice):
        raise InputError(f"noise is 'laplace' or 'exponential'; got {noise!r}")
    if noise == "exponential" and k > 1:
        raise InputError(
            f"k must be 1 with noise='exponential'; got k {k}; for several candidates use noise='laplace'"
        )
    grid = Grid.of(sensitivity)
    if candidates == k:
        return 0.0
    rate = selection_rate(epsilon=epsilon, sensitivity=grid.sensitivity, monotonic=monotonic)
    law = DiscreteLaplace(k / rate)
    wanted = math.log(beta) - math.log(k * (candidates - k))
    # The difference of two discrete exponential variables is a discrete Laplace variable.
    steps = max(0, law.tail_quantile(wanted)) if noise == "exponential" else _overtaking(law, wanted)
    return (steps + 1) * grid.step


def _overtaking(law: DiscreteLaplace, log_probability: float) -> int:
    """Find the smallest ``m`` with ``P(X - Y >= m)`` at most a probability, for two draws of a discrete Laplace law."""
    return bisect.bisect_left(
        range(sys.maxsize), -log_probability, key=lambda m: -_log_difference_tail(law, m)
    )


def _log_difference_tail(law: DiscreteLaplace, m: int) -> float:
    """Return the log of ``P(X - Y >= m)``, ``m >= 0``, for two draws of a discrete Laplace law.

    ``P(X - Y = s) = ((1-q)/(1+q))**2 q**s (s + (1+q**2)/(1-q**2))``, summed from m.
    """
    rate = float(1 / law.scale)
    q, rest = math.exp(-rate), -math.expm1(-rate)
    constant = (1 + q * q) / (rest * (1 + q))
    return -m * rate + 2 * math.log(rest / (1 + q)) + math.log((m + constant) / rest + q / rest**2)


def _check(*, candidates: int, epsilon: float, beta: float) -> None:
    if candidates < 1:
        raise InputError(f"there is at least one candidate; got {candidates}")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if not 0 < beta < 1:
        raise InputError(f"beta lies in (0, 1); got {beta}")
