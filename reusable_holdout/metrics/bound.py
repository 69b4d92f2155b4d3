"""A metric bound to the private labels on which it is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import Kind
from reusable_holdout.metrics.custom import BoundedDifferences, mean_of_own_losses
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.ids import Ids
from reusable_holdout.metrics.predictions import PRIVATE, ROWS_OF_A_CLASS, Form, Predictions
from reusable_holdout.metrics.samples import Measured
from reusable_holdout.metrics.scoring import GRID, Draws, Family, Mean, PublicNumbers, Statistic
from reusable_holdout.metrics.targets import HoldsLabels, Targets, class_targets, real_targets
from reusable_holdout.metrics.weights import Groups, Weights

_EXACT_MATCH = {"accuracy", "zero_one_loss"}


class BoundMetric(HoldsLabels):
    """A metric bound to private labels, or to the rows' ids. :meth:`Metric.bind` makes it and explains the arguments.

    Only :meth:`score`, :meth:`row_terms` and :meth:`sample` return anything that depends on the labels of single rows.
    The repr and the errors do not, and a bound metric cannot be pickled.

    Attributes
    ----------
    classes : numpy.ndarray or None
        The sorted classes, which are public. None for real targets ("values"), for rows with several labels, for judged
        scores, and for a private set of labels.
    class_set : numpy.ndarray, "private" or None
        `classes`, or "private" for a private set. Pass it as ``classes=`` to bind the metric to other rows likewise.
    private_labels : {"text", "numbers"} or None
        Kind of the labels if their set is private, else None. They are compared with predictions in a normal form.
    sensitivity : fractions.Fraction
        Largest change of the statistic, normalised to [0, 1], between neighbours: two holdouts that differ in one row,
        and that have equal class counts if the metric is class-conditional.
    sum_of_squares : float
        Sum over rows of c_r^2, where c_r is the largest change of the normalised statistic when row r is replaced. Some
        metrics use another number instead. With either number, the statistic lies beyond its population value by t
        with probability at most exp(-2 t^2 / sum_of_squares) on each side.
    family : {"binomial", "bounded", "bounded-difference"}
        Family of the confidence bound: the metric's, unless labels, weights or groups change it.
    by_rows : bool
        True if the metric is a mean over the rows that count, so that two models can be compared row by row.
    is_ratio : bool
        True if the rows of one query give a confidence set of the population value; see :meth:`sample`.
    counted_rows : int
        Number of rows with a weight above 0: for a slice, its rows.
    effective_rows : int
        Number of rows that the confidence bound may count: for a recall the rows of its class, for a slice its rows.
    weights_digest : str or None
        SHA-256 of the weights, equal for proportional weights; None without weights or if all are equal.
    groups : Groups or None
        The groups of the rows, which are public.
    statistic : Statistic
        The statistic that computes the metric; it holds the labels and is as private as they are.

    Examples
    --------
    >>> from reusable_holdout.metrics import GRID, resolve_metric
    >>> bound = resolve_metric("accuracy").bind([0, 1, 1, 0])
    >>> prepared = bound.prepare_many([[0, 1, 1, 1], [0, 0, 0, 0]])
    >>> bound.score(prepared) / GRID
    array([0.75, 0.5 ])
    """

    def __init__(
        self,
        metric: Definition,
        y: object,
        *,
        classes: object = None,
        sample_weight: object = None,
        groups: object = None,
    ) -> None:
        self.metric = metric
        targets, self._form = _bound(metric, y, classes)
        self.rows = targets.rows
        weights = None if sample_weight is None else Weights(sample_weight, self.rows)
        if weights is not None and len(weights.chosen) == self.rows and weights.alike:
            weights = None
        self.groups = None if groups is None else Groups(groups, self.rows)
        self.statistic = _statistic(metric, targets, weights, self.groups)
        self.weights_digest = None if weights is None else weights.digest
        self.counted_rows = self.rows if weights is None else len(weights.chosen)
        self.private_labels: Kind | None = self._form.answers
        coder = targets.coder if isinstance(targets, Targets) and targets.outputs == 1 else None
        self.classes: NDArray[Any] | None = None if coder is None else coder.classes
        self.class_set: NDArray[Any] | Literal["private"] | None = (
            self.classes if self.private_labels is None else PRIVATE
        )
        self.family: Family = self.statistic.family or metric.family
        self.by_rows, self.is_ratio = isinstance(self.statistic, Mean), self.statistic.is_ratio
        self.sensitivity: Fraction
        self.told(self.exact)

    def __repr__(self) -> str:
        return f"<BoundMetric: {self.metric.name}, {self.rows} rows>"

    # ---- public facts

    @property
    def relative_weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows of :meth:`row_terms`, as fractions of the largest; None if all are equal."""
        return self._mean.draws.relative_weights

    @property
    def exact(self) -> PublicNumbers:
        """The numbers on which confidence bound and noise rest, computed from the true class counts, and so private."""
        one = self.statistic
        return PublicNumbers(one.sensitivity, one.sum_of_squares, one.effective_rows)

    @property
    def numbers(self) -> PublicNumbers:
        """The numbers on which confidence bound and noise rest: the exact ones, until :meth:`told` replaces them."""
        return PublicNumbers(self.sensitivity, self.sum_of_squares, self.effective_rows)

    def told(self, numbers: PublicNumbers) -> Self:
        """Replace the exact numbers on which confidence bound and noise rest by released ones; return the metric."""
        self.sensitivity, self.sum_of_squares, self.effective_rows = numbers
        return self

    def describe(self) -> dict[str, Any]:
        """Return the facts that distinguish two configurations: the metric's, and digests of its weights and groups."""
        described = self.metric.describe()
        if self.weights_digest is not None:
            described["weights"] = self.weights_digest
        if self.groups is not None:
            described["groups"] = self.groups.digest
        return described

    # ---- predictions

    @property
    def form(self) -> Predictions:
        """The form that checks a model's predictions, and holds nothing private; InputError for judged scores."""
        if not isinstance(self._form, Predictions):
            raise InputError(
                f"metric {self.metric.name!r} takes judged scores, not a model's predictions; pass the scores"
            )
        return self._form

    def know_order(self, indexes: tuple[Any, ...]) -> None:
        """Refuse from now on predictions whose pandas index is one of `indexes` in another order."""
        self._form.indexes = indexes

    def prepare(self, predictions: object) -> NDArray[Any]:
        """Return one query (the predictions of one model) in canonical form; the labels do not affect it.

        Equal predictions give equal bytes: class codes in the smallest unsigned dtype, or C-contiguous
        float64 without negative zeros. The result is always a copy.

        Parameters
        ----------
        predictions : array-like of shape (rows,), (rows, classes), (rows, outputs) or (rows, repeats)
            Their shape must suit the metric's `response`. From a matrix with columns for two classes, only the last
            column is kept. Judged scores may be a table or series with the rows' ids as a column or index. Repeated
            scores of a row are combined into one.

        Returns
        -------
        numpy.ndarray of shape (rows,) or, for three or more classes' probabilities, (rows, classes)
        """
        return self._form.prepare(predictions)

    def prepare_many(self, predictions: object) -> NDArray[Any]:
        """Return several queries in canonical form, of shape (queries, rows[, classes]).

        The queries come as an array or a list of arrays. Each gets the bytes that :meth:`prepare` returns for it. If
        one does not fit, the error message begins with its index. The message does not depend on any label.
        """
        return self._form.prepare_many(predictions)

    # ---- private: for the guard alone

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Score each query from :meth:`prepare_many`, or ``prepare(...)[None]``: private, for the guard alone.

        A score is floor(normalised statistic * 2**32), computed in integers, and differs between neighbours by at most
        ceil(sensitivity * 2**32). A user's own function that fails raises a :class:`ModelError`.
        """
        if prepared.ndim < 2 or prepared.shape[1] != self.rows:
            raise InputError(
                f"prepared predictions must have shape (queries, {self.rows}, ...); got {prepared.shape}; "
                "use prepare_many"
            )
        return self.statistic.score(prepared)

    @property
    def _mean(self) -> Mean:
        return cast("Mean", self.statistic)

    def row_terms(self, query: NDArray[Any]) -> NDArray[np.int64]:
        """Return the terms whose mean is the metric, one for each row (or group) that counts, from 0 to 2**32: private.

        The query has shape (rows[, classes]).
        """
        mean = self._mean
        own = query if mean.chosen is None else query[mean.chosen]
        return np.asarray(np.rint(mean.shares(own) * GRID), dtype=np.int64)

    def score_of_terms(self, terms: NDArray[np.int64]) -> int:
        """Return the score, in grid units, of the terms that :meth:`row_terms` returned: private."""
        total, whole = self._mean.draws.total(terms)
        return total // whole

    def sample(self, query: NDArray[Any]) -> Measured:
        """Return the data from which a ratio's confidence set is computed, for a query of shape (rows,): private."""
        return self.statistic.sample(query)


