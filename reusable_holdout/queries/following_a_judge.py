"""How far to follow a judge, by rows that people and judge have both scored and that are not the holdout's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.containers import as_floats

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["JudgePower", "judge_power"]

_SURELY = 2.0  # standard errors from 0
_LEAST_ROWS = 10
_LITTLE = 1.05


class JudgePower(NamedTuple):
    """What a judge's scores of more rows are worth.

    Attributes
    ----------
    power : float
        How far to follow it, in [0, 1], for :func:`score_with_judge`; 0 if it does not help.
    worth : float
        As how many labels each label counts then: intervals narrow like one over its root. 1 if it does not help.
    correlation : float
        Of the judge's scores with people's.
    spread : float
        Standard deviation of a labelled row's term then, for the guard's ``spread=``.
    """

    power: float
    worth: float
    correlation: float
    spread: float

    def __str__(self) -> str:
        if not self.power:
            return (
                f"The judge does not help: its scores correlate {self.correlation:.2f} with people's. Leave it out, or "
                "power=0."
            )
        narrower = 1.0 - 1.0 / math.sqrt(self.worth)
        words = "helps" if self.worth >= _LITTLE else "hardly helps"
        return (
            f"The judge {words}: with power={self.power:g} each label is worth {self.worth:.2f}, and intervals are "
            f"about {narrower:.0%} narrower."
        )


def judge_power(human: ArrayLike, judge: ArrayLike, *, labelled: int, judged: int) -> JudgePower:
    """Choose how far to follow a judge.

    Parameters
    ----------
    human, judge : array-like of shape (rows,)
        Scores of the same rows, by people and by the judge. None of them may be the holdout's: power is public.
    labelled : int
        Rows of the holdout that people have scored.
    judged : int
        Its further rows, which only the judge has scored; at least as many.

    Returns
    -------
    JudgePower
        Power 0 unless the correlation is above 0 by two standard errors.

    Raises
    ------
    InputError
        If there are fewer than 10 rows, the two do not fit, or a score is missing.

    Notes
    -----
    With m = judged / labelled partners of each labelled row, the terms' variance Var(Y - p f) + p^2 Var(f)/m is least
    at p = Cov(Y, f) / (Var(f)(1 + 1/m)). A judge that is no better than the model it judges saves no more than half
    of the labels, however many rows it scores [1]_.

    References
    ----------
    .. [1] Dorner, Nastl, Hardt (2025), "Limits to scalable evaluation at the frontier: LLM as judge won't beat twice
       the data", ICLR.

    Examples
    --------
    >>> human = [1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1]
    >>> print(judge_power(human, human, labelled=100, judged=900))
    The judge helps: with power=0.9 each label is worth 10.00, and intervals are about 68% narrower.
    >>> print(judge_power(human, human[::-1], labelled=100, judged=900))
    The judge does not help: its scores correlate 0.25 with people's. Leave it out, or power=0.
    """
    people, other = as_floats(human), as_floats(judge)
    if people.ndim != 1 or people.shape != other.shape or len(people) < _LEAST_ROWS:
        raise InputError(
            f"human and judge must be scores of the same rows, at least {_LEAST_ROWS}; got shapes {people.shape} and "
            f"{other.shape}; pass one number for each row"
        )
    if not (np.isfinite(people).all() and np.isfinite(other).all()):
        raise InputError("both must have scored every row; got NaN or infinity; leave such rows out")
    if not 1 <= labelled <= judged:
        raise InputError(
            f"judged must be at least labelled, and this at least 1; got judged={judged}, labelled={labelled}; let the "
            "judge score more rows"
        )
    partners = judged / labelled
    (variance, covariance), (_, of_judge) = np.cov(people, other)
    if variance <= 0.0 or of_judge <= 0.0:
        return JudgePower(0.0, 1.0, 0.0, math.sqrt(variance))
    correlation = covariance / math.sqrt(variance * of_judge)
    if correlation * math.sqrt(len(people)) < _SURELY:
        return JudgePower(0.0, 1.0, float(correlation), math.sqrt(variance))
    power = min(1.0, round(covariance / (of_judge * (1.0 + 1.0 / partners)), 2))
    left = variance - 2.0 * power * covariance + power**2 * of_judge * (1.0 + 1.0 / partners)
    return JudgePower(float(power), float(variance / left), float(correlation), math.sqrt(left))
