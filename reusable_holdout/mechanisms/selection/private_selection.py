"""Private selection: run a private algorithm a random number of times and publish the best run."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.repetitions import Repetitions
from reusable_holdout.mechanisms.samplers.random_words import Digits, RandomWords

_DIGITS_SLACK = 60  # decimal digits that may be lost to a shape or a logarithm near 0, and to many runs


@dataclass(frozen=True, slots=True)
class PrivateSelection:
    """The best run of a private selection.

    Attributes
    ----------
    index : int
        Index of the candidate that was run.
    found : Any
        The result of the run, such as a model.
    score : float
        The score of the run.
    """

    index: int
    found: Any
    score: float


def private_selection(
    candidates: Sequence[Any],
    algorithm: Callable[[Any, float], tuple[Any, float]],
    *,
    repetitions: Repetitions,
    epsilon: float,
    delta: float = 0.0,
    seed: int | None = None,
) -> PrivateSelection | None:
    """Run a private algorithm a random number of times, each for a random candidate, and publish the best run.

    The published run is (epsilon, delta)-differentially private, however many candidates and runs there are.

    Parameters
    ----------
    candidates : sequence
        Public inputs of the algorithm, such as settings of a model; at least one. Each run takes one at random.
    algorithm : Callable[[candidate, float], (found, score)]
        Takes a candidate and an epsilon ``e0``, runs on the private data with fresh randomness, and returns its result
        (such as a model) and a score. Both together must be ``e0``-differentially private, or (e0, d0)-private with
        ``d0`` the `Repetitions.delta_each` of delta. Exceptions are passed on, and the guarantee does not cover them.
    repetitions : Repetitions
        Law of the number of runs.
    epsilon, delta : float
        Privacy parameters of the selection; epsilon finite and above 0, delta in [0, 1).
    seed : int, optional
        Seed for a reproducible number of runs and reproducible candidates, which protect nobody. By default both are
        unpredictable.

    Returns
    -------
    PrivateSelection or None
        The run with the largest score; NaN is the worst score. None if there was no run, which only the Poisson law
        allows.

    Raises
    ------
    InputError
        If a parameter is out of range; then nothing was run.

    Notes
    -----
    ``e0`` is `Repetitions.epsilon_each` of epsilon: about a half of epsilon for the logarithmic distribution, and a
    third for the geometric one. The number of runs and their duration must stay secret. An algorithm whose privacy is
    accounted for in another way may ignore ``e0``; `Repetitions.renyi` computes the cost of its selection.

    References
    ----------
    .. [1] Liu and Talwar (2019), "Private selection from private candidates".
    .. [2] Papernot and Steinke (2022), "Hyperparameter tuning with Renyi differential privacy".

    Examples
    --------
    >>> from reusable_holdout.mechanisms.accounting import Repetitions
    >>> def fit(degree, epsilon):  # private in earnest: this one reads no data
    ...     return f"model of degree {degree}", -abs(degree - 2.0)
    >>> private_selection([1, 2, 3], fit, repetitions=Repetitions(mean=20), epsilon=1.0, seed=5).found
    'model of degree 2'
    """
    if not len(candidates):
        raise InputError("a selection needs at least one candidate; got none")
    each = repetitions.epsilon_each(epsilon)
    repetitions.delta_each(delta)  # raises InputError if delta is out of range
    words = RandomWords(seed)
    best: PrivateSelection | None = None
    for _ in range(draw_repetitions(repetitions, words)):
        index = words.below(len(candidates))
        found, score = algorithm(candidates[index], each)
        worth = -math.inf if math.isnan(score) else float(score)
        if best is None or worth > best.score:  # the first of equal runs is as good as a random one
            best = PrivateSelection(index, found, worth)
    return best


def draw_repetitions(law: Repetitions, words: RandomWords) -> int:
    """Draw a number of runs exactly, by inverting the distribution function at a uniform number drawn digit by digit.

    Parameters
    ----------
    law : Repetitions
        Distribution of the number of runs; the floats that are its parameters stand for their exact values.
    words : RandomWords
        Source of the bits.

    Returns
    -------
    int
        The number of runs.
    """
    number = Digits(words)
    while True:
        found = _passed(law, number)
        if found is not None:
            return found
        number.refine()


def _passed(law: Repetitions, number: Digits) -> int | None:
    """Find the smallest run count at which the distribution function exceeds `number`; None if digits are missing."""
    precision = number.bits + _DIGITS_SLACK
    context = decimal.Context(prec=precision, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    with decimal.localcontext(context):
        # The precision holds all digits of a binary fraction.
        low, high = (decimal.Decimal(number.known + end) / decimal.Decimal(2**number.bits) for end in (0, 1))
        total, error = decimal.Decimal(0), (high - low) * (high - low)  # far above the error of the digits
        for runs, probability in _law(law):
            total += probability
            if total - error >= high:
                return runs
            if total + error > low:
                return None
    return None


def _law(law: Repetitions) -> Iterator[tuple[int, decimal.Decimal]]:
    """Yield the probabilities of 0 or 1, 2, 3, ... runs, each to nearly the context's precision."""
    if law.poisson:
        mean = decimal.Decimal(law.mean)
        runs, probability = 0, (-mean).exp()
        while True:
            yield runs, probability
            runs += 1
            probability = probability * mean / runs
    stop, shape = decimal.Decimal(law.stop), decimal.Decimal(law.shape)
    runs, rest = 1, 1 - stop
    if not rest:
        probability = stop
    elif shape:
        probability = shape * rest / ((-shape * stop.ln()).exp() - 1)
    else:
        probability = rest / -stop.ln()
    while True:
        yield runs, probability
        probability = probability * rest * (runs + shape) / (runs + 1)
        runs += 1