def _bound(metric: Definition, y: object, classes: object | None) -> tuple[Targets | Ids, Form]:
    """Return the labels or ids of the rows, and the form of the predictions that are compared with them."""
    if metric.response in {"values", "judged"} and classes is not None:
        what = "real numbers" if metric.response == "values" else "ids of the rows"
        raise InputError(
            f"the targets of metric {metric.name!r} must be {what}, not classes; got classes=; leave it out"
        )
    if metric.response == "judged":
        named = Ids(y)
        return named, cast("Any", metric.kernel).form(named)
    if isinstance(classes, str) and classes == PRIVATE:
        _check_exact_match(metric)
    targets = real_targets(y) if metric.response == "values" else class_targets(y, classes)
    if targets.outputs > 1:
        metric.check_over_outputs(targets.outputs)
    form = Predictions(metric.response, rows=targets.rows, coder=targets.coder, outputs=targets.outputs)
    return targets, form


def _check_exact_match(metric: Definition) -> None:
    """Refuse a metric that needs the set of labels, which is private here; the message quotes no label."""
    if metric.kernel is None or metric.name not in _EXACT_MATCH:
        raise InputError(
            f"for {metric.name} the set of labels must be public: declared with classes=, or with at most one label "
            f"for {ROWS_OF_A_CLASS} rows; these labels are neither, so only accuracy or zero_one_loss can be "
            "measured; if everyone who asks may know all labels that can occur, name them in classes="
        )


