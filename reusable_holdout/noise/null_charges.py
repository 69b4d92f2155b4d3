"""The expected number of charges that sampling error alone causes, which matters if a threshold is close to it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special
from reusable_holdout.noise.calibration import Calibration, GuardMechanism

__all__ = ["expected_charges_of_stages"]

_REACH = 40.0  # threshold noise beyond 40 scales, which has probability exp(-40), is ignored
_BINS = 4096  # bins of the time axis; each charge is late by half a bin at most
_NEVER = 1e-9  # if a charge comes in time with a smaller probability, all later charges are ignored
_PANELS = np.array([4.0, 10.0, 20.0, 40.0])  # scales of the threshold noise, on both sides of 0
_NODES = 20  # Gauss-Legendre nodes per panel; doubling them changes no result by more than 1e-8 of it


def expected_charges_of_stages(
    thresholds: Sequence[float],
    *,
    deviation_sd: float,
    queries: int,
    noise_scale: float,
    mechanism: GuardMechanism = "numeric-sparse",
) -> float:
    """Compute the expected number of charges over queries whose priors are right, so that deviations are chance alone.

    After each charge the next threshold is in force. The mechanism halts after the charge at the last threshold. The
    result is exact up to numerical integration, with continuous noise in place of discrete noise (their difference is
    below one grid step).

    Parameters
    ----------
    thresholds : Sequence[float]
        The thresholds in force after 0, 1, ... charges, in the statistic's unit; each > 0. Their number is the budget.
    deviation_sd : float
        Standard deviation of holdout value minus prior, which is modelled as normal with mean 0; > 0.
    queries : int
        Number of queries; at least 1.
    noise_scale : float
        Scale ``s`` of Thresholdout: threshold noise is ``Lap(2s)``, query noise ``Lap(4s)``; 0 for no noise.
    mechanism : {"numeric-sparse", "standard-svt", "target-charging", "noiseless"}
        Mechanism whose noise is added, as in `Calibration`.

    Returns
    -------
    float
        Between 0 and ``len(thresholds)``; NaN for a mechanism of earlier versions.

    Notes
    -----
    The threshold noise stays the same between charges, so the queries between two charges are not independent: a noisy
    threshold that is low is soon charged and renewed, and a high one stays. Therefore the waiting time for a charge is
    a mixture of geometric distributions. The time of the j-th charge is the sum of j waiting times. It is computed by
    convolution on a grid of at most 4,096 points of time, and is exact for up to 4,096 queries. The expected number of
    charges is the sum over j of the probability that the j-th charge comes in time.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout", Science 349,
       supplement.

    Examples
    --------
    >>> one = expected_charges_of_stages([0.03], deviation_sd=0.01, queries=1_000, noise_scale=0)
    >>> abs(one - (1 - (1 - 0.0027) ** 1_000)) < 1e-4
    True
    """
    calibration = Calibration(mechanism if noise_scale else "noiseless", len(thresholds))
    if calibration.mechanism not in ("numeric-sparse", "noiseless"):
        return math.nan
    threshold_scale, query_scale, _ = (scale * noise_scale for scale in calibration.scales)
    bins = min(queries, _BINS)
    times = np.linspace(0.0, queries, bins + 1)
    size = 1 << (len(times) + bins).bit_length()  # long enough that no time wraps round to the first
    arrival = np.zeros(len(times))
    arrival[0] = 1.0
    expected = 0.0
    for threshold in thresholds:
        values, weights = _threshold_noise(threshold, threshold_scale)
        charged = _charge_probability(threshold + values, deviation_sd, query_scale)
        survival = weights @ np.exp(np.outer(np.log1p(-np.minimum(charged, 1 - 1e-12)), times))
        waiting = -np.diff(survival, prepend=1.0)
        arrival = np.fft.irfft(np.fft.rfft(arrival, size) * np.fft.rfft(waiting, size), size)[: len(times)]
        reached = float(arrival.sum())
        expected += reached
        if reached < _NEVER:
            break
    return min(expected, float(len(thresholds)))


def _threshold_noise(
    threshold: float, scale: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return nodes and weights for integrals over Laplace noise; a panel ends where the noisy threshold is 0."""
    if not scale:
        return np.zeros(1), np.ones(1)
    ends = np.unique(np.clip([-threshold / scale, *-_PANELS, 0.0, *_PANELS], -_REACH, _REACH))
    points, masses = np.polynomial.legendre.leggauss(_NODES)
    half = np.diff(ends)[:, None] / 2
    units = (ends[:-1, None] + half * (points + 1)).ravel()
    weights = (half * masses).ravel() * np.exp(-np.abs(units))
    return units * scale, weights / weights.sum()


def _charge_probability(
    thresholds: npt.NDArray[np.float64], sd: float, scale: float
) -> npt.NDArray[np.float64]:
    """Compute ``P(|N(0, sd**2)| + Lap(scale) >= t)``, with logs, because ``exp(sd**2 / scale**2)`` may overflow."""
    if not scale:
        return special.erfc(thresholds / (sd * math.sqrt(2.0)))
    ratio = sd / scale
    magnitude = np.abs(thresholds)
    gain = ratio**2 / 2
    far = np.exp(-magnitude / scale + gain + special.log_ndtr(-ratio))
    rising = np.exp(-magnitude / scale + gain + special.log_ndtr(magnitude / sd - ratio))
    falling = np.exp(magnitude / scale + gain + special.log_ndtr(-magnitude / sd - ratio))
    above_zero = rising - far + 2 * special.ndtr(-magnitude / sd) - falling
    return np.maximum(np.where(np.signbit(thresholds), 1 - far, above_zero), 0.0)
