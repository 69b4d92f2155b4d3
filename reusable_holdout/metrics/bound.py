"""A metric with the private labels it is measured on."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import answer_targets, custom, derived, ids
from reusable_holdout.metrics import weights as of_weights
from reusable_holdout.metrics.containers import Kind
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.judged import Judge
from reusable_holdout.metrics.predictions import PRIVATE, ROWS_OF_A_CLASS, Form, Predictions
from reusable_holdout.metrics.samples import Counted, Explained, Ranked
from reusable_holdout.metrics.scoring import GRID, Family, Mean, PublicNumbers, Statistic
from reusable_holdout.metrics.targets import ClassTargets, HoldsLabels, RealTargets

Targets = answer_targets.AnswerTargets | ClassTargets | RealTargets | ids.Ids

__all__ = ["BoundMetric"]

_EXACT_MATCH = {"accuracy", "zero_one_loss"}


class BoundMetric(HoldsLabels):
    """A metric bound to private labels, or ids of the rows, by :meth:`Metric.bind`, whose arguments it takes.

    Only :meth:`score`, :meth:`row_terms` and :meth:`sample` tell anything about them; repr and errors do not, and it
    cannot be pickled.

    Attributes
    ----------
    classes : numpy.ndarray or None
        Sorted classes, public; None for "values", for several labels of a row, for judged scores, and where the set of
        labels is private.
    private_labels : {"text", "numbers"} or None
        Kind of the labels if their set is private: predictions are compared with them by :func:`normal_form`.
    sensitivity : fractions.Fraction
        Largest change of the statistic, normalised to [0, 1], between neighbours: holdouts of which one row
        is replaced, and whose class counts agree if the metric is class-conditional.
    sum_of_squares : float
        Sum over rows of c_r^2, with c_r the largest change from replacing row r; normalised likewise. For some metrics
        another number of the same use: the statistic lies beyond its population value by t with probability at most
        exp(-2 t^2 / sum_of_squares) on each side.
    family : {"binomial", "bounded", "bounded-difference"}
        Of the confidence bound; the metric's, unless weights change it.
    counted_rows : int
        Rows with a weight: of a slice its rows.
    effective_rows : int
        Rows that the confidence bound may count: of a recall the rows of its class, of a slice its rows.
    present : int
        Classes that have rows with a weight: private.
    weights_digest : str or None
        SHA-256 of the weights, up to a factor; None without weights or if all are equal.
    statistic : Statistic
        What computes it; it holds the labels and is as private as they are.

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
        classes: object | None = None,
        sample_weight: object | None = None,
        groups: object | None = None,
        largest_group: int | None = None,
    ) -> None:
        self.metric = metric
        self.classes: NDArray[Any] | None = None
        targets, self._form = _bound(metric, y, classes)
        if isinstance(targets, ClassTargets) and targets.outputs == 1:
            self.classes = targets.coder.classes
        self.private_labels: Kind | None = self._form.answers
        weights = None if sample_weight is None else of_weights.Weights(sample_weight, targets.rows)
        if weights is not None and len(weights.chosen) == targets.rows and weights.alike:
            weights = None
        self.weights_digest = None if weights is None else weights.digest
        self.groups = _groups(groups, targets.rows, largest_group)
        _check_every_row(metric, weights, self.groups)
        self.statistic = _statistic(metric, targets, weights, self.groups)
        self.rows = targets.rows
        self.counted_rows = targets.rows if weights is None else len(weights.chosen)
        self.present = 0
        if isinstance(targets, ClassTargets):
            counted = targets if weights is None else targets.part(weights.chosen)
            self.present = int(np.count_nonzero(counted.counts))
        self.sensitivity: Fraction = self.statistic.sensitivity
        self.sum_of_squares: float = self.statistic.sum_of_squares
        self.family: Family = self.statistic.family or metric.family
        self.effective_rows = self.statistic.effective_rows

    def __repr__(self) -> str:
        return f"<BoundMetric: {self.metric.name}, {self.rows} rows>"

    @property
    def class_set(self) -> NDArray[Any] | Literal["private"] | None:
        """`classes`, or "private": what binds the metric to other rows in the same way."""
        return self.classes if self.private_labels is None else PRIVATE

    @property
    def likely_spread(self) -> float | None:
        """Standard deviation of a row's term that is far below what its bounds allow; None if that is not known."""
        return getattr(self.metric.kernel, "likely_spread", None)  # as judges have

    @property
    def by_rows(self) -> bool:
        """Whether it is a mean over the rows that count, so that two models can be compared row by row."""
        return isinstance(self._mean_over_rows()[0], Mean)

    def row_terms(self, query: NDArray[Any]) -> NDArray[np.int64]:
        """Terms of the rows (or groups) that count in a mean over them, from 0 to 2**32: private, the guard's alone.

        The query has shape (rows[, classes]).
        """
        mean, chosen = self._mean_over_rows()
        terms: NDArray[np.int64] = np.rint(mean.shares(query[chosen]) * GRID).astype(np.int64)
        return terms

    def score_of_terms(self, terms: NDArray[np.int64]) -> int:
        """The statistic of :meth:`row_terms`, as :meth:`score` gives it."""
        total, whole = self._mean_over_rows()[0].total(terms)
        return total // whole

    @property
    def relative_weights(self) -> NDArray[np.float64] | None:
        """Weights of these rows, as fractions of the largest; None if all are equal."""
        return self._mean_over_rows()[0].relative_weights

    def _mean_over_rows(self) -> tuple[Mean, NDArray[Any] | slice]:
        """The mean, if it is one, and the rows that it is over: of a slice, and in it of a class."""
        chosen, statistic = self.statistic.part or (slice(None), self.statistic)
        return cast("Mean", statistic), chosen

    @property
    def is_ratio(self) -> bool:
        """Whether the rows of a query give a confidence set of the population's value; see :meth:`sample`."""
        return self.statistic.is_ratio

    def sample(self, query: NDArray[Any]) -> Counted | Explained | Ranked:
        """What such a set rests on, of a query of shape (rows,): private, the guard's alone."""
        return self.statistic.sample(query)

    @property
    def exact(self) -> PublicNumbers:
        """Numbers on which its confidence bound and noise rest at the labels' own class counts: private."""
        one = self.statistic
        return PublicNumbers(one.sensitivity, one.sum_of_squares, one.effective_rows)

    @property
    def numbers(self) -> PublicNumbers:
        """Numbers on which its confidence bound and noise rest: the exact ones, until others are told."""
        return PublicNumbers(self.sensitivity, self.sum_of_squares, self.effective_rows)

    def told(self, numbers: PublicNumbers) -> Self:
        """Rest its confidence bound and its noise on numbers that were told, no longer on the exact ones."""
        self.sensitivity, self.sum_of_squares, self.effective_rows = numbers
        return self

    def know_order(self, indexes: tuple[Any, ...]) -> None:
        """Refuse predictions from now on whose pandas index is one of these in another order."""
        self._form.indexes = indexes

    @property
    def form(self) -> Predictions:
        """Form of a model's predictions, of which judged scores are none; it holds nothing private."""
        if not isinstance(self._form, Predictions):
            raise InputError(
                f"models must predict; got metric {self.metric.name!r}, of judged scores; pass these"
            )
        return self._form

    def describe(self) -> dict[str, Any]:
        """Describe what tells two configurations apart: the metric, and weights and groups if there are any."""
        described = self.metric.describe()
        if self.weights_digest is not None:
            described["weights"] = self.weights_digest
        if self.groups is not None:
            described["groups"] = self.groups.digest
            if self.groups.largest is not None:
                described["largest_group"] = self.groups.largest
        return described

    def prepare(self, predictions: object) -> NDArray[Any]:
        """One query in canonical form; it depends on no label.

        Equal predictions give equal bytes: class codes in the smallest unsigned dtype, or C-contiguous
        float64 without negative zeros. Always a copy.

        Parameters
        ----------
        predictions : array-like of shape (rows,), (rows, classes), (rows, outputs) or (rows, repeats)
            As the metric's `response` says. A binary matrix counts as its last column. Judged scores may be a table
            or series with the rows' ids as a column or index; repeats count as their mean.

        Returns
        -------
        numpy.ndarray of shape (rows,) or, for three or more classes' probabilities, (rows, classes)
        """
        return self._form.prepare(predictions)

    def prepare_many(self, predictions: object) -> NDArray[Any]:
        """Several queries in canonical form, of shape (queries, rows[, classes]), from an array or a list of arrays.

        Each slice has the bytes that :meth:`prepare` gives for it. Where one does not fit the message begins with its
        index; what the error says depends on no label.
        """
        return self._form.prepare_many(predictions)

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Statistic of each query from :meth:`prepare_many`, or ``prepare(...)[None]``: private, the guard's alone.

        It is floor(normalised statistic * 2**32), computed in integers, and differs between neighbours by at most
        ceil(sensitivity * 2**32). A user's own function that fails raises a :class:`ModelError`.
        """
        if prepared.ndim < 2 or prepared.shape[1] != self.rows:
            raise InputError(
                f"prepared predictions must have shape (queries, {self.rows}, ...); got {prepared.shape}; "
                "use prepare_many"
            )
        return self.statistic.score(prepared)


def _groups(names: object, rows: int, largest: int | None) -> of_weights.Groups | None:
    if names is not None:
        return of_weights.Groups(names, rows, largest)
    if largest is not None:
        raise InputError(
            "largest_group is of groups; got no groups=; name the group of each row, or leave it out"
        )
    return None


def _check_every_row(
    metric: Definition, weights: of_weights.Weights | None, groups: of_weights.Groups | None
) -> None:
    if getattr(metric.kernel, "every_row", False) and (weights is not None or groups is not None):
        given = "some rows or weights" if groups is None else "groups"
        raise InputError(
            f"metric {metric.name!r} takes all rows, each as a draw of its own; got {given}: it has no slices or "
            'groups; leave them out, or ask "score" of the rows people have scored'
        )


def _bound(metric: Definition, y: object, classes: object | None) -> tuple[Targets, Form]:
    """What the rows hold, and the form of what is compared with it."""
    if metric.response in {"values", "judged"} and classes is not None:
        what = "real numbers" if metric.response == "values" else "ids of the rows"
        raise InputError(
            f"the targets of metric {metric.name!r} must be {what}, not classes; got classes=; leave it out"
        )
    if metric.response == "judged":
        named = ids.Ids(y)
        return named, cast("Judge", metric.kernel).form(named)
    if isinstance(classes, str) and classes == PRIVATE:
        _check_exact_match(metric)
        answers = answer_targets.AnswerTargets(y)
        return answers, Predictions(metric.response, rows=answers.rows, coder=None, answers=answers.kind)
    targets = RealTargets(y) if metric.response == "values" else ClassTargets(y, classes)
    if targets.outputs > 1:
        metric.check_over_outputs(targets.outputs)
    coder = targets.coder if isinstance(targets, ClassTargets) else None
    return targets, Predictions(metric.response, rows=targets.rows, coder=coder, outputs=targets.outputs)


def _check_exact_match(metric: Definition) -> None:
    """Raise an InputError if a metric needs to know all labels; it quotes none of them."""
    if metric.kernel is None or metric.name not in _EXACT_MATCH:
        raise InputError(
            f"for {metric.name} the set of labels must be public: declared with classes=, or with at most one label "
            f"for {ROWS_OF_A_CLASS} rows; these labels are neither, so only exact match, accuracy or zero_one_loss, "
            "is measured; name all labels that may occur in classes= if they may be known to everyone who asks"
        )


def _statistic(
    metric: Definition, targets: Targets, weights: of_weights.Weights | None, groups: of_weights.Groups | None
) -> Statistic:
    """What computes the metric on these rows, or on those that weights choose, or with weights or groups."""
    if weights is None:
        every = _of_all(metric, targets)
        return every if groups is None else of_weights.grouped(every, groups, name=metric.name)
    if weights.alike:
        own = None if groups is None else groups.part(weights.chosen)
        part = _statistic(metric, targets.part(weights.chosen), None, own)
        return derived.OfRows(targets.rows, weights.chosen, part)
    if groups is not None:
        raise InputError(
            "with groups sample_weight must be 0 or one other number, which makes a slice, for each group counts once, "
            "or each of its rows; got several numbers; leave one of them out"
        )
    return of_weights.weighted(_of_all(metric, targets), weights, name=metric.name)


def _of_all(metric: Definition, targets: Any) -> Statistic:
    if metric.kernel is not None:
        return metric.kernel(metric, targets)
    if metric.loss is not None:
        return custom.mean_of_own_losses(metric, targets)
    return custom.BoundedDifferences(metric, targets)