def _statistic(metric: Definition, targets: Any, weights: Weights | None, groups: Groups | None) -> Statistic:
    """Return the metric's statistic on all rows, on a slice that weights choose, or averaged with weights or groups."""
    if weights is not None and weights.alike:
        own = None if groups is None else groups.part(weights.chosen)
        return _statistic(metric, targets.part(weights.chosen), None, own).of_rows(weights.chosen)
    if weights is not None and groups is not None:
        raise InputError(
            "with groups=, each sample_weight must be 0 or the same number, because each group counts once; "
            "got several numbers; leave one of them out: groups or sample_weight"
        )
    own_kernel = BoundedDifferences if metric.loss is None else mean_of_own_losses
    statistic = (metric.kernel or own_kernel)(metric, targets)
    draws = groups if weights is None else weights
    averaged = statistic if draws is None else statistic.averaged(draws)
    if averaged is None:
        raise InputError(cast("Draws", draws).refusal.format(metric.name))
    return averaged


class Unit(NamedTuple):
    """The bounds of a metric, or of a difference of two of its values, and whether a larger value is better."""

    lower: float
    upper: float
    greater_is_better: bool

    @classmethod
    def of(cls, metric: Definition | Mapping[str, Any], *, paired: bool = False) -> Self:
        """Return the bounds and direction of a metric or its description in a ledger; if `paired`, of a difference."""
        facts = metric if isinstance(metric, Mapping) else metric.describe()
        lower, upper, greater = float(facts["lower"]), float(facts["upper"]), facts["greater_is_better"]
        return cls(lower - upper, upper - lower, greater) if paired else cls(lower, upper, greater)

    @property
    def span(self) -> float:
        """Range of the values."""
        return self.upper - self.lower

    @property
    def is_plain(self) -> bool:
        """True if values lie in [0, 1] and larger is better, so that normalising changes nothing."""
        return self.greater_is_better and self.lower == 0.0 and self.upper == 1.0

    def unit(self, value: float) -> float:
        """Return a value normalised to [0, 1], where 1 is the best."""
        if self.is_plain:
            return value
        return (value - self.lower if self.greater_is_better else self.upper - value) / self.span

    def own(self, unit: float) -> float:
        """Return a normalised value in the metric's own units, rounded to about the noise grid if it is converted."""
        if self.is_plain:
            return unit
        value = self.lower + unit * self.span if self.greater_is_better else self.upper - unit * self.span
        digits = math.ceil(9.0 - math.log10(self.span))
        return min(max(round(value, digits), self.lower), self.upper)

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of an interval in the metric's own unit, the lower first."""
        if self.is_plain:
            return low, high
        if self.greater_is_better:
            return self.lower + low * self.span, self.lower + high * self.span
        return self.upper - high * self.span, self.upper - low * self.span
