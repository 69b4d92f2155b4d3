"""Losses with the opposite sign, as scikit-learn's scorers have them: greater is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.definition import Definition, Kernel
from reusable_holdout.metrics.derived import negated_statistic
from reusable_holdout.metrics.metric import Metric
from reusable_holdout.metrics.scoring import Statistic

__all__ = ["negated"]

_SCORERS = {  # where scikit-learn's name is another than "neg_" and ours
    "brier": "neg_brier_score",
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
}


@dataclass(frozen=True)
class _Negation:
    """Kernel of a loss with the opposite sign."""

    kernel: Kernel
    loss: Metric

    def __call__(self, metric: Definition, targets: Any) -> Statistic:
        if self.loss.name == "brier" and len(targets.counts) > 2:  # scikit-learn's lies in [-2, 0] there
            raise InputError(
                f"for {metric.name} there must be exactly two classes; got {len(targets.counts)}; "
                'use "brier", which is half of what scikit-learn negates'
            )
        return negated_statistic(self.kernel(self.loss, targets))


def negated(loss: Metric) -> Metric:
    """A loss of the catalogue with the opposite sign, named as scikit-learn's scorer of it.

    Replacing one row changes it as much as the loss.

    Parameters
    ----------
    loss : Metric
        "brier" or "log_loss" by :func:`resolve_metric`, :func:`mae`, ...; no share of rows that are wrong, whose
        opposite is the "accuracy".

    Returns
    -------
    Metric
        Greater is better, from minus the loss's upper bound to minus its lower one: what ``cross_val_score`` gives for
        the same name is its prior, unchanged.

    Raises
    ------
    InputError
        If it is no such loss; when binding, of "brier" if there are more than two classes.

    Notes
    -----
    Normalised, one minus the loss, of the same rows: c_r, the sensitivity, the sum of c_r^2 and the family are the
    loss's. A mean over rows stays one, so that models can be compared row by row.

    Examples
    --------
    >>> from reusable_holdout.metrics import mae
    >>> error = negated(mae(lower=0, upper=10))
    >>> error.name, error.lower, error.measure([0, 10], [1, 12])
    ('neg_mean_absolute_error', -10.0, -0.5)
    """
    if not isinstance(loss, Metric):
        raise InputError(
            f"negated must be given a Metric; got {type(loss).__name__}; write negated(mae(lower=..., upper=...))"
        )
    if loss.kernel is None or loss.greater_is_better or loss.family == "binomial":
        advice = 'use "accuracy"' if loss.family == "binomial" else "take it as it is"
        own = "negate in its function, and state its bounds with the opposite sign"
        raise InputError(
            f"what is negated must be a loss of the catalogue that is no share of rows; got {loss.name!r}; "
            f"{own if loss.kernel is None else advice}"
        )
    return Metric(
        name=_SCORERS.get(loss.name, f"neg_{loss.name}"),
        response=loss.response,
        lower=0.0 - loss.upper,
        upper=0.0 - loss.lower,
        greater_is_better=True,
        family=loss.family,
        parameters=loss.parameters,
        kernel=_Negation(loss.kernel, loss),
    )
