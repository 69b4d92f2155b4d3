"""The joint exponential mechanism: the best few chosen as one sequence, not one after another.

A sequence of ``k`` candidates is as bad as its worst place: ``v(s) = max_i (score of the i-th best - score of s_i)``.
The mechanism draws a sequence with probability proportional to ``exp(-r v(s))``. There are about ``n**k`` of them, but
``exp(-r v)`` is the chance that a geometric variable reaches ``v``. So draw a *reach* ``t`` with probability
proportional to ``N(t) exp(-r t)``, where ``N(t)`` counts the sequences with ``v(s) <= t``, and then one of these,
uniformly. With ``c_i(t)`` candidates at most ``t`` behind the i-th best, ``N(t) = c_1 (c_2 - 1) ... (c_k - k + 1)``,
for these sets grow with ``i``: place after place is drawn among those that are left.

The reach is drawn by rejection: cells of width ``1/r`` or less, in which ``N`` grows by a factor of e at most, hold a
step function above ``N(t) exp(-r t)``. Their weights are integers that are certified to be large enough, and exact
coins keep what the step function has too much. No rounding comes between the bits and the choice.
"""

from __future__ import annotations

import bisect
import decimal
import functools
import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.digits import Digits
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.exponential import candidates_on_grid, check_rounds, selection_rate

__all__ = ["joint_exponential_top", "joint_rate"]

_TAIL = 50.0  # nats by which all that lies beyond the cells is rarer than the likeliest
_RISE = 1.0  # nats by which the number of sequences may grow within a cell
_DIGITS_SLACK = 40  # decimal digits of an area that its exponent may lose, and some that are not believed
_DOUBT = 2.0**-44  # of each nat of an area in floating-point numbers: sums of logs err by a few times 2**-53
_NATS_SLACK = 200  # nats of an area beside those of the number of sequences
_CHUNK = 256  # reaches whose sequences are counted at a time
_WEIGHTS_LOG2 = 61  # the weights' sum, so that it fits a uniform integer
_SMALLEST_RATE = Fraction(1, 2**900)  # a smaller one has no exact float


