"""Which mechanism is tightest? The noise of each at one guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from reusable_holdout.accounting import (
    not_prior_mean,
    not_prior_q,
    optimal_epsilon_each,
    target_charging_epsilon_each,
)
from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.sparse_vector.core import NoiseScales
from reusable_holdout.mechanisms.sparse_vector.numeric_sparse import numeric_sparse_scales
from reusable_holdout.mechanisms.sparse_vector.sparse import check_privacy, epsilon_of_a_round, sparse_scales
from reusable_holdout.mechanisms.sparse_vector.standard_svt import standard_svt_scales

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reusable_holdout.mechanisms.sparse_vector.sparse import Composition

__all__ = ["MechanismNoise", "compare_mechanisms"]

_ANSWERS = Fraction(1, 9)  # of each budget: NumericSparse's own share for the released values


@dataclass(frozen=True, slots=True)
class MechanismNoise:
    """Noise of one mechanism, in the query's unit.

    Attributes
    ----------
    mechanism : str
        Its class, and how its rounds compose.
    threshold, query, answer : float
        Noise scales; a threshold of 0 has no noise, an answer of 0 is not released.
    comparison_sd : float
        Standard deviation of the whole noise of one comparison.
    answer_sd : float
        Standard deviation of a released value's noise.
    """

    mechanism: str
    threshold: float
    query: float
    answer: float
    comparison_sd: float
    answer_sd: float


def compare_mechanisms(
    *,
    epsilon: float,
    delta: float,
    charges: int,
    sensitivity: float = 1.0,
    answers: bool = True,
    monotonic: bool = False,
) -> tuple[MechanismNoise, ...]:
    """Noise of every mechanism that answers a stream of queries, at one guarantee, the least comparison noise first.

    Each is (epsilon, delta)-differentially private for any number of queries of which `charges` are above.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole stream; epsilon finite and > 0, delta in [0, 1).
    charges : int
        Queries above the threshold; at least 1.
    sensitivity : float
        Largest change of one query; finite, > 0.
    answers : bool
        Whether the values of the queries above are released. A ninth of the budget then pays for them, except under
        target charging, which releases the value it compared.
    monotonic : bool
        Whether a change of the data moves all queries in the same direction.

    Returns
    -------
    tuple of MechanismNoise
        A data frame of it is a table. Mechanisms that need a delta are left out at delta 0, and NumericSparse under
        advanced composition where that theorem does not hold.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    One stream of `StandardSVT` beats `charges` restarts of it with one charge each, at optimal composition, for few
    charges only: its noise grows as the charges, theirs as the square root.

    Examples
    --------
    >>> best, *_ = compare_mechanisms(epsilon=1.0, delta=1e-6, charges=100)
    >>> best.mechanism, round(best.query, 1)
    ('target charging', 69.3)
    """
    check_privacy(charges=charges, epsilon=epsilon, delta=delta)
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise InputError(f"a sensitivity is a positive finite number; got {sensitivity}")
    rows = [
        *_sparse(epsilon, delta, charges, answers=answers),
        *_standard(epsilon, delta, charges, answers=answers, monotonic=monotonic),
        *_target_charging(epsilon, delta, charges),
    ]
    return tuple(sorted((_in_units(*row, sensitivity) for row in rows), key=lambda row: row.comparison_sd))


def _sparse(
    epsilon: float, delta: float, charges: int, *, answers: bool
) -> Iterator[tuple[str, NoiseScales, float]]:
    maker, name = (numeric_sparse_scales, "NumericSparse") if answers else (sparse_scales, "Sparse")
    yield f"{name}, basic composition", maker(charges=charges, epsilon=epsilon, sensitivity=1), 2.0
    if delta == 0:
        return
    compositions: tuple[Composition, ...] = ("advanced", "optimal")
    for composition in compositions:
        try:
            scales = maker(
                charges=charges, epsilon=epsilon, delta=delta, composition=composition, sensitivity=1
            )
        except InputError:  # outside the theorem's range
            continue
        yield f"{name}, {composition} composition", scales, 2.0


def _standard(
    epsilon: float, delta: float, charges: int, *, answers: bool, monotonic: bool
) -> Iterator[tuple[str, NoiseScales, float]]:
    share = _ANSWERS if answers else Fraction(0)
    values = float(epsilon * share)
    whole = standard_svt_scales(
        charges=charges, epsilon=epsilon, answers=values, monotonic=monotonic, sensitivity=1
    )
    if answers and delta > 0:  # the values are Laplace releases of their own and may compose optimally
        each = optimal_epsilon_each(epsilon=values, count=charges, delta=delta)
        whole = NoiseScales(whole.threshold, whole.query, min(whole.answer, 1 / Fraction(each)))
    yield "StandardSVT", whole, 2.0
    yield "StandardSVT, exponential noise", whole, 1.0
    if delta > 0:
        round_ = float(epsilon_of_a_round(charges=charges, epsilon=epsilon, delta=delta))
        one = standard_svt_scales(
            charges=1, epsilon=round_, answers=float(round_ * share), monotonic=monotonic, sensitivity=1
        )
        yield "StandardSVT of one charge, restarted, optimal composition", one, 2.0
        yield "StandardSVT of one charge, restarted, exponential noise", one, 1.0


def _target_charging(epsilon: float, delta: float, charges: int) -> Iterator[tuple[str, NoiseScales, float]]:
    if delta == 0:
        return
    each = target_charging_epsilon_each(
        epsilon=epsilon, delta=delta, charges=charges, q=not_prior_q, mean=not_prior_mean
    )
    scale = 1 / Fraction(each)
    yield "target charging", NoiseScales(Fraction(0), scale, scale), 2.0


def _in_units(name: str, scales: NoiseScales, variance: float, sensitivity: float) -> MechanismNoise:
    """Variance is that of the comparison's noise at scale 1: 2 for Laplace, 1 for exponential noise."""
    threshold, query, answer = (
        float(scale) * sensitivity for scale in (scales.threshold, scales.query, scales.answer)
    )
    return MechanismNoise(
        name,
        threshold,
        query,
        answer,
        math.sqrt(variance) * math.hypot(threshold, query),
        math.sqrt(2.0) * answer,
    )
