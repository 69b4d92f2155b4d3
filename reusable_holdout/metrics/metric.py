"""The statistic that is measured on the holdout, and how far one row can move it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.metrics.bound import BoundMetric
from reusable_holdout.metrics.definition import Definition, Kernel, Response
from reusable_holdout.metrics.scoring import Family
from reusable_holdout.metrics.targets import class_targets, real_targets
from reusable_holdout.metrics.weights import Weights


@dataclass(frozen=True, kw_only=True)
class Metric(Definition):
    """A bounded statistic of labels and predictions.

    The change that one row can make is derived (catalogue, mean losses) or declared (`differences`), never estimated
    from data. :func:`resolve_metric` has the catalogue; this constructor is for metrics of your own.

    Parameters
    ----------
    name : str
        Its name in answers and reports.
    lower, upper : float
        Bounds of the statistic, and of each row's loss; finite, lower < upper. Values outside are moved to them.
    greater_is_better : bool
        True if a better model has the larger statistic.
    response : {"values", "labels", "probabilities", "scores"}
        The output of a model that it needs, of shape (rows,): real "values"; class "labels"; "probabilities" of the
        last of the sorted classes, or (rows, classes) for more than two; real decision "scores". Values and labels of
        several outputs are (rows, outputs). The response "judged" belongs to the catalogue's "score", "pass@k" and
        "pass^k".
    family : {"bounded", "binomial", "bounded-difference"}
        Mean of losses in the bounds; mean of losses that are 0 or 1; any statistic with `differences`.
    parameters : mapping of str to float
        Numbers that `loss` or `statistic` depend on, so that :meth:`describe` tells configurations apart.
    loss : callable, optional
        ``loss(y_true, y_pred)`` gives an array (rows,). Entry r must depend on row r alone.
    statistic : callable, optional
        ``statistic(y_true, y_pred)`` gives one number. Needs `differences`.
    differences : callable or array-like of shape (rows,), optional
        For each row, the most that replacing it can change `statistic`, in its units, with room for rounding errors.
        ``differences(y_true)`` may use public facts about the labels, such as class counts, and nothing else. Of real
        targets and of several labels for each row nothing is public, so there it is given made-up ones.
    kernel : callable, optional
        For the catalogue; leave it out.

    Raises
    ------
    InputError
        If the definition is not sound.

    Notes
    -----
    For a loss in [lower, upper] the normalised statistic is the mean over n rows of (loss - lower)/(upper -
    lower), so replacing a row changes it by at most c_r = 1/n, and the sum of c_r^2 is 1/n. For declared
    differences d_r, c_r = d_r/(upper - lower).

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
        """Bind to private labels.

        The set of classes is treated as public, and so are weights. Numbers that rest on the class counts
        are exact here; a guard tells them rounded, and prices them.

        Parameters
        ----------
        y : array-like of shape (rows,) or (rows, outputs)
            Labels (booleans, whole numbers, text, categories), for "values" real targets (those outside the metric's
            bounds are moved to them, and nothing says so), for "judged" the rows' ids. Several labels of a row are
            zeros and ones in a column for each; a row is one draw with all its outputs.
        classes : array-like or "private", optional
            All classes that may occur in labels or predictions; by default those in `y`. "private" keeps the set of
            labels private: accuracy and zero_one_loss alone are measured.
        sample_weight : array-like of shape (rows,), optional
            Weights of the rows, finite, >= 0, not all 0, as for scikit-learn; neighbours keep them. They are
            public: do not make them of the labels. Zeros and one other number, e.g. ``group == "A"``, make a slice:
            the metric of those rows alone, with as narrow intervals as a holdout of so many rows. Other weights are
            for means of losses (and "rmse"): c_r = w_r / sum of w.
        groups : array-like of shape (rows,), optional
            Names of the group of each row, such as users: a group is one independent draw and counts once, with the
            mean of its rows. For means of losses (and "rmse"). They are public.

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
        """Return the plain value in the metric's own units, for data the analyst may see.

        Nothing is protected: never call it with the holdout's labels.

        Parameters
        ----------
        y : array-like of shape (rows,) or (rows, outputs)
            Labels or targets, e.g. of a validation fold.
        predictions : array-like of shape (rows,), (rows, classes), (rows, outputs) or (rows, repeats)
            As the metric's `response` says.
        classes : array-like, optional
            All classes; needed if the fold lacks one of them.
        sample_weight : array-like of shape (rows,), optional
            As for :meth:`bind`.

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
    name: str,
    response: Response,
    kernel: Kernel,
    *,
    bounds: tuple[float, float] = (0, 1),
    family: Family = "bounded",
    greater_is_better: bool = True,
    parameters: Mapping[str, float] | None = None,
) -> Metric:
    """Return a metric of the catalogue, by default with values in [0, 1]."""
    return Metric(
        name=name,
        response=response,
        lower=bounds[0],
        upper=bounds[1],
        greater_is_better=greater_is_better,
        family=family,
        parameters=parameters or {},
        kernel=kernel,
    )


def _check_known_targets(metric: Metric, y: object) -> None:
    """Refuse targets outside the bounds that a metric of the catalogue states; never call it with the holdout's."""
    values, lower, upper = real_targets(y).values, metric.parameters["lower"], metric.parameters["upper"]
    if values.min() < lower or values.max() > upper:
        raise InputError(
            f"the targets must lie in [{lower:g}, {upper:g}]; got targets outside; state bounds that hold for all, or "
            "clip the targets, as a guard clips those of its own rows"
        )


# ---- metrics that are not defined on the labels they are bound to


def bound_or_undefined(metric: Metric, y: Any, **given: Any) -> BoundMetric:
    """Bind a metric to labels, or to stand-ins for them if it is not defined on these; then every score fails.

    That a slice has rows of one class only is a fact about the labels. An analyst who chooses slices could read all
    labels out of refusals. So such a metric is bound as it would be to other labels, and fails when it is asked: that
    is an outcome, and paid for. Metrics of real targets are defined on all targets that are finite.

    It is refused if metric and rows do not fit, whatever the labels are, except for missing values and for labels that
    are none of the classes: these are public.
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
    """Bind a metric to labels that say nothing: all classes in turn on the rows that count."""
    labels, weights = class_targets(y, given["classes"]), given["sample_weight"]
    if labels.outputs > 1:
        return metric.bind(np.zeros_like(labels.values), **given)
    chosen = slice(None) if weights is None else Weights(weights, labels.rows).chosen
    codes = np.zeros(labels.rows, dtype=np.int64)
    codes[chosen] = np.arange(len(codes[chosen])) % len(labels.counts)
    classes: NDArray[Any] = np.asarray(labels.coder.classes if labels.coder is not None else None)
    return metric.bind(classes[codes], **{**given, "classes": classes})


class _Fails:
    """The part of a statistic that reads labels, where it is not defined on them."""

    def score(self, prepared: Any) -> NoReturn:
        """Fail."""
        raise ModelError("the metric is not defined on these labels; nothing was answered")

    value = sample = shares = score
