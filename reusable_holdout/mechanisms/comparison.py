"""Which stream is tightest? The noise of each at one guarantee, and the stream that has the least."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    not_prior_mean,
    not_prior_q,
    optimal_epsilon_each,
    target_charging_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.gaussian_sparse_vector import gaussian_sparse_vector_deviations
from reusable_holdout.mechanisms.sparse_vector.budget import check_privacy
from reusable_holdout.mechanisms.sparse_vector.conditional_stream import ConditionalStream
from reusable_holdout.mechanisms.sparse_vector.gaussian_svt import GaussianSVT
from reusable_holdout.mechanisms.sparse_vector.numeric_sparse import numeric_sparse_scales
from reusable_holdout.mechanisms.sparse_vector.reach import DEVIATIONS, Law, reach_of
from reusable_holdout.mechanisms.sparse_vector.real_stream import WhetherStream, check_tail
from reusable_holdout.mechanisms.sparse_vector.sparse import (
    Composition,
    Sparse,
    epsilon_of_a_round,
    sparse_scales,
)
from reusable_holdout.mechanisms.sparse_vector.standard_svt import StandardSVT, standard_svt_scales
from reusable_holdout.noise.sparse_vector import NoiseScales

__all__ = ["MechanismNoise", "compare_mechanisms", "tightest_stream"]

_ANSWERS = Fraction(1, 9)  # of each budget: NumericSparse's own share for the released values
_ONE_STREAM = "StandardSVT, exponential noise"
_RESTARTED = "StandardSVT of one charge, restarted, exponential noise"
_CHARGED = "target charging"
_NORMAL = "GaussianSVT"


@dataclass(frozen=True, slots=True)
class MechanismNoise:
    """Noise of one mechanism, in the query's unit.

    Attributes
    ----------
    mechanism : str
        Its class, and how its rounds compose.
    threshold, query, answer : float
        Noise scales (standard deviations of normal noise); a threshold of 0 has no noise, an answer of 0 is not
        released.
    comparison_sd : float
        Standard deviation of the whole noise of one comparison.
    answer_sd : float
        Standard deviation of a released value's noise.
    reach : float
        Distance that the noise of no comparison exceeds, in all queries together, except with probability beta; NaN if
        the number of queries was not given.
    runs : tuple of str
        What in this library draws this noise; `TargetCharging` where it is told ``mean=not_prior_mean``.
    """

    mechanism: str
    threshold: float
    query: float
    answer: float
    comparison_sd: float
    answer_sd: float
    reach: float = math.nan
    runs: tuple[str, ...] = ()


class _Way(NamedTuple):
    """A mechanism at sensitivity 1."""

    name: str
    scales: NoiseScales
    law: Law
    runs: tuple[str, ...]


def compare_mechanisms(
    *,
    epsilon: float,
    delta: float,
    charges: int,
    queries: int | None = None,
    beta: float = 0.05,
    sensitivity: float = 1.0,
    answers: bool = True,
    monotonic: bool = False,
) -> tuple[MechanismNoise, ...]:
    """Noise of every mechanism that answers a stream of queries, at one guarantee, the least first.

    Each is (epsilon, delta)-differentially private for any number of queries of which `charges` are above;
    `GaussianSVT` for `queries` of them.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole stream; epsilon finite and > 0, delta in [0, 1).
    charges : int
        Queries above the threshold; at least 1.
    queries : int, optional
        Queries in all; at least 1. With it the order is that of `reach`, and normal noise is compared, too; without it
        the order is that of `comparison_sd`.
    beta : float
        Failure probability of the reach, in (0, 1).
    sensitivity : float
        Largest change of one query; finite, > 0.
    answers : bool
        Whether the values of the queries above are released. A ninth of the budget then pays for them, except under
        target charging, which releases the value it compared. `GaussianSVT` releases none and is left out.
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
    charges only: its noise grows as the charges, theirs as the square root. `retraversal` has the noise of
    `StandardSVT`, `AboveThreshold` that of `Sparse` with one charge, and `TargetCharging` and `IndividualCharging`,
    whose charges are those of each record, that of target charging.

    Examples
    --------
    >>> best, *_ = compare_mechanisms(epsilon=1.0, delta=1e-6, charges=100)
    >>> best.mechanism, round(best.query, 1)
    ('target charging', 69.3)
    """
    check_privacy(charges=charges, epsilon=epsilon, delta=delta)
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise InputError(f"a sensitivity is a positive finite number; got {sensitivity}")
    check_tail(queries=charges if queries is None else queries, beta=beta)
    ways = [
        *_sparse(epsilon, delta, charges, answers=answers),
        *_standard(epsilon, delta, charges, answers=answers, monotonic=monotonic),
        *_target_charging(epsilon, delta, charges),
    ]
    if queries is not None and delta > 0 and not answers:
        ways.append(_normal(epsilon, delta, charges, queries, monotonic=monotonic))
    rows = [_in_units(way, sensitivity, queries, beta) for way in ways]
    return tuple(sorted(rows, key=lambda row: row.comparison_sd if queries is None else row.reach))


def tightest_stream(
    threshold: float,
    *,
    charges: int,
    epsilon: float,
    delta: float = 0.0,
    queries: int | None = None,
    beta: float = 0.05,
    monotonic: bool = False,
    sensitivity: float = 1.0,
    seed: int | None = None,
) -> WhetherStream:
    """Make the stream with the least noise at a guarantee.

    All its answers are (epsilon, delta)-differentially private; after `charges` queries above it halts, and if it has
    normal noise after `queries` in all.

    Parameters
    ----------
    threshold : float
        The query's unit.
    charges, epsilon, delta, queries, beta, monotonic, sensitivity
        As for `compare_mechanisms`, whose first row it is. That depends on these parameters alone.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The first row is always one of four, whose `comparison_sd` and `reach` no other's are below: exponential noise has
    the scales of Laplace noise and half its variance, and no scales are smaller than at the best ratio.

    Examples
    --------
    >>> type(tightest_stream(0.0, charges=3, epsilon=1.0)).__name__
    'StandardSVT'
    >>> type(tightest_stream(0.0, charges=300, epsilon=1.0, delta=1e-6)).__name__
    'ConditionalStream'
    """
    best, *_ = compare_mechanisms(
        epsilon=epsilon,
        delta=delta,
        charges=charges,
        queries=queries,
        beta=beta,
        answers=False,
        monotonic=monotonic,
    )
    same: dict[str, Any] = {"charges": charges, "epsilon": epsilon, "sensitivity": sensitivity, "seed": seed}
    if best.mechanism == _CHARGED:
        return ConditionalStream(threshold, delta=delta, **same)
    if best.mechanism == _NORMAL:  # only where the queries are known
        return GaussianSVT(threshold, delta=delta, monotonic=monotonic, **same | {"queries": queries})
    if best.mechanism == _RESTARTED:
        return Sparse(
            threshold,
            delta=delta,
            composition="optimal",
            ratio=None,
            monotonic=monotonic,
            noise="exponential",
            **same,
        )
    return StandardSVT(threshold, monotonic=monotonic, noise="exponential", **same)


def _sparse(epsilon: float, delta: float, charges: int, *, answers: bool) -> Iterator[_Way]:
    maker, name = (numeric_sparse_scales, "NumericSparse") if answers else (sparse_scales, "Sparse")
    runs = (name, "AboveThreshold") if charges == 1 and not answers else (name,)
    scales = maker(charges=charges, epsilon=epsilon, sensitivity=1)
    yield _Way(f"{name}, basic composition", scales, "laplace", runs)
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
        yield _Way(f"{name}, {composition} composition", scales, "laplace", (name,))


def _standard(
    epsilon: float, delta: float, charges: int, *, answers: bool, monotonic: bool
) -> Iterator[_Way]:
    share = _ANSWERS if answers else Fraction(0)
    values = float(epsilon * share)
    whole = standard_svt_scales(
        charges=charges, epsilon=epsilon, answers=values, monotonic=monotonic, sensitivity=1
    )
    if answers:  # the values are Laplace releases of their own and compose optimally
        each = optimal_epsilon_each(epsilon=values, count=charges, delta=delta)
        whole = NoiseScales(whole.threshold, whole.query, min(whole.answer, 1 / Fraction(each)))
    yield _Way("StandardSVT", whole, "laplace", ("StandardSVT", "retraversal"))
    yield _Way(_ONE_STREAM, whole, "exponential", ("StandardSVT", "retraversal"))
    if delta > 0:
        round_ = float(epsilon_of_a_round(charges=charges, epsilon=epsilon, delta=delta))
        one = standard_svt_scales(
            charges=1, epsilon=round_, answers=float(round_ * share), monotonic=monotonic, sensitivity=1
        )
        runs = ("StandardSVT",) if answers else ("Sparse", "StandardSVT")
        yield _Way("StandardSVT of one charge, restarted, optimal composition", one, "laplace", runs)
        yield _Way(_RESTARTED, one, "exponential", runs)


def _target_charging(epsilon: float, delta: float, charges: int) -> Iterator[_Way]:
    if delta == 0:
        return
    each = target_charging_epsilon_each(
        epsilon=epsilon, delta=delta, charges=charges, q=not_prior_q, mean=not_prior_mean
    )
    scale = 1 / Fraction(each)
    runs = ("ConditionalStream", "TargetCharging", "IndividualCharging")
    yield _Way(_CHARGED, NoiseScales(Fraction(0), scale, scale), "laplace", runs)


def _normal(epsilon: float, delta: float, charges: int, queries: int, *, monotonic: bool) -> _Way:
    held, each = gaussian_sparse_vector_deviations(
        epsilon=epsilon, delta=delta, queries=queries, charges=charges, monotonic=monotonic
    )
    scales = NoiseScales(Fraction(held), Fraction(each), Fraction(0))
    return _Way(_NORMAL, scales, "normal", ("GaussianSVT",))


def _in_units(way: _Way, sensitivity: float, queries: int | None, beta: float) -> MechanismNoise:
    scales = way.scales
    threshold, query, answer = (
        float(scale) * sensitivity for scale in (scales.threshold, scales.query, scales.answer)
    )
    return MechanismNoise(
        way.name,
        threshold,
        query,
        answer,
        DEVIATIONS[way.law] * math.hypot(threshold, query),
        DEVIATIONS["laplace"] * answer,
        math.nan if queries is None else reach_of(way.law, threshold, query, beta / queries),
        way.runs,
    )
