"""Permute-and-flip, in one round or several; one round is never worse than one of the exponential mechanism."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.exponential import candidates_on_grid, check_rounds, selection_rate


def permute_and_flip(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> int:
    """Choose the first candidate, in a random order, whose coin falls heads; coins favour candidates near the best.

    The choice is (epsilon, 0)-differentially private, and its expected score is never below that of the exponential
    mechanism.

    Parameters
    ----------
    scores, epsilon, sensitivity, monotonic, seed
        As for `exponential_mechanism`, with the same errors.

    Returns
    -------
    int
        Index of the chosen candidate.

    Notes
    -----
    With ``D`` the sensitivity and ``e`` epsilon, the coin of a candidate with score ``q`` falls heads with probability
    ``exp(e (q - max q) / (2D))``, or ``exp(e (q - max q) / D)`` for monotonic scores. So the best candidate's coin
    always falls heads. The coins are exact.

    References
    ----------
    .. [1] McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection".
    .. [2] Ding et al. (2021), "The permute-and-flip mechanism is identical to report-noisy-max with exponential noise".

    Examples
    --------
    >>> permute_and_flip([1.0, 90.0, 3.0], epsilon=1.0, seed=0)
    1
    """
    chosen = permute_and_flip_top(
        scores, 1, epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic, seed=seed
    )
    return int(chosen[0])


def permute_and_flip_top(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Choose several candidates by rounds of permute-and-flip without replacement.

    All choices together, and their order, are (epsilon, delta)-differentially private. With delta 0 a round's expected
    score is never below that of `exponential_top`; with a delta and many rounds `exponential_top` has less noise.
    `compare_selections` tells which is better.

    Parameters
    ----------
    scores, count, epsilon, delta, sensitivity, monotonic, seed
        As for `exponential_top`, with the same errors. The running time grows with `count`.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices of the chosen candidates, in the order of the rounds.

    Notes
    -----
    Each round is `permute_and_flip` among the remaining candidates with the epsilon of `optimal_epsilon_each`, which is
    ``epsilon/c`` with delta 0. Its privacy loss does not have bounded range, so the larger epsilons that
    `exponential_top` uses with a delta would not be private here.

    References
    ----------
    .. [1] McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection",
       Theorem 2 on the expected error.
    .. [2] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> permute_and_flip_top([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0).tolist()
    [1, 3]
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    check_rounds(count, len(steps))
    each = optimal_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    rate = selection_rate(epsilon=each, sensitivity=grid.sensitivity, monotonic=monotonic)
    words, left = RandomWords(seed), np.arange(len(steps))
    chosen = np.empty(count, dtype=np.int64)
    for round_ in range(count):
        place = flip_in_order(steps[left], rate, words)
        chosen[round_] = left[place]
        left = np.delete(left, place)
    return chosen


def flip_in_order(steps: npt.NDArray[np.int64], rate: Fraction, words: RandomWords) -> int:
    """Take the first candidate, in a random order, whose exact coin falls heads.

    Parameters
    ----------
    steps : ndarray of int64, shape (n,)
        Scores, grid units.
    rate : Fraction
        Exponent of a coin for each step below the best score.
    words : RandomWords
        Source of the order and the coins.
    """
    order = words.permutation(len(steps))
    behind = (steps.max() - steps)[order]
    with np.errstate(over="ignore"):  # an infinite exponent is a certain "no"
        exponents = behind.astype(np.float64) * float(rate)
    taken = words.first_decay(exponents, lambda position: rate * int(behind[position]))
    return int(order[cast("int", taken)])  # never None: the best candidate's coin falls heads for certain
