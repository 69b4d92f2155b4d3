"""How many charges chance alone makes: the price of a threshold too near the sampling error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special
from reusable_holdout.errors import InputError
from reusable_holdout.noise.calibration import Calibration, GuardMechanism

__all__ = ["expected_charges_of_stages", "expected_null_charges"]

_REACH = 40.0  # threshold noise beyond 40 of its scales has probability exp(-40)
_BINS = 4096  # of the time axis in `expected_charges_of_stages`; each charge is late by half of one at most
_HELD_BINS = 512  # the same where there is one time axis for each value of a threshold noise that is held
_NEVER = 1e-9  # a charge less likely to come in time, and all that follow, count for nothing
_PANELS = np.array([4.0, 10.0, 20.0, 40.0])  # scales of the threshold noise, on both sides of 0
_NODES = 20  # Gauss-Legendre nodes per panel; doubling them changes no result by more than 1e-8 of it


def expected_null_charges(
    *, threshold: float, deviation_sd: float, queries: int, noise_scale: float
) -> float:
    """Count the charges to expect over honest queries, whose deviations are chance alone.

    Exact for Thresholdout without a budget, up to quadrature, with continuous noise in place of discrete
    noise (their difference is below one grid step).

    Parameters
    ----------
    threshold : float
        ``T > 0``, in the statistic's unit.
    deviation_sd : float
        Standard deviation of holdout value minus prior, taken as normal with mean 0; > 0.
    queries : int
        Number of queries; at least 0.
    noise_scale : float
        Thresholdout's ``s``: threshold noise ``Lap(2s)``, query noise ``Lap(4s)``; 0 for none.

    Returns
    -------
    float
        Number of charges, between 0 and `queries`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The threshold noise is held between charges, so the queries are not independent: a low threshold is soon
    charged and renewed, a high one stays. The state is the distribution of the threshold noise on quadrature
    nodes; one query maps it linearly, and repeated squaring of that map gives any number of queries. For many
    queries the result approaches ``queries / E[1/p]``, ``p`` being the probability of a charge given the
    threshold noise; a threshold redrawn at every query would be charged ``queries E[p]`` times, which is
    more.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout", Science 349,
       supplement.

    Examples
    --------
    >>> sd = 0.01 * 2**0.5
    >>> round(expected_null_charges(threshold=0.04, deviation_sd=sd, queries=10_000, noise_scale=0))
    47
    """
    if not (threshold > 0 and deviation_sd > 0 and noise_scale >= 0 and queries >= 0):
        raise InputError(
            f"threshold and deviation_sd are above 0, noise_scale and queries at least 0; "
            f"got threshold {threshold}, deviation_sd {deviation_sd}, noise_scale {noise_scale}, "
            f"queries {queries}"
        )
    if noise_scale == 0:
        return queries * math.erfc(threshold / (deviation_sd * math.sqrt(2.0)))
    nodes, weights = _laplace_quadrature(threshold, 2 * noise_scale)
    charged = _charge_probability(threshold + nodes, deviation_sd, 4 * noise_scale)
    # One query on the row vector (distribution of the threshold noise, expected charges so far).
    size = len(nodes)
    step = np.zeros((size + 1, size + 1))
    step[:size, :size] = np.diag(1 - charged) + np.outer(charged, weights)
    step[:size, size] = charged
    step[size, size] = 1.0
    state = np.append(weights, 0.0)
    for bit in range(queries.bit_length()):
        if queries >> bit & 1:
            state = state @ step
        step = step @ step
    return float(state[size])


def expected_charges_of_stages(
    thresholds: Sequence[float],
    *,
    deviation_sd: float,
    queries: int,
    noise_scale: float,
    mechanism: GuardMechanism = "numeric-sparse",
) -> float:
    """Count the charges to expect over honest queries when each charge brings another threshold.

    As `expected_null_charges`, for a mechanism with a budget: it halts after the last threshold's charge.

    Parameters
    ----------
    thresholds : Sequence[float]
        The threshold in force after 0, 1, ... charges; each > 0. Their number is the budget.
    deviation_sd, noise_scale : float
        As for `expected_null_charges`.
    queries : int
        Number of queries; at least 1.
    mechanism : {"numeric-sparse", "standard-svt", "target-charging", "noiseless"}
        Whose noise, at the scale `noise_scale`, as `Calibration` says.

    Returns
    -------
    float
        Between 0 and ``len(thresholds)``.

    Notes
    -----
    The waiting time at a threshold is a mixture of geometric times; the time of the j-th charge is the sum of j
    of them, found by convolution on a grid of at most 4,096 points of time (exact up to 4,096 queries). The expected
    number of charges is the sum over j of the probability that the j-th comes in time. Threshold noise that is held
    makes the waiting times depend on each other: then all this is done for each of its values, on 512 points of time.

    Examples
    --------
    >>> one = expected_charges_of_stages([0.03], deviation_sd=0.01, queries=1_000, noise_scale=0)
    >>> abs(one - (1 - (1 - 0.0027) ** 1_000)) < 1e-4
    True
    """
    calibration = Calibration(mechanism if noise_scale else "noiseless", len(thresholds))
    threshold_scale, query_scale, _ = (scale * noise_scale for scale in calibration.scales)
    held = calibration.mechanism == "standard-svt"
    # Threshold noise: values and weights, one row of arrivals for each value that is held, else one for all.
    values, weights = np.zeros(1), np.ones(1)
    bins = min(queries, _HELD_BINS if held else _BINS)
    times = np.linspace(0.0, queries, bins + 1)
    size = 1 << (len(times) + bins).bit_length()  # so long that no time comes round to the first
    if held:
        values, weights = _laplace_quadrature(thresholds[0], threshold_scale)
    arrival = np.zeros((len(values), len(times)))
    arrival[:, 0] = 1.0
    expected = 0.0
    for threshold in thresholds:
        if calibration.mechanism == "numeric-sparse":
            values, weights = _laplace_quadrature(threshold, threshold_scale)
        charged = _stage_probability(
            threshold + values, deviation_sd, query_scale, inside=calibration.releases_the_comparison
        )
        survival = np.exp(np.outer(np.log1p(-np.minimum(charged, 1 - 1e-12)), times))
        if not held:
            survival = weights @ survival
        waiting = np.atleast_2d(-np.diff(survival, prepend=1.0))
        arrival = np.fft.irfft(np.fft.rfft(arrival, size) * np.fft.rfft(waiting, size), size)
        arrival = arrival[:, : len(times)]
        in_time = arrival.sum(axis=1)
        reached = float(weights @ in_time) if held else float(in_time[0])
        expected += reached
        if reached < _NEVER:
            break
    return min(expected, float(len(thresholds)))


def _stage_probability(
    thresholds: npt.NDArray[np.float64], sd: float, scale: float, *, inside: bool
) -> npt.NDArray[np.float64]:
    """Chance that one honest query is charged; the noise is inside the absolute value if it is released."""
    if not scale:
        return special.erfc(thresholds / (sd * math.sqrt(2.0)))
    if inside:
        return _noisy_deviation_probability(thresholds, sd, scale)
    return _charge_probability(thresholds, sd, scale)


def _noisy_deviation_probability(
    thresholds: npt.NDArray[np.float64], sd: float, scale: float
) -> npt.NDArray[np.float64]:
    """``P(|N(0, sd**2) + Lap(scale)| >= t)`` for t >= 0, in logs because ``exp(sd**2 / scale**2)`` may overflow."""
    ratio = sd / scale
    gain = ratio**2 / 2
    falling = np.exp(gain - thresholds / scale + special.log_ndtr(thresholds / sd - ratio))
    rising = np.exp(gain + thresholds / scale + special.log_ndtr(-thresholds / sd - ratio))
    return np.maximum(2 * special.ndtr(-thresholds / sd) + falling - rising, 0.0)


def _laplace_quadrature(
    threshold: float, scale: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Nodes and probabilities for Laplace noise; one panel ends where the noisy threshold passes 0."""
    ends = np.unique(np.clip([-threshold / scale, *-_PANELS, 0.0, *_PANELS], -_REACH, _REACH))
    points, masses = np.polynomial.legendre.leggauss(_NODES)
    half = np.diff(ends)[:, None] / 2
    units = (ends[:-1, None] + half * (points + 1)).ravel()
    weights = (half * masses).ravel() * np.exp(-np.abs(units))
    return units * scale, weights / weights.sum()


def _charge_probability(
    thresholds: npt.NDArray[np.float64], sd: float, scale: float
) -> npt.NDArray[np.float64]:
    """``P(|N(0, sd**2)| + Lap(scale) >= t)``, in logs because ``exp(sd**2 / scale**2)`` may overflow."""
    ratio = sd / scale
    magnitude = np.abs(thresholds)
    gain = ratio**2 / 2
    far = np.exp(-magnitude / scale + gain + special.log_ndtr(-ratio))
    rising = np.exp(-magnitude / scale + gain + special.log_ndtr(magnitude / sd - ratio))
    falling = np.exp(magnitude / scale + gain + special.log_ndtr(-magnitude / sd - ratio))
    above_zero = rising - far + 2 * special.ndtr(-magnitude / sd) - falling
    return np.maximum(np.where(np.signbit(thresholds), 1 - far, above_zero), 0.0)
