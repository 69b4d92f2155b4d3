"""The candidates of a one-shot selection: a sweep from the best noisy score downwards, and where it stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms.samplers.random_words import RandomWords

__all__ = ["run_candidates", "swept"]


def run_candidates(
    candidates: Sequence[Any],
    algorithm: Callable[[Any, float], tuple[Any, float]],
    epsilon: float,
    words: RandomWords,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], list[Any]]:
    """Run every candidate once, and rank them by what they say of themselves.

    Each run is `epsilon`-differentially private if the algorithm is; only the best may be published.

    Parameters
    ----------
    candidates : sequence
        What the algorithm is run for.
    algorithm : Callable[[candidate, float], (found, score)]
        Told the candidate and the privacy parameter it must keep.
    epsilon : float
        Privacy parameter of one run.
    words : RandomWords
        Source of the order of ties.

    Returns
    -------
    order : ndarray of int64, shape (n,)
        Candidates, best first; those that tie in an order drawn uniformly, without the data. NaN is the worst score.
    scores : ndarray of float, shape (n,)
        In that order.
    found : list
        What each found, in that order.
    """
    ran = [algorithm(candidate, epsilon) for candidate in candidates]
    scores = np.array([float(score) for _, score in ran])
    scores[np.isnan(scores)] = -np.inf
    shuffled = words.permutation(len(ran))
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    return order, scores[order], [ran[index][0] for index in order.tolist()]


def swept(
    scores: npt.NDArray[np.float64],
    k: int,
    *,
    stop_gap: float | None,
    stop: Callable[[int], bool] | None,
) -> int:
    """Give how many of the ranked candidates are published: k, or fewer where the sweep stops.

    Looks only at what a falling threshold has passed: never at a candidate behind the last that is published, but for
    the gap that it leaves.

    Parameters
    ----------
    scores : ndarray of float, shape (n,)
        Falling.
    k : int
        The most that are published.
    stop_gap : float or None
        Stop before the first gap of at least this size. The gap behind the k-th is not looked at.
    stop : Callable[[int], bool] or None
        Whether to stop after so many; it may look at these and at no others.
    """
    for published in range(1, k):
        if stop is not None and stop(published):
            return published
        if stop_gap is not None and scores[published - 1] - scores[published] >= stop_gap:
            return published
    return k
