"""Labels whose set is private, in the form in which predictions are compared with them."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import NDArray

from reusable_holdout.metrics.answers import compared
from reusable_holdout.metrics.containers import check_class_labels
from reusable_holdout.metrics.targets import HoldsLabels, read_labels

__all__ = ["AnswerTargets"]


class AnswerTargets(HoldsLabels):
    """Labels of a private set, one for each row, in the form in which predictions are compared with them."""

    outputs = 1

    def __init__(self, y: object) -> None:
        labels, self.kind, places = read_labels(y)
        check_class_labels(labels)
        codes = compared(labels, self.kind, what="the labels")
        self._hold(codes if places is None else codes[places])

    def _hold(self, codes: NDArray[Any]) -> None:
        codes.flags.writeable = False
        self.codes, self.rows = codes, len(codes)

    def part(self, chosen: NDArray[Any]) -> Self:
        """Return the labels of some rows."""
        part = object.__new__(type(self))
        part.kind = self.kind
        part._hold(self.codes[chosen])
        return part
