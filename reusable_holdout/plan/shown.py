"""The difference that a gate shows nine times in ten, for rows of a guessed spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from reusable_holdout.certainty import Certificate, EvidenceRows, likely_rows
from reusable_holdout.plan.numbers import bisected

_CHANCE = 0.1  # of not showing it
_SDS = 1.2816  # nine times in ten a normal variable is above its mean minus this many standard deviations
_ACCURACY = 2.0**-24  # of the range


@lru_cache(maxsize=256)
def shown_difference(
    certificate: Certificate, length: float, standard_error: float, *, pairs: bool, signs: bool
) -> float:
    """Return the distance to a named value at which a gate says "better" nine times in ten.

    The population value is taken to be the certificate's `estimate`; for a difference of two models the named value is.

    Parameters
    ----------
    certificate : Certificate
        Certificate of gates.
    length : float
        Description length of the question.
    standard_error : float
        Standard deviation of the holdout's value, if a distance decides.
    pairs : bool
        True for differences of two models.
    signs : bool
        True if the rows are differences of 0/1 losses, mapped to [0, 1]: then there are three values.
    """
    at, nats = certificate.estimate, certificate.needed(length, 1.0)
    if certificate.decides == "distance":
        reached = _low_score(certificate, standard_error) - certificate.comparison_tail
        low, _ = certificate.around(reached, at, length=length, share=1.0)
        return at - float(low)
    spread, count = certificate.spread or 0.0, float(certificate.bound.rows)

    def is_shown(distance: float) -> bool:
        true = min(at + distance, 1.0) if pairs else at
        rows = _unlucky(true, spread, count, _signs if signs else _graded)
        if certificate.decides == "sets":
            return certificate.evidence_set(nats, true - distance).of(rows)[0] >= true - distance
        evidence = certificate.named_evidence(true - distance, nats)
        tail = certificate.comparison_tail / certificate.sensitivity * evidence.sensitivity
        return evidence.log_evidence_of(rows) >= nats + tail

    return bisected(is_shown, kept=at, refused=0.0, accuracy=_ACCURACY)


def _low_score(certificate: Certificate, standard_error: float) -> float:
    """Return the score that the holdout reaches nine times in ten."""
    from scipy.stats import binom  # noqa: PLC0415 - slow to import, and only a plan of gates needs it

    at, rows = certificate.estimate, certificate.bound.rows
    if certificate.bound.family == "binomial":
        return float(binom.ppf(_CHANCE, rows, at)) / rows
    return max(at - _SDS * standard_error, 0.0)


def _unlucky(true: float, spread: float, count: float, rows_of: Callable[..., EvidenceRows]) -> EvidenceRows:
    """Return rows whose mean is exceeded nine times in ten."""
    rows = rows_of(true, spread, count)
    variance = float((rows.values - true) ** 2 @ rows.counts) / count
    return rows_of(max(true - _SDS * math.sqrt(variance / count), 0.0), spread, count)


def _signs(mean: float, spread: float, count: float) -> EvidenceRows:
    """Return rows of 0, 1/2 and 1 with this mean; the share of rows other than 1/2 is four times the squared spread."""
    lead = 2.0 * mean - 1.0
    differing = min(max(4.0 * spread**2, abs(lead)), 1.0)
    shares = np.array([differing - lead, 2.0 - 2.0 * differing, differing + lead]) / 2.0
    return EvidenceRows(np.array([0.0, 0.5, 1.0]), count * shares)


def _graded(mean: float, spread: float, count: float) -> EvidenceRows:
    """Return rows of three values with the first five moments of a normal distribution, if they fit in [0, 1]."""
    width = math.sqrt(3.0) * spread
    if not width <= mean <= 1.0 - width:
        return likely_rows(mean, spread, count)
    return EvidenceRows(mean + np.array([-width, 0.0, width]), count * np.array([1.0, 4.0, 1.0]) / 6.0)
