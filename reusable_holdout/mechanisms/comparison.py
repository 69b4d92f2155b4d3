"""A comparison of the noise of all sparse vector streams at the same privacy guarantee, and the best of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.mechanisms.accounting.target_charging import not_prior_epsilon_each
from reusable_holdout.mechanisms.sparse_vector.reach import DEVIATIONS, Law, reach_of
from reusable_holdout.mechanisms.sparse_vector.real_stream import YesNoStream, check_tail
from reusable_holdout.mechanisms.sparse_vector.scales import (
    Composition,
    check_privacy,
    epsilon_of_a_round,
    numeric_sparse_scales,
    sparse_scales,
    standard_svt_scales,
)
from reusable_holdout.mechanisms.sparse_vector.streams import ConditionalStream, Sparse, StandardSVT
from reusable_holdout.noise.sparse_vector import NoiseScales

_ANSWERS = Fraction(1, 9)  # share of each budget for the released values, as in NumericSparse
_ONE_STREAM = "StandardSVT, exponential noise"
_RESTARTED = "StandardSVT of one charge, restarted, exponential noise"
_CHARGED = "target charging"


@dataclass(frozen=True, slots=True)
class MechanismNoise:
    """The noise of one mechanism, in the query's unit.

    Attributes
    ----------
    mechanism : str
        The mechanism's class, and the composition theorem for its rounds.
    threshold, query, answer : float
        Noise scales. At a threshold scale of 0 the threshold has no noise; at an answer scale of 0 no value is
        released.
    comparison_sd : float
        Standard deviation of the noise of one comparison: the query's noise minus the threshold's noise.
    answer_sd : float
        Standard deviation of a released value's noise.
    reach : float
        With probability at least ``1 - beta`` no comparison's noise is farther than this from its mean; NaN if the
        number of queries was not given.
    runs : tuple of str
        Names of the classes and functions that have this noise; `TargetCharging` has it with ``mean=not_prior_mean``.
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
    """One row of the comparison, at sensitivity 1."""

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
    """Compare the noise of all mechanisms that answer a stream of queries, at one privacy guarantee.

    The mechanism with the least noise comes first. Each mechanism is (epsilon, delta)-differentially private for any
    number of queries, of which `charges` are above the threshold.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole stream; epsilon finite and > 0, delta in [0, 1).
    charges : int
        Number of queries above the threshold; at least 1.
    queries : int, optional
        Number of queries; at least 1. If it is given, rows are ordered by `reach`, otherwise by `comparison_sd`.
    beta : float
        Probability that noise may exceed `reach`, in (0, 1).
    sensitivity : float
        Largest change of one query; finite, > 0.
    answers : bool
        True if the values of the queries above the threshold are released, too. A ninth of epsilon then pays for them,
        except under target charging, which releases the noisy value that it compared.
    monotonic : bool
        True if a change of the data moves all queries in the same direction.

    Returns
    -------
    tuple of MechanismNoise
        One row per mechanism; `pandas.DataFrame` makes a table of them. Mechanisms that need a delta are left out if
        delta is 0. Advanced composition is left out where its theorem does not hold.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    One `StandardSVT` stream has noise that grows with the number of charges. Restarting it after each charge, with
    optimal composition, has noise that grows with the square root of that number. So the single stream is better only
    for few charges. `retraversal` has the noise of `StandardSVT`, and `AboveThreshold` that of `Sparse` with one
    charge. `TargetCharging` and `IndividualCharging` have the noise of target charging.

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
) -> YesNoStream:
    """Make the sparse vector stream with the least noise for a given privacy guarantee.

    All its answers together are (epsilon, delta)-differentially private. It halts after `charges` queries above the
    threshold.

    Parameters
    ----------
    threshold, seed
        As for `Sparse`.
    charges, epsilon, delta, queries, beta, monotonic, sensitivity
        As for `compare_mechanisms`. The stream is the mechanism in the first row of that comparison, which depends on
        these parameters alone.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The result is a `StandardSVT`, a `Sparse` or a `ConditionalStream`. The first two have exponential noise, because
    Laplace noise of the same scales has twice the variance. They divide epsilon in the ratio with the least noise.

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
    """Yield the rows of Sparse, or of NumericSparse if values are released."""
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
        except InputError:  # outside the range of the theorem
            continue
        yield _Way(f"{name}, {composition} composition", scales, "laplace", (name,))


def _standard(
    epsilon: float, delta: float, charges: int, *, answers: bool, monotonic: bool
) -> Iterator[_Way]:
    """Yield the rows of StandardSVT: one stream, and restarted streams of one charge."""
    share = _ANSWERS if answers else Fraction(0)
    values = float(epsilon * share)
    whole = standard_svt_scales(
        charges=charges, epsilon=epsilon, answers=values, monotonic=monotonic, sensitivity=1
    )
    if answers:  # each value is a separate Laplace release, so optimal composition applies
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
    """Yield the row of target charging, which needs a delta."""
    if delta == 0:
        return
    scale = 1 / Fraction(not_prior_epsilon_each(epsilon=epsilon, delta=delta, charges=charges))
    runs = ("ConditionalStream", "TargetCharging", "IndividualCharging")
    yield _Way(_CHARGED, NoiseScales(Fraction(0), scale, scale), "laplace", runs)


def _in_units(way: _Way, sensitivity: float, queries: int | None, beta: float) -> MechanismNoise:
    """Convert a row at sensitivity 1 to the query's unit."""
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
