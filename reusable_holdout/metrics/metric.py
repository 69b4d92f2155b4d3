"""Metrics: bounded statistics that are computed on the holdout, with the most that one row can change them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.metrics.bound import BoundMetric
from reusable_holdout.metrics.definition import Definition, Kernel, Response
from reusable_holdout.metrics.targets import class_targets, real_targets
from reusable_holdout.metrics.weights import Weights


@dataclass(frozen=True, kw_only=True)
class Metric(Definition):
    """A bounded statistic of labels and predictions.

    The largest change that one row can make is derived (for the catalogue and for means of losses) or declared (by
    `differences`). It is never estimated from data. :func:`resolve_metric` returns metrics of the catalogue; this
    constructor is for metrics of your own.

    Parameters
    ----------
    name : str
        Name of the metric in answers and reports.
    lower, upper : float
        Bounds of the statistic, and of each row's loss; finite, lower < upper. Values outside are clipped to them.
    greater_is_better : bool
        True if a better model has the larger statistic.
    response : {"values", "labels", "probabilities", "scores"}
        The kind of model output that the metric needs, of shape (rows,): real "values", class "labels", real decision
        "scores", or "probabilities" of the last of two sorted classes; for more classes these have shape (rows,
        classes). Values and labels of several outputs have shape (rows, outputs). The response "judged" is reserved for
        the catalogue's metrics of judged scores, such as "score" and "pass@k".
    family : {"bounded", "binomial", "bounded-difference"}
        "bounded" for a mean of losses in the bounds, "binomial" for a mean of losses that are 0 or 1, and
        "bounded-difference" for any statistic with `differences`.
    parameters : mapping of str to float
        Numbers on which `loss` or `statistic` depends, so that :meth:`describe` distinguishes configurations.
    loss : callable, optional
        ``loss(y_true, y_pred)`` returns an array of shape (rows,). Entry r must depend on row r alone.
    statistic : callable, optional
        ``statistic(y_true, y_pred)`` returns one number. It requires `differences`.
    differences : callable or array-like of shape (rows,), optional
        For each row, the most that replacing it can change `statistic`, in its units, with a margin for rounding
        errors. A function ``differences(y_true)`` may use public facts about the labels, such as class counts, and
        nothing else. Nothing is public about real targets and about rows with several labels; for them the function
        receives made-up labels.
    kernel : callable, optional
        Internal, for metrics of the catalogue; leave it out.

    Raises
    ------
    InputError
        If the fields are out of range or contradict one another.

    Notes
    -----
    Let c_r be the most that replacing row r can change the statistic after it is normalised to [0, 1]. For a loss in
    [lower, upper] the normalised statistic is the mean over n rows of (loss - lower)/(upper - lower). So c_r = 1/n, and
    the sum of c_r^2 is 1/n. For declared differences d_r, c_r = d_r/(upper - lower).

    References
    ----------
    .. [1] McDiarmid (1989), "On the method of bounded differences", Lemma 1.2.

    Examples
    --------
    >>> import numpy as np
    >>> within = Metric(name="within_10_percent", lower=0, upper=1, greater_is_better=True, family="binomial",
    ...                 loss=lambda y, p: np.abs(p - y) <= 0.1 * np.abs(y))
    >>> within.measure([1.0, 2.0], [1.05, 3.0])
    0.5
    """

    def bind(
        self,
        y: object,
        *,
        classes: object | None = None,
        sample_weight: object | None = None,
        groups: object | None = None,
    ) -> BoundMetric:
        """Bind the metric to private labels, or to the ids of rows.

        The set of classes and the weights are treated as public. Numbers that depend on the class counts, such as the
        sensitivity, are exact here. A guard releases them rounded, and accounts for their release.

        Parameters
        ----------
        y : array-like of shape (rows,) or (rows, outputs)
            Labels (booleans, whole numbers, text or categories). For "values" these are real targets; targets outside
            the metric's bounds are clipped without notice. For "judged" they are the rows' ids. Several labels of a
            row are zeros and ones, with one column for each label. A row with all its outputs is one independent draw.
        classes : array-like or "private", optional
            All classes that may occur in labels or predictions; by default those in `y`. "private" keeps the set of
            labels private; then only accuracy and zero_one_loss can be computed.
        sample_weight : array-like of shape (rows,), optional
            Weights of the rows, finite, >= 0, not all 0, as for scikit-learn. They are public, so do not compute them
            from the labels. A replaced row keeps its weight. Zeros and one other number, e.g. ``group == "A"``, make a
            slice: the metric of those rows alone, with intervals as for a holdout of that many rows. Other weights are
            for means of losses (and "rmse"); with weights w, c_r = w_r / sum of w.
        groups : array-like of shape (rows,), optional
            Name of the group of each row, such as its user. A group is one independent draw and counts once, with the
            mean of its rows. Groups are public. They are for means of losses (and "rmse").

        Raises
        ------
        InputError
            If the labels do not fit the metric, or a trial of a user's own function does not give numbers
            within the bounds; no label is quoted.
        ModelError
            If a user's own function raises in that trial.

        Examples
        --------
        >>> from reusable_holdout.metrics import resolve_metric
        >>> bound = resolve_metric("accuracy").bind(["no", "yes", "no"])
        >>> bound, bound.prepare(["yes", "yes", "no"])
        (<BoundMetric: accuracy, 3 rows>, array([1, 1, 0], dtype=uint8))
        """
        return BoundMetric(self, y, classes=classes, sample_weight=sample_weight, groups=groups)

    def measure(
        self,
        y: object,
        predictions: object,
        *,
        classes: object | None = None,
        sample_weight: object | None = None,
    ) -> float:
        """Return the metric's exact value in its own units, for data that the analyst may see.

        Nothing protects the labels here: never call it with the holdout's labels.

        Parameters
        ----------
        y : array-like of shape (rows,) or (rows, outputs)
            Labels or targets, e.g. of a validation fold.
        predictions : array-like of shape (rows,), (rows, classes), (rows, outputs) or (rows, repeats)
            Predictions of the kind that the metric's `response` names.
        classes : array-like, optional
            All classes; needed if one of them is missing in `y`.
        sample_weight : array-like of shape (rows,), optional
            Weights of the rows, as in :meth:`bind`.

        Raises
        ------
        InputError
            If labels or predictions do not fit the metric, or a target lies outside the bounds that it states.

        Examples
        --------
        >>> from reusable_holdout.metrics import resolve_metric
        >>> resolve_metric("accuracy").measure(["no", "yes"], ["no", "no"])
        0.5
        """
        if self.response == "values" and self.kernel is not None:
            _check_known_targets(self, y)
        bound = self.bind(y, classes=classes, sample_weight=sample_weight)
        return bound.statistic.value(bound.prepare(predictions))


def metric_of(
    name: str, response: Response, kernel: Kernel, *, bounds: tuple[float, float] = (0, 1), **stated: Any
) -> Metric:
    """Make a metric of the catalogue.

    Parameters
    ----------
    name : str
    response : Response
    kernel : Kernel
        Function that makes the metric's statistic for given targets.
    bounds : (float, float)
        Least and largest value of the metric.
    stated : dict
        More fields of the metric, such as `family` and `parameters`; `greater_is_better` is True by default.
    """
    lower, upper = bounds
    facts: dict[str, Any] = {"greater_is_better": True, **stated}
    return Metric(name=name, response=response, kernel=kernel, lower=lower, upper=upper, **facts)


def _check_known_targets(metric: Metric, y: object) -> None:
    """Refuse targets outside the metric's stated bounds; never call it with the holdout's targets."""
    values, lower, upper = real_targets(y).values, metric.parameters["lower"], metric.parameters["upper"]
    if values.min() < lower or values.max() > upper:
        raise InputError(
            f"the targets must lie in [{lower:g}, {upper:g}]; got targets outside; state bounds that include all, or "
            "clip the targets, as a guard clips the targets of its own rows"
        )


# ---- metrics that are not defined on the labels they are bound to


def bound_or_undefined(metric: Metric, y: Any, **given: Any) -> BoundMetric:
    """Bind a metric to labels; if it is not defined on them, bind it to made-up labels, and let every score fail.

    For example, a recall is not defined on a slice whose rows are all of one class. Such a refusal reveals a fact about
    the labels, and an analyst who chooses slices could learn all labels from refusals. So the metric is bound to
    made-up labels instead, and fails only when it is asked. That failure is an outcome, which is paid for. Metrics of
    real targets are defined on all finite targets.

    An error is raised if metric and rows do not fit whatever the labels are. It is also raised for missing labels and
    for labels outside the classes, because these facts are public.
    """
    if isinstance(given["classes"], str) or metric.response in {"judged", "values"}:
        return metric.bind(y, **given)
    with suppress(InputError, ModelError):
        return metric.bind(y, **given)
    bound = _bound_to_stand_in(metric, y, given)
    failing = type("Undefined", (_Fails, type(bound.statistic)), {})  # all that is public stays as it is
    bound.statistic.__class__ = failing
    return bound


def _bound_to_stand_in(metric: Metric, y: Any, given: dict[str, Any]) -> BoundMetric:
    """Bind a metric to made-up labels: all classes in turn, on the rows that count."""
    labels, weights = class_targets(y, given["classes"]), given["sample_weight"]
    if labels.outputs > 1:
        return metric.bind(np.zeros_like(labels.values), **given)
    chosen = slice(None) if weights is None else Weights(weights, labels.rows).chosen
    codes = np.zeros(labels.rows, dtype=np.int64)
    codes[chosen] = np.arange(len(codes[chosen])) % len(labels.counts)
    classes: NDArray[Any] = np.asarray(labels.coder.classes if labels.coder is not None else None)
    return metric.bind(classes[codes], **{**given, "classes": classes})


class _Fails:
    """The methods that read labels, for a statistic that is not defined on its labels: each raises a ModelError."""

    def score(self, prepared: Any) -> NoReturn:
        """Raise a ModelError: the metric is not defined on these labels."""
        raise ModelError("the metric is not defined on these labels; nothing was answered")

    value = sample = shares = score
