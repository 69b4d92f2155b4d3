"""What a question states besides its predictions: a prior, a name, and where it may a tolerance of its own."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reusable_holdout.errors import InputError
from reusable_holdout.guard.kinds import Floats, Integers, Kind, State
from reusable_holdout.metrics import GRID
from reusable_holdout.metrics.containers import as_array, one_column
from reusable_holdout.plan import round_up
from reusable_holdout.slips import percentage

__all__ = [
    "Stated",
    "StatedWithTolerance",
    "Statement",
    "checked_names",
    "checked_prior",
    "checked_priors",
    "listed",
]

_NO_NUMBERS = (str, bytes, bytearray, bool, np.bool_)
_NO_PRIOR = "a prior must be stated, the analyst's own estimate of the score; got none; pass prior=; nothing was asked"
_NO_TOLERANCE = "a question's own tolerance is for policy='guess-and-check'; leave it out; nothing was asked"
_TOLERANCE_GRID = 2**28  # tolerances that differ by less are the same question


class Statement(NamedTuple):
    """What a question states besides its predictions."""

    prior: float  # not a number where the policy has its own
    tolerance: float | None
    unit: int  # what tells it from other questions about the same predictions


class Stated(Kind):
    """A way to ask that has priors."""

    #: Whether another prior about the same predictions is another question.
    by_prior: ClassVar[bool] = True

    def asked(self, prior: object, tolerance: object, metric: str) -> Statement:
        """Check what a question states: InputError without a prior within bounds, or for a tolerance out of place."""
        self.check_given(prior, tolerance)
        stated = checked_prior(prior, self.certificate.lower, self.certificate.upper, metric)
        return Statement(stated, None, self.grid_unit(stated) if self.by_prior else 0)

    def asked_many(
        self, priors: ArrayLike | None, tolerances: ArrayLike | None, count: int, metric: str
    ) -> tuple[Floats, Floats | None, list[int]]:
        """Check what the questions of a batch state, as `asked` does: priors, tolerances, units."""
        self.check_given(priors, tolerances)
        certificate = self.certificate
        stated = checked_priors(priors, count, certificate.lower, certificate.upper, metric)
        return stated, None, self.grid_units(stated).tolist() if self.by_prior else [0] * count

    def check_given(self, prior: object, tolerance: object) -> None:
        """Refuse a tolerance, or several, where none belongs, and a prior that is left out."""
        if tolerance is not None:
            raise InputError(_NO_TOLERANCE)
        if prior is None:
            raise InputError(_NO_PRIOR)

    def series_unit(self, series: object) -> int:
        """Part of a question's name that its series is; InputError if one is named where there are none."""
        if series != "":
            raise InputError(
                f"a series of answers, such as one team's, belongs to a ladder; got {series!r}; leave it out; nothing "
                "was asked"
            )
        return 0

    def grid_units(self, priors: Floats) -> Integers:
        """Priors on the integer grid."""
        unit = (priors - self.certificate.lower) / self.certificate.span
        return np.rint(unit * GRID).astype(np.int64)

    def grid_unit(self, prior: float) -> int:
        """One prior on the integer grid; the same number as `grid_units` gives."""
        return round((prior - self.certificate.lower) / self.certificate.span * GRID)


