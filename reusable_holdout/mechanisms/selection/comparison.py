"""A comparison of the noise of all ways to select the best few of many candidates, at the same privacy guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bounded_range import bounded_range_epsilon_each
from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.mechanisms.accounting.one_shot import one_shot_top_k_epsilon_each
from reusable_holdout.mechanisms.selection.exponential import check_rounds
from reusable_holdout.mechanisms.sparse_vector.scales import check_privacy

Selection: TypeAlias = Literal[
    "exponential_top", "noisy_top_k_gaps", "one_shot_top_k", "permute_and_flip_top"
]

_SPREADS = {"gumbel": math.pi / math.sqrt(6), "laplace": math.sqrt(2), "exponential": 1.0}
"""Standard deviation of each law at scale 1."""


@dataclass(frozen=True, slots=True)
class SelectionNoise:
    """The noise of one way to select candidates, in the scores' unit.

    Attributes
    ----------
    selection : str
        Name of the function that selects in this way.
    noise : str
        Law of the noise that ranks the candidates: "gumbel", "laplace" or "exponential".
    scale : float
        Scale of that noise.
    sd : float
        Standard deviation of that noise.
    answer : float
        Laplace scale of the released scores; 0 if they are not released.
    """

    selection: Selection
    noise: str
    scale: float
    sd: float
    answer: float


def compare_selections(
    *,
    epsilon: float,
    delta: float,
    count: int,
    candidates: int,
    sensitivity: float = 1.0,
    answers: bool = False,
    monotonic: bool = False,
) -> tuple[SelectionNoise, ...]:
    """Compare the noise of all ways to select the best few of many candidates, at one privacy guarantee.

    The least noise is first. Each way is (epsilon, delta)-differentially private, released scores included.

    Parameters
    ----------
    epsilon, delta, sensitivity
        As for `exponential_top`.
    count : int
        Number of candidates to select; at least 1, at most `candidates`.
    candidates : int
        Number of candidates.
    answers : bool
        True if the scores of the selected candidates are released, too. Half of each budget then pays for them, by
        Laplace noise at optimal composition, except in `one_shot_top_k`, which releases the scores that it compared.
    monotonic : bool
        True if a change of one row never raises one score and lowers another. This does not reduce the noise of
        `one_shot_top_k`.

    Returns
    -------
    tuple of SelectionNoise
        One row per function, ordered by standard deviation; `pandas.DataFrame` makes a table of them.
        `noisy_top_k_gaps` is left out if all candidates are selected.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Rounds of permute-and-flip have exponential noise that is drawn anew in each round; the other noises are drawn once.
    With delta 0 rounds of permute-and-flip have the least noise, and rounds of the exponential mechanism a quarter
    more. With delta 1e-6 and epsilon 1 the exponential mechanism has less noise from seven rounds on. If few scores are
    released, it takes far less noise to select first and then add noise to the selected scores, as
    `select_then_measure` does, than to use `one_shot_top_k`. For one score at epsilon 1 and delta 1e-6 the scales are 4
    for the selection and 2 for the score, in place of 32.1 for both.

    References
    ----------
    .. [1] Ding et al. (2021), "The permute-and-flip mechanism is identical to report-noisy-max with exponential noise".
    .. [2] Durfee and Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get
       composition", on Gumbel noise.

    Examples
    --------
    >>> best, *_ = compare_selections(epsilon=0.1, delta=1e-6, count=100, candidates=870, monotonic=True)
    >>> best.selection, round(best.scale)
    ('exponential_top', 182)
    """
    check_rounds(count, candidates)
    check_privacy(charges=count, epsilon=epsilon, delta=delta)
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise InputError(f"a sensitivity is a positive finite number; got {sensitivity}")
    rows = _rows(epsilon, delta, count, candidates, answers=answers, monotonic=monotonic)
    found = [
        SelectionNoise(
            name, noise, scale * sensitivity, _SPREADS[noise] * scale * sensitivity, answer * sensitivity
        )
        for name, noise, scale, answer in rows
    ]
    return tuple(sorted(found, key=lambda row: row.sd))


def _rows(
    epsilon: float, delta: float, count: int, candidates: int, *, answers: bool, monotonic: bool
) -> Iterator[tuple[Selection, str, float, float]]:
    """Yield each function with the law of its noise, its scale, and the scale of the released scores."""
    share = 0.5 if answers else 1.0
    budget, slack = epsilon * share, delta * share
    answer = 1 / optimal_epsilon_each(epsilon=budget, count=count, delta=slack) if answers else 0.0
    factor = 1.0 if monotonic else 2.0
    each = bounded_range_epsilon_each(epsilon=budget, count=count, delta=slack)
    yield "exponential_top", "gumbel", factor / each, answer
    each = optimal_epsilon_each(epsilon=budget, count=count, delta=slack)
    yield "permute_and_flip_top", "exponential", factor / each, answer
    if count < candidates:
        yield "noisy_top_k_gaps", "laplace", factor * count / budget, answer
    each = one_shot_top_k_epsilon_each(k=count, candidates=candidates, epsilon=epsilon, delta=delta)
    yield "one_shot_top_k", "laplace", 1 / each, 1 / each if answers else 0.0
