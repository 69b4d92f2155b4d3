"""Codes: lists of outcomes with public weights. An outcome costs minus the logarithm of its weight.

Cells are intervals of deviations from a prior, in a public unit. They grow geometrically outwards, so that no outcome
costs more than a cap that is known before anything is asked. Each code has an outcome for a model or metric that fails
on the holdout.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from reusable_holdout.errors import InputError


class Cell(NamedTuple):
    """The range of deviations of one outcome, in units of the code: `near` to `far` on one side of the prior.

    Attributes
    ----------
    side : {1, -1, 0}
        1 for the overfitting side (holdout worse than the prior), -1 for the other, 0 for both, around the prior.
    near, far : float
        At least 0; `far` may be infinite.
    weight : float
    """

    side: int
    near: float
    far: float
    weight: float


class _Failing:
    """A code of outcomes with one outcome for failures."""

    failed: float

    @property
    @abstractmethod
    def nats(self) -> tuple[float, ...]:
        """Costs of the other outcomes, in nats."""

    @cached_property
    def failure_nats(self) -> float:
        """The cost of a failure."""
        return -math.log(self.failed)

    @cached_property
    def worst(self) -> float:
        """The cost of the most expensive outcome."""
        return max(*self.nats, self.failure_nats)


@dataclass(frozen=True)
class CellCode(_Failing):
    """Weights of the outcomes of one kind of question; they sum to one.

    Parameters
    ----------
    cells : tuple of Cell
        Cells in order, from the overfitting side's farthest to the other side's farthest; they hold all deviations.
    failed : float
        Weight of a failure.

    Examples
    --------
    >>> code = CellCode((Cell(1, 0.0, 1.0, 0.5), Cell(1, 1.0, math.inf, 0.4)), failed=0.1)
    >>> round(code.worst, 2), code.place(1.4)
    (2.3, 1)
    """

    cells: tuple[Cell, ...]
    failed: float

    @cached_property
    def nats(self) -> tuple[float, ...]:
        """The cost of each cell."""
        return tuple(-math.log(cell.weight) for cell in self.cells)

    def place(self, deviation: float) -> int:
        """Return the index of the cell that holds a deviation, in units, positive on the overfitting side.

        The mechanism's noise can move a deviation below every cell of its side; it is then in the nearest cell.
        """
        side, distance = (1, deviation) if deviation >= 0 else (-1, -deviation)
        each = enumerate(self.cells)
        own = [(cell.near, place) for place, cell in each if cell.side in (side, 0) and distance < cell.far]
        if not own:
            raise InputError(f"no cell holds a deviation of {deviation}")
        return min(own)[1]


class Span(NamedTuple):
    """An interval around a prior, in units of half a tolerance; values better than the prior are positive."""

    low: float
    high: float
    told: float  # the value that is released with it; not the middle of an open interval, which would flatter
    weight: float


@dataclass(frozen=True)
class SpanCode(_Failing):
    """Weights of the intervals that may hold a confidence set; with a failure's they sum to at most one.

    Parameters
    ----------
    spans : tuple of Span
        The first interval that holds the whole set is the outcome; the last interval holds every set.
    failed : float
    """

    spans: tuple[Span, ...]
    failed: float

    @cached_property
    def nats(self) -> tuple[float, ...]:
        """The cost of each interval."""
        return tuple(-math.log(span.weight) for span in self.spans)


def choice_nats(rank: int, candidates: int) -> float:
    """Return the cost of naming the winner of a choice by the rank of its prior among the candidates.

    Parameters
    ----------
    rank : int
        Rank of the winner's prior, from 1, the best.
    candidates : int
        Number of candidates, at least `rank`.

    Notes
    -----
    Half of the weight is divided as ``1/(r (r + 1))``, half evenly. The first half has ``1/(m + 1)`` over, for m ranks.
    """
    if not 1 <= rank <= candidates:
        raise InputError(f"a rank lies in [1, candidates]; got rank {rank} of {candidates} candidates")
    return _nats_of_rank(rank, candidates)


def worst_choice_nats(candidates: int) -> float:
    """Return the cost of the most expensive winner."""
    return choice_nats(candidates, candidates)


def _nats_of_rank(rank: int, count: int) -> float:
    """Return the cost of rank `rank` of `count` outcomes; half is divided as ``1/(r (r + 1))``, half evenly."""
    return -math.log(0.5 / (rank * (rank + 1)) + 0.5 / count)


@dataclass(frozen=True)
class FactorCode:
    """Weights of the cells of a ratio: a positive number of the rows, over its guess; the weights sum to at most one.

    Parameters
    ----------
    below, above : int
        Cells on each side of the middle one; they grow geometrically, and the last one above is open.
    first, growth : float
        Constants of the edges: the log ratio of the k-th edge to the guess is ``e_k = first k + growth k^2``.

    Notes
    -----
    The middle cell reaches from ``exp(-e_1)`` to ``exp(e_1)``, the k-th above it from ``exp(e_k)`` to
    ``exp(e_(k + 1))``, and below it likewise. Half of the weight is divided among cells in order of distance,
    ``1/(r (r + 1))`` of it to the r-th; the other half is divided evenly.

    Examples
    --------
    >>> code = FactorCode(below=48, above=15, first=0.04, growth=0.012)
    >>> round(code.least(code.place(0.97)), 2), round(code.nats(code.place(0.97)), 2)
    (0.95, 1.36)
    """

    below: int
    above: int
    first: float
    growth: float

    @property
    def worst(self) -> float:
        """The cost of the most expensive cell."""
        return max(self.nats(place) for place in range(-self.below, self.above + 1))

    def place(self, factor: float) -> int:
        """Return the cell of a factor: 0 is the middle one, positive numbers lie above it."""
        exponent = math.log(factor)
        edges = [self._edge(k) for k in range(1, self.below + 2)]
        if -exponent >= edges[-1]:
            raise InputError(f"no cell holds a factor of {factor}")
        above = sum(self._edge(k) <= exponent for k in range(1, self.above + 1))
        return above - sum(edge <= -exponent for edge in edges)

    def least(self, place: int) -> float:
        """Return the lower end of a cell."""
        self._check(place)
        return math.exp(self._edge(place)) if place > 0 else math.exp(-self._edge(1 - place))

    def nats(self, place: int) -> float:
        """Return the cost of a cell, in nats."""
        self._check(place)
        rank = 2 * place + 1 if place >= 0 else -2 * place
        return _nats_of_rank(rank, self.below + 1 + self.above)

    def are_told_for(self, nats: float) -> bool:
        """Return True if a cost can be the price of no cell, one or two cells, or is at least that of three cells."""
        each = [0.0, *(self.nats(place) for place in range(-self.below, self.above + 1))]
        sums = (one + other for one in each for other in each)
        return nats >= 3.0 * self.nats(0) or any(abs(nats - one) <= 1e-9 for one in sums)

    def _check(self, place: int) -> None:
        if not -self.below <= place <= self.above:
            raise InputError(f"a cell lies in [{-self.below}, {self.above}]; got {place}")

    def _edge(self, k: int) -> float:
        return self.first * k + self.growth * k * k