class StatedWithTolerance(Stated):
    """A way to ask whose questions may state a tolerance of their own; another tolerance is another question."""

    @property
    def least_tolerance(self) -> float:
        """No question may state a tolerance below this, in the metric's unit."""
        return self.certificate.span / _TOLERANCE_GRID

    def asked(self, prior: object, tolerance: object, metric: str) -> Statement:
        """Check prior and tolerance; another tolerance is another question."""
        stated = super().asked(prior, None, metric)
        if tolerance is None:
            return stated
        (limit,) = self._checked([tolerance], 1).tolist()
        return Statement(stated.prior, limit, self._unit(stated.unit, limit))

    def asked_many(
        self, priors: ArrayLike | None, tolerances: ArrayLike | None, count: int, metric: str
    ) -> tuple[Floats, Floats | None, list[int]]:
        """Check priors and tolerances of a batch."""
        stated, _, units = super().asked_many(priors, None, count, metric)
        if tolerances is None:
            return stated, None, units
        limits = self._checked(tolerances, count)
        return stated, limits, [self._unit(*pair) for pair in zip(units, limits.tolist(), strict=True)]

    def _unit(self, unit: int, tolerance: float) -> int:
        return unit + (round(tolerance / self.certificate.span * _TOLERANCE_GRID) << 33)

    def _checked(self, tolerances: object, count: int) -> Floats:
        span = self.certificate.span
        try:
            given = np.asarray(tolerances)
            numbers = all(np.asarray(one).dtype.kind in "fiuO" for one in given.ravel().tolist())
            limits = given.astype(np.float64) if numbers else np.zeros(0)
        except (TypeError, ValueError, OverflowError):
            limits = np.zeros(0)
        if limits.shape != (count,) or not ((limits >= self.least_tolerance) & (limits <= span)).all():
            raise InputError(
                f"tolerances must be {count} numbers in (0, {span:g}], one for each question; got {tolerances!r}; "
                "nothing was asked and nothing was charged"
            )
        return limits

    @abstractmethod
    def can_keep(self, prior: float, tolerance: float, state: State) -> bool:
        """Whether an answer in this state can keep a tolerance, by public numbers."""

    def check_room(self, priors: Floats, tolerances: Floats | None, state: State) -> None:
        """Refuse tolerances that cannot be kept now, before anything is decided; the error names one that can be."""
        if tolerances is None:
            return
        for prior, tolerance in zip(priors.tolist(), tolerances.tolist(), strict=True):
            if not self.can_keep(prior, tolerance, state):
                raise InputError(
                    f"a tolerance must be at least {self._least(prior, tolerance, state):g} at this prior after "
                    f"{state.charges} charges; got {tolerance:g}; nothing was asked and nothing was charged; widen it"
                )

    def _least(self, prior: float, refused: float, state: State) -> float:
        """Tolerance that can be kept, and hardly larger than the least one."""
        kept = 2.0 * self.certificate.span
        while kept - refused > 1e-4 * kept:
            middle = (refused + kept) / 2.0
            if self.can_keep(prior, middle, state):
                kept = middle
            else:
                refused = middle
        return round_up(kept)


# ---- checked


def checked_prior(prior: object, lower: float, upper: float, what: str) -> float:
    """One prior within the bounds of what it estimates; InputError if it is something else."""
    if type(prior) is float and lower <= prior <= upper:
        return prior
    try:
        number = float(prior)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if (
        isinstance(prior, _NO_NUMBERS)
        or np.asarray(prior).dtype.kind not in "fiuO"
        or not lower <= number <= upper
    ):
        raise InputError(
            f"a prior must be a number in [{lower:g}, {upper:g}], the range of {what}; got {prior!r}"
            f"{percentage(number, most=upper)}; nothing was asked and nothing was charged"
        )
    return number


def checked_priors(priors: Any, count: int, lower: float, upper: float, what: str) -> Floats:
    """Priors of a batch, shape (count,); InputError if the shape is another or one of them is out of bounds."""
    given = one_column(as_array(priors, what="priors"))
    if given.shape != (count,):
        raise InputError(f"priors must have shape ({count},), one for each question; got {given.shape}")
    if given.dtype.kind not in "fiu":
        raise InputError(f"priors must be numbers; got dtype {given.dtype}; pass one float for each question")
    stated = given.astype(np.float64)
    wrong = np.flatnonzero(~((stated >= lower) & (stated <= upper)))
    if len(wrong):
        checked_prior(float(stated[wrong[0]]), lower, upper, what)
    return stated


def checked_names(names: Sequence[str] | None, count: int) -> list[str]:
    """Names of a batch; empty ones by default; InputError if they are not text, or not as many as questions."""
    if names is None:
        return [""] * count
    if names == [""]:
        return [""]
    labels = list(names) if isinstance(names, Iterable) else [names]
    if (
        isinstance(names, str)
        or len(labels) != count
        or not all(isinstance(label, str) and _is_unicode(label) for label in labels)
    ):
        raise InputError(
            f"names must be text, one for each question; {count} asked, {len(labels)} came or one is no text"
        )
    return labels


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def listed(several: Any, what: str) -> list[Any]:
    """A list of at least one; InputError if it is none."""
    if isinstance(several, list | tuple) and several:
        return list(several)
    raise InputError(
        f"{what} must be a list of at least one; got {type(several).__name__}; nothing was asked"
    )
