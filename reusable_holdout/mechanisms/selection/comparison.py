"""Which selection of the best few is tightest? The noise of each at one guarantee."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bounded_range import bounded_range_epsilon_each
from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.mechanisms.accounting.one_shot import one_shot_top_k_epsilon_each
from reusable_holdout.mechanisms.selection.lead import needed_lead

__all__ = ["Selection", "SelectionNoise", "compare_selections", "tightest_selection"]

Selection: TypeAlias = Literal[
    "exponential_top",
    "joint_exponential_top",
    "noisy_top_k_gaps",
    "one_shot_top_k",
    "permute_and_flip_top",
]

# Standard deviation of each law at scale 1; the joint choice has no noise of its own for each candidate.
_SPREADS = {
    "gumbel": math.pi / math.sqrt(6),
    "laplace": math.sqrt(2),
    "exponential": 1.0,
    "joint": math.nan,
}


@dataclass(frozen=True, slots=True)
class SelectionNoise:
    """Noise of one way to select, in the scores' unit.

    Attributes
    ----------
    selection : str
        The function.
    noise : str
        Law of the noise that ranks the candidates: "gumbel", "laplace", "exponential" or, where whole sequences are
        weighed, "joint".
    scale : float
        Its scale; of "joint" how far behind a sequence is that is e times rarer.
    sd : float
        Its standard deviation; NaN for "joint", where candidates have no noise each.
    lead : float
        How far each of the best must be ahead of all others, these being equal, so that all of the best are found,
        except with probability `beta`.
    answer : float
        Laplace scale of the released scores; 0 if they are not released.
    """

    selection: Selection
    noise: str
    scale: float
    sd: float
    lead: float
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
    beta: float = 0.05,
) -> tuple[SelectionNoise, ...]:
    """Noise of every way to select the best few of many candidates, at one guarantee, the least first.

    Each is (epsilon, delta)-differentially private, the released scores included.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole selection; epsilon finite and above 0, delta in [0, 1).
    count : int
        Candidates to select; at least 1, at most `candidates`.
    candidates : int
        How many there are.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit; finite, > 0.
    answers : bool
        Whether the scores of the selected are released, too. A half of each budget then pays for them, by Laplace noise
        at optimal composition, except in `one_shot_top_k`, which releases the scores that it compared.
    monotonic : bool
        Whether a change of one row never lets one score rise and another fall. `one_shot_top_k` does not gain by it.
    beta : float
        Failure probability of `SelectionNoise.lead`, in (0, 1).

    Returns
    -------
    tuple of SelectionNoise
        A data frame of it is a table, by standard deviation; the joint choice, which has none, comes last.
        `noisy_top_k_gaps` is left out where all candidates are selected.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Rounds of permute-and-flip have exponential noise that is drawn anew in each round; the other noises are drawn once.
    With delta 0 rounds of permute-and-flip have the least noise and rounds of the exponential mechanism a quarter more;
    with a delta of 1e-6 and epsilon 1 the exponential mechanism has less from seven rounds on. Where few scores are
    released, selecting first and adding noise to the selected has far less noise than `one_shot_top_k`: one score at
    epsilon 1 and delta 1e-6 noises of scale 4 and 2 in place of 32.1. `select_then_measure` does it.

    The joint choice is not comparable by a noise, and which is better depends on the scores. Where all of the best are
    far ahead it finds them at a smaller `lead` than the others at delta 0; where scores fall gradually and some are
    missed anyway, it misses more of them than rounds do. So the first of this table, which "tightest" stands for, is
    never the joint choice.

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
    _check(epsilon=epsilon, delta=delta, count=count, candidates=candidates)
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise InputError(f"a sensitivity is a positive finite number; got {sensitivity}")
    if not 0 < beta < 1:
        raise InputError(f"beta lies in (0, 1); got {beta}")
    rows = _rows(epsilon, delta, count, candidates, answers=answers, monotonic=monotonic)
    lead = functools.partial(needed_lead, count=count, candidates=candidates, beta=beta)
    found = (
        SelectionNoise(
            name,
            noise,
            scale * sensitivity,
            _SPREADS[noise] * scale * sensitivity,
            lead(noise) * scale * sensitivity,
            answer * sensitivity,
        )
        for name, noise, scale, answer in rows
    )
    return tuple(sorted(found, key=lambda row: (math.isnan(row.sd), row.sd)))


def tightest_selection(
    *,
    epsilon: float,
    delta: float,
    count: int,
    candidates: int,
    answers: bool = False,
    monotonic: bool = False,
) -> Selection:
    """Name the first of `compare_selections`, without computing what only its table shows.

    Parameters
    ----------
    epsilon, delta, count, candidates, answers, monotonic
        As there.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    _check(epsilon=epsilon, delta=delta, count=count, candidates=candidates)
    rows = _rows(epsilon, delta, count, candidates, answers=answers, monotonic=monotonic)
    ranked = [(_SPREADS[noise] * scale, name) for name, noise, scale, _ in rows if noise != "joint"]
    return min(ranked, key=lambda row: row[0])[1]


def _check(*, epsilon: float, delta: float, count: int, candidates: int) -> None:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if not 0 <= delta < 1:
        raise InputError(f"delta lies in [0, 1); got {delta}")
    if not 1 <= count <= candidates:
        raise InputError(f"count lies between 1 and the number of candidates, {candidates}; got {count}")


def _rows(
    epsilon: float, delta: float, count: int, candidates: int, *, answers: bool, monotonic: bool
) -> Iterator[tuple[Selection, str, float, float]]:
    """Function, law, its scale, and that of the released scores."""
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
    yield "joint_exponential_top", "joint", factor * (1 if count == 1 else 2) / budget, answer
