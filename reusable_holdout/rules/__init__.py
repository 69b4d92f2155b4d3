"""The rules: what picks the outcome of a check or a gate from the rows.

A plan fixes its rule once, by metric and noise. A rule has a public half, which says how far a question's outcomes
reach and is all that verification uses, and a private half, which measures the rows outside the ledger's lock and
compares inside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import Certificate, Interval
from reusable_holdout.metrics import GRID, BoundMetric
from reusable_holdout.ways.told import Told

__all__ = ["Compared", "Floats", "Integers", "Rule", "difference", "score_of", "terms_of"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class Compared(NamedTuple):
    """What the sparse vector compares, of each of several questions; on the grid, each of shape (questions,)."""

    values: Integers
    against: Integers
    limits: Integers


class Rule(ABC):
    """Rule of checks, or of gates, by the certificate of their plan.

    Parameters
    ----------
    certificate : Certificate
    gate : bool
        Whether it is that of gates: they look at one side.
    """

    #: Whether the rows of a question are measured, and not its score alone.
    by_rows: ClassVar[bool]

    def __init__(self, certificate: Certificate, *, gate: bool = False) -> None:
        self.certificate, self.gate = certificate, gate

    # ---- public

    @property
    def takes_tolerances(self) -> bool:
        """True if a question may state a tolerance of its own: not where a threshold stands fast."""
        return self.certificate.decides != "distance" or self.certificate.fixed_threshold is None

    @abstractmethod
    def units(self, priors: Floats, charges: int, nats: float, tolerances: Floats | None) -> Floats:
        """Return the unit of each question's outcomes: the deviation that is charged, or half the tolerance."""

    @abstractmethod
    def unit(self, prior: float, charges: int, nats: float, tolerance: float | None) -> float:
        """Return the unit of one question's outcomes, as `units` does."""

    @abstractmethod
    def keeps(self, prior: float, tolerance: float, length: float) -> bool:
        """Return True if an answer at a description length can keep a tolerance."""

    @abstractmethod
    def agreed(self, priors: Floats | float, units: Floats | float, length: float) -> Interval:
        """Return the intervals of questions that were not charged, of checks."""

    @abstractmethod
    def accepted(self, prior: float, unit: float, length: float) -> Interval:
        """Return the interval of what a gate accepted."""

    @abstractmethod
    def rejected(self, prior: float, unit: float, length: float) -> Interval:
        """Return the interval of what a gate did not accept."""

    @abstractmethod
    def cost(self, told: Told) -> float | None:
        """Return the nats of a charge of a check, or of its failure; None if there is no such outcome."""

    @abstractmethod
    def value(self, place: int, prior: float, unit: float) -> float:
        """Return the value that is told with a charge."""

    @abstractmethod
    def charged(self, place: int, prior: float, unit: float, length: float) -> Interval:
        """Return the interval of the population value after a charge."""

    # ---- private

    @property
    def direction(self) -> int:
        """Sign of what is charged, of what is compared; 0 for both."""
        return 1

    @abstractmethod
    def measured(self, bound: BoundMetric, query: NDArray[Any]) -> Integers:
        """Return what is measured of one question before anything is stated; shape (numbers,)."""

    def measured_many(self, bound: BoundMetric, prepared: NDArray[Any]) -> Integers:
        """Return the same of several questions; shape (questions, numbers)."""
        return np.stack([self.measured(bound, query) for query in prepared])

    def weighed(
        self, bound: BoundMetric, measured: Integers, priors: Floats, tolerances: Floats | None
    ) -> Integers:
        """Return what decisions are made on, by what was measured and stated; shape (questions, numbers)."""
        return measured

    @abstractmethod
    def compared(
        self, weighed: Integers, named: Integers, priors: Floats, units: Floats, length: float
    ) -> Compared:
        """Return what is compared, and with what; `named` are the priors on the grid."""

    @abstractmethod
    def score(self, weighed: Integers) -> int:
        """Return the score, on the grid, of what one question is decided on."""

    @abstractmethod
    def place(self, weighed: Integers, noisy: float, prior: float, unit: float, length: float) -> Told:
        """Return the charge of a check whose noisy value is this."""


# ---- oriented so that greater is better


def score_of(bound: BoundMetric, prepared: NDArray[Any]) -> Integers:
    """Return the score of each question on the grid; raises ModelError if a metric of the owner's own fails."""
    scores = bound.score(prepared)
    return scores if bound.metric.greater_is_better else GRID - scores


def terms_of(bound: BoundMetric, query: NDArray[Any]) -> Integers:
    """Return the score of one question, and the terms of its rows; shape (1 + rows,)."""
    terms = bound.row_terms(query)
    found = np.concatenate([[bound.score_of_terms(terms)], terms])
    return found if bound.metric.greater_is_better else GRID - found


def difference(new: Integers, old: Integers) -> Integers:
    """Return half of what is measured of one model less what is of another, on the grid."""
    halved: Integers = (new - old + GRID) >> 1
    return halved