def joint_exponential_top(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Choose several candidates at once, as one sequence by the exponential mechanism.

    The sequence is (epsilon, 0)-differentially private. Where the best are ahead of the rest, or many are chosen, it
    errs less than any way to choose one after another at delta 0; `compare_selections` says from where on.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better.
    count : int
        Candidates to choose, ``k``; at least 1, at most n.
    epsilon : float
        Privacy parameter of the whole sequence; finite, > 0.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall, as for counts when a row is added
        or removed. It doubles the exponent; if it is broken, the sequence is (2 epsilon, 0)-differentially private.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices of the chosen candidates; the i-th is meant to be the i-th best.

    Raises
    ------
    InputError
        If a parameter is out of range, or a score is NaN or beyond 2**60 grid steps; the message tells no score.

    Notes
    -----
    Probability proportional to ``exp(-r max_i (q_(i) - q(s_i)))`` with ``q_(i)`` the i-th largest score. Where all
    scores move the same way, a difference ``q_(i) - q(s_i)`` moves by at most ``D``, up for one sequence and down for
    another, so ``r = e/(2D)``; otherwise by at most ``2D``, so ``r = e/(4D)``. A single candidate is the exponential
    mechanism, whose exponent is twice that: then ``q_(1)`` is common to all.

    Time grows as ``n log n + k**2 log(n)**2``, where [1]_ has ``n k log k``: only some ``2 ln N`` values of the reach
    are looked at, and none of the ``n k`` differences.

    All of the best ``k`` are found with probability at least ``1 - b`` if each is ahead of every other candidate by
    more than ``ln(C(n, k) / b) / r``. Scores are rounded to a grid of ``D / 2**16`` or finer, and ``D`` is rounded up
    to it.

    References
    ----------
    .. [1] Gillenwater, Joseph, Munoz Medina and Ribero (2022), "A joint exponential mechanism for differentially
       private top-k".

    Examples
    --------
    >>> joint_exponential_top([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0).tolist()
    [1, 3]
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    check_rounds(count, len(steps))
    rate = joint_rate(count, epsilon=epsilon, sensitivity=grid.sensitivity, monotonic=monotonic)
    words = RandomWords(seed)
    order = np.argsort(-steps, kind="stable")
    sequences = _Sequences(steps.max() - steps[order], count)
    choices = sequences.choices(_draw_reach(_Cells.of(sequences, rate), sequences, rate, words))
    return _drawn_sequence(order, choices, words)


def joint_rate(count: int, *, epsilon: float, sensitivity: int, monotonic: bool) -> Fraction:
    """Weight of a step in the exponent: that of the exponential mechanism for one candidate, otherwise a half of it.

    Parameters
    ----------
    count : int
        Candidates chosen at once.
    epsilon : float
        Of the sequence; finite, > 0.
    sensitivity : int
        Grid units.
    monotonic : bool
        Whether between neighbours either no score falls or no score rises.

    Raises
    ------
    InputError
        If epsilon is too small to be drawn with.
    """
    rate = selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic)
    if rate < _SMALLEST_RATE:
        raise InputError(f"the joint exponential mechanism needs an epsilon above 1e-250; got {epsilon}")
    return rate if count == 1 else rate / 2


class _Sequences:
    """How many sequences there are within a reach.

    `behind` has shape (n,): steps behind the best, rising; `span` is the largest, from which on nothing changes.
    """

    def __init__(self, behind: npt.NDArray[np.int64], count: int) -> None:
        self._behind, self._count = behind, count
        self.span = int(behind[-1])

    def choices(self, reach: int) -> list[int]:
        """Candidates at most `reach` behind the first, second, ... best, less those that are taken by then."""
        ends = np.searchsorted(self._behind, self._behind[: self._count] + min(reach, self.span), "right")
        return [int(end) - place for place, end in enumerate(ends.tolist())]

    def number(self, reach: int) -> int:
        """Sequences within a reach, exactly."""
        return math.prod(self.choices(reach))

    def logs(self, reaches: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Logs of the numbers within many reaches."""
        found = np.empty(len(reaches))
        for first in range(0, len(reaches), _CHUNK):
            some = slice(first, first + _CHUNK)
            ends = self._behind[: self._count] + np.minimum(reaches[some], self.span)[:, None]
            left = np.searchsorted(self._behind, ends, "right") - np.arange(self._count)
            found[some] = np.log(left).sum(axis=1)
        return found


class _Cells(NamedTuple):
    """A step function above ``N(t) exp(-rate t)``; the last cell has no end.

    Attributes
    ----------
    starts, widths, ends : list of int
        First reach of each cell, how many reaches, and where it has most sequences. Of the last cell the width is the
        period of its tail.
    shift, scale : float
        A weight is at least the area times ``scale exp(-shift)``, but for a factor of ``1 + doubt``.
    doubt : float
        Bound of the relative error of an area in floating-point numbers.
    weights : list of int
        With which cells are drawn.
    """

    starts: list[int]
    widths: list[int]
    ends: list[int]
    shift: float
    scale: float
    doubt: float
    weights: list[int]

    @classmethod
    def of(cls, sequences: _Sequences, rate: Fraction) -> _Cells:
        """Lay out the cells."""
        most, step = float(sequences.logs(np.array([sequences.span]))[0]), float(rate)
        width = max(1, min(math.floor(1 / rate), sequences.span))
        end = min(math.ceil((most + _TAIL) / float(rate * width)) * width, sequences.span)
        starts, ends, high = _split(sequences, np.append(np.arange(0, end, width), end))
        period = width if end < sequences.span else 1
        widths = np.append(ends - starts, period)
        with np.errstate(over="ignore"):  # an infinite exponent is a cell that is never kept
            logs = np.append(high, most) + np.log(widths) - step * np.append(starts, end)
        logs[-1] -= math.log(-math.expm1(-step * period))
        shift = float(logs.max())
        relative = np.exp(logs - shift)
        scale = 2.0**_WEIGHTS_LOG2 / float(relative.sum())
        return cls(
            [*starts.tolist(), end],
            widths.tolist(),
            [*(ends - 1).tolist(), sequences.span],
            shift,
            scale,
            (most + _NATS_SLACK) * _DOUBT,
            (np.floor(relative * scale).astype(np.int64) + 1).tolist(),
        )


def _split(
    sequences: _Sequences, edges: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Halve cells until the number of sequences rises by little in each: their starts, ends and largest logs."""
    starts, ends = edges[:-1], edges[1:]
    low, high = sequences.logs(starts), sequences.logs(ends - 1)
    flat: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]] = []
    while True:
        steep = high - low > _RISE  # a single reach has no rise
        flat.append((starts[~steep], ends[~steep], high[~steep]))
        if not steep.any():
            break
        middles = starts[steep] + (ends[steep] - starts[steep]) // 2
        starts, ends = np.append(starts[steep], middles), np.append(middles, ends[steep])
        low = np.append(low[steep], sequences.logs(middles))
        high = np.append(sequences.logs(middles - 1), high[steep])
    first, last, most = zip(*flat, strict=True)
    return np.concatenate(first), np.concatenate(last), np.concatenate(most)


