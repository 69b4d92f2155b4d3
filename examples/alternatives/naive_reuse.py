"""The accuracy that an analyst can fake if a holdout answers every question exactly."""

from __future__ import annotations

import math

from scipy import special

__all__ = ["majority_attack_gain"]


def majority_attack_gain(*, rows: int, queries: int) -> float:
    """Return the accuracy beyond one half that the majority attack fakes on a plain holdout.

    It is a lower bound on the loss from naive reuse: this is one known attack, not the worst one.

    Parameters
    ----------
    rows : int
        Holdout rows n, >= 1.
    queries : int
        Random classifiers asked about, k >= 0; those that score below one half are turned round.

    Notes
    -----
    Each oriented classifier agrees with a label by ``sqrt(1 / (2 pi n))`` more often than chance; the majority of k
    of them is right with probability ``Phi(sqrt(2 k / (pi n)))``.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder", section 4.

    Examples
    --------
    >>> round(0.5 + majority_attack_gain(rows=10_000, queries=1_000), 3)
    0.6
    """
    return float(special.ndtr(math.sqrt(2.0 * queries / (math.pi * rows)))) - 0.5
