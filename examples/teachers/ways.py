"""Four ways to ask teachers for labels at one epsilon: three of Cohen and Lyu (2023), section 2.7.1, and the plain one.

Each way asks query by query until its charges are spent. Ways (i) and (ii) pay for "boundary", way (iii) pays for a
label that the student did not predict, and the plain one pays for every label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.mechanisms import (
    TargetInteraction,
    boundary_wrapper,
    exponential_mechanism,
    exponential_weights,
    exponential_weights_or_low,
)
from reusable_holdout.mechanisms.accounting import (
    boundary_q,
    boundary_wrapped_epsilon,
    bounded_range_epsilon_each,
    not_prior_q,
)
from teachers.voting import predictions

DELTA = 1e-6
BOUNDARY, LOW = -1, -2
REFIT = 25  # labels between two fits of the student


class Run(NamedTuple):
    """The outcomes of all queries asked (a class, `BOUNDARY` or `LOW`), the charges, and the epsilon of one call."""

    labels: NDArray[np.int64]
    charged: int
    epsilon_inside: float


def by_agreement(counts: NDArray[np.int64], *, epsilon: float, charges: int, seed: int | None) -> Run:
    """Label by (i), the exponential mechanism in the boundary wrapper: free if the teachers agree."""
    return _wrapped(exponential_weights, counts, epsilon=epsilon, charges=charges, seed=seed)


def by_agreement_or_low(
    counts: NDArray[np.int64], *, threshold: int, epsilon: float, charges: int, seed: int | None
) -> Run:
    """Label by (ii), with "low" if no label has enough votes: free if teachers agree or do not agree at all."""

    def weights(votes: list[int], *, epsilon: float) -> list[int]:
        return exponential_weights_or_low(votes, threshold=threshold, epsilon=epsilon)

    run = _wrapped(weights, counts, epsilon=epsilon, charges=charges, seed=seed)
    return run._replace(labels=np.where(run.labels == counts.shape[1], LOW, run.labels))


def by_student(
    counts: NDArray[np.int64],
    features: NDArray[np.float64],
    *,
    epsilon: float,
    charges: int,
    seed: int | None,
) -> Run:
    """Label by (iii), the exponential mechanism: free if a student of the labels so far predicts the label."""
    interaction = TargetInteraction(charges=charges, epsilon=epsilon, delta=DELTA)
    each = interaction.epsilon_each
    labels: list[int] = []
    predicted = np.zeros(len(counts), dtype=np.int64)
    for place, row in enumerate(counts):
        if interaction.halted:
            break
        if place % REFIT == 0 and place:
            predicted = predictions(features[:place], np.array(labels), features)
        chosen = interaction.run(
            lambda row=row, place=place: exponential_mechanism(row, epsilon=each, seed=own_seed(seed, place)),
            hit=lambda label, prior=int(predicted[place]): label != prior,
            epsilon=each,
            q=not_prior_q(each),
        )
        labels.append(chosen)
    return Run(np.array(labels), charges - interaction.charges_left, each)


def plainly(counts: NDArray[np.int64], *, epsilon: float, seed: int | None) -> Run:
    """Label every row by the exponential mechanism, with an equal part of the budget each."""
    each = bounded_range_epsilon_each(epsilon=epsilon, count=len(counts), delta=DELTA)
    chosen = [
        exponential_mechanism(row, epsilon=each, seed=own_seed(seed, place))
        for place, row in enumerate(counts)
    ]
    return Run(np.array(chosen), len(counts), each)


def wrapper_q(epsilon: float) -> float:
    """Return the least chance of the boundary, given the epsilon of a call of the wrapper."""
    return boundary_q(boundary_wrapped_epsilon(epsilon), epsilon)


def own_seed(seed: int | None, place: int) -> int | None:
    """Return a seed of its own for each query."""
    return None if seed is None else seed * 1_000_003 + place


def _wrapped(
    weigh: Callable[..., list[int]],
    counts: NDArray[np.int64],
    *,
    epsilon: float,
    charges: int,
    seed: int | None,
) -> Run:
    """Ask the boundary wrapper of weighted outcomes until the charges are spent."""
    interaction = TargetInteraction(charges=charges, epsilon=epsilon, delta=DELTA, q=wrapper_q)
    inside = boundary_wrapped_epsilon(interaction.epsilon_each)
    labels: list[int] = []
    for place, row in enumerate(counts.tolist()):
        if interaction.halted:
            break
        weights = weigh(row, epsilon=inside)
        chosen = interaction.run(
            lambda weights=weights, place=place: boundary_wrapper(weights, seed=own_seed(seed, place)),
            hit=lambda outcome: outcome is None,
            epsilon=interaction.epsilon_each,
            q=interaction.q,
        )
        labels.append(BOUNDARY if chosen is None else chosen)
    return Run(np.array(labels), charges - interaction.charges_left, inside)
