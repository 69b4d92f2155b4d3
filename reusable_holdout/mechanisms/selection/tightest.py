"""The selection with the least noise, alone or with a measurement of the selected candidates."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.comparison import Selection, compare_selections
from reusable_holdout.mechanisms.selection.exponential import candidates_on_grid, exponential_top
from reusable_holdout.mechanisms.selection.noisy_max import draw_noise
from reusable_holdout.mechanisms.selection.permute_and_flip import permute_and_flip_top
from reusable_holdout.mechanisms.selection.top_k import TopK, noisy_top_k_gaps, one_shot_top_k
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

Mechanism: TypeAlias = Literal[Selection, "tightest"]


def select_top(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    mechanism: Mechanism = "tightest",
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Choose the best few of many candidates by the selection mechanism with the least noise.

    All choices together, and their order, are (epsilon, delta)-differentially private.

    Parameters
    ----------
    scores, count, epsilon, delta, sensitivity, monotonic, seed
        As for `exponential_top`, with the same errors.
    mechanism : str
        Name of a selection in `compare_selections`, or "tightest" for the first one there, which depends on the
        parameters and on n, but not on the scores.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices of the chosen candidates, best first.

    Examples
    --------
    >>> select_top([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0).tolist()
    [1, 3]
    """
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    name = _named(
        mechanism, scores, count, sensitivity=sensitivity, answers=False, monotonic=monotonic, **budget
    )
    how: dict[str, Any] = {"sensitivity": sensitivity, "seed": seed}
    if name == "one_shot_top_k":
        return one_shot_top_k(scores, count, **budget, **how).indices
    if name == "noisy_top_k_gaps":
        return noisy_top_k_gaps(scores, count, epsilon=epsilon, monotonic=monotonic, **how).indices
    choose = exponential_top if name == "exponential_top" else permute_and_flip_top
    return choose(scores, count, monotonic=monotonic, **budget, **how)


def select_then_measure(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    mechanism: Mechanism = "tightest",
    seed: int | None = None,
) -> TopK:
    """Select the best candidates and release their noisy scores, by the mechanism with the least noise.

    All choices and scores together are (epsilon, delta)-differentially private.

    Parameters
    ----------
    scores, count, epsilon, delta, sensitivity, monotonic, seed
        As for `exponential_top`, with the same errors; the privacy parameters are those of all releases.
    mechanism : str
        Name of a selection in `compare_selections` with answers, or "tightest" for the first one there, which depends
        on the parameters and on n, but not on the scores.

    Returns
    -------
    TopK
        Indices, in the order in which they were chosen, and their noisy scores.

    Notes
    -----
    Half of epsilon and delta pays for the choice. The other half pays for Laplace noise of scale ``D/e0`` on the score
    of each chosen candidate, with ``D`` the sensitivity and ``e0`` the result of `optimal_epsilon_each`.
    `one_shot_top_k` does not divide the budget, because it releases the noisy scores that it compared.

    References
    ----------
    .. [1] Ding et al. (2023), "Free gap estimates from the exponential mechanism, sparse vector, noisy max and related
       algorithms", on selecting first and measuring then.

    Examples
    --------
    >>> best = select_then_measure([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0)
    >>> best.indices.tolist(), bool((abs(best.scores - [900, 600]) < 50).all())
    ([1, 3], True)
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    name = _named(
        mechanism, scores, count, sensitivity=sensitivity, answers=True, monotonic=monotonic, **budget
    )
    if name == "one_shot_top_k":
        return one_shot_top_k(scores, count, sensitivity=sensitivity, seed=seed, **budget)
    words = RandomWords(seed)
    chosen = select_top(
        scores,
        count,
        epsilon=epsilon / 2,
        delta=delta / 2,
        sensitivity=sensitivity,
        monotonic=monotonic,
        mechanism=name,
        seed=None if seed is None else words.below(2**62),
    )
    each = optimal_epsilon_each(epsilon=epsilon / 2, count=count, delta=delta / 2)
    noisy = steps[chosen] + draw_noise(DiscreteLaplace(grid.sensitivity / Fraction(each)), count, words)
    return TopK(chosen, np.asarray(noisy * grid.step, dtype=np.float64))


def _named(
    mechanism: Mechanism, scores: npt.ArrayLike, count: int, *, sensitivity: float, **how: Any
) -> Selection:
    """Return the name of a selection; "tightest" stands for the one with the least noise."""
    names = (*get_args(Selection), "tightest")
    if mechanism not in names:
        raise InputError(f"mechanism is one of {', '.join(names)}; got {mechanism!r}")
    if mechanism != "tightest":
        return mechanism
    _, steps = candidates_on_grid(scores, epsilon=how["epsilon"], sensitivity=sensitivity)
    return compare_selections(count=count, candidates=len(steps), **how)[0].selection