def _odds(
    cells: _Cells, sequences: _Sequences, rate: Fraction, cell: int, bits: int
) -> tuple[Fraction, Fraction]:
    """Bounds of a cell's area over its weight, less the doubt: the chance to keep a cell that was drawn."""
    weight, doubt = cells.weights[cell], Fraction(cells.doubt)
    exponent, period = rate * cells.starts[cell] + Fraction(cells.shift), rate * cells.widths[cell]
    # 1 less exp loses the digits of 1 / period.
    precision = len(str(int(2**bits / min(period, Fraction(1))))) + _DIGITS_SLACK
    with decimal.localcontext(_context(precision)):
        area = _power(-exponent) * sequences.number(cells.ends[cell]) * cells.widths[cell]
        if cell == len(cells.weights) - 1:
            area = area / (1 - _power(-period))
    error = Fraction(1, 2**bits)
    if area.adjusted() < -bits:  # a number that cannot be written down as a fraction
        return Fraction(0), error
    value = Fraction(area) * Fraction(cells.scale) / (weight * (1 + doubt))
    return value * (1 - error), value * (1 + error)


def _context(precision: int) -> decimal.Context:
    """A context of our own: the caller's may round or trap otherwise, and numbers of sequences are large."""
    return decimal.Context(
        prec=precision, rounding=decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX
    )


def _power(exponent: Fraction) -> decimal.Decimal:
    return (decimal.Decimal(exponent.numerator) / decimal.Decimal(exponent.denominator)).exp()


def _draw_reach(cells: _Cells, sequences: _Sequences, rate: Fraction, words: RandomWords) -> int:
    """Draw a reach with probability proportional to ``N(t) exp(-rate t)``, t = 0, 1, 2, ..."""
    sums = list(itertools.accumulate(cells.weights))
    while True:
        cell = bisect.bisect_right(sums, words.below(sums[-1]))
        if not Digits(words).below(functools.partial(_odds, cells, sequences, rate, cell)):
            continue
        offset = words.below(cells.widths[cell])
        if not words.decay(rate * offset):
            continue
        reach = cells.starts[cell] + offset
        if cell == len(sums) - 1:
            if cells.starts[cell] == sequences.span:  # from here on every reach has all sequences
                return reach
            while words.decay(rate * cells.widths[cell]):
                reach += cells.widths[cell]
        if words.share(sequences.number(reach), sequences.number(cells.ends[cell])):
            return reach


def _drawn_sequence(
    ranked: npt.NDArray[np.int64], choices: list[int], words: RandomWords
) -> npt.NDArray[np.int64]:
    """Draw a sequence uniformly: the i-th among the first ``i + choices[i]``, less those that are taken."""
    left = ranked.copy()
    for taken, some in enumerate(choices):  # those that are taken are moved to the front
        other = taken + words.below(some)
        left[[taken, other]] = left[[other, taken]]
    return left[: len(choices)]
