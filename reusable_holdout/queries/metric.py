"""What is measured on the holdout, and how far one row can move it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.queries.bound import BoundMetric
from reusable_holdout.queries.definition import Definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reusable_holdout.queries import open_targets
    from reusable_holdout.queries.definition import Family, Kernel, Response
else:  # of rows that are no secret
    (open_targets,) = modules_on_first_use(__package__, "open_targets")

__all__ = ["Metric", "unit_metric"]


@dataclass(frozen=True, kw_only=True)
class Metric(Definition):
    """A bounded statistic of labels and predictions.

    What one row can change is derived (catalogue, mean losses) or declared (`differences`), never estimated
    from data. The catalogue is in :func:`resolve_metric`; this constructor is for metrics of one's own.

    Parameters
    ----------
    name : str
        How answers and reports call it.
    lower, upper : float
        Bounds of the statistic, and of each row's loss; finite, lower < upper. What falls outside is moved to them.
    greater_is_better : bool
        Whether a better model has the larger statistic.
    response : {"values", "labels", "probabilities", "scores"}
        What a model must produce, each of shape (rows,): real "values"; class "labels"; "probabilities" of the last of
        the sorted classes, or (rows, classes) for more than two; real decision "scores". Values and labels of several
        outputs are (rows, outputs). What is "judged" comes with the catalogue's "score", "pass@k" and "pass^k".
    family : {"bounded", "binomial", "bounded-difference"}
        Mean of losses in the bounds; mean of losses that are 0 or 1; any statistic with `differences`.
    parameters : mapping of str to float
        Numbers that `loss` or `statistic` depend on, so that :meth:`describe` tells configurations apart.
    loss : callable, optional
        ``loss(y_true, y_pred)`` gives an array (rows,). Entry r must depend on row r alone.
    statistic : callable, optional
        ``statistic(y_true, y_pred)`` gives one number. Needs `differences`.
    differences : callable or array-like of shape (rows,), optional
        Of each row, the most that replacing it can change `statistic`, in its units, with room for rounding errors.
        ``differences(y_true)`` may use what is public about the labels, such as class counts; and nothing else. Of real
        targets and of several labels for each row nothing is, so there it is given made-up ones.
    kernel : callable, optional
        The catalogue's own; leave it out.

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
        largest_group: int | None = None,
    ) -> BoundMetric:
        """Bind to private labels.

        The set of classes is treated as public, and so are weights. Numbers that rest on how many rows each class has
        are exact here; a guard tells them rounded, and prices them.

        Parameters
        ----------
        y : array-like of shape (rows,) or (rows, outputs)
            Labels (booleans, whole numbers, text, categories), for "values" real targets (those outside the metric's
            bounds are moved to them, and nothing says so), for "judged" the rows' ids. Several labels of a row are
            zeros and ones in a column for each; a row is one draw with all its outputs.
        classes : array-like, optional
            All classes that may occur in labels or predictions; by default those in `y`.
        sample_weight : array-like of shape (rows,), optional
            Weights of the rows, finite, >= 0, not all 0, as for scikit-learn; neighbours keep them. They are
            public: do not make them of the labels. Zeros and one other number, e.g. ``group == "A"``, make a slice:
            the metric of those rows alone, with as narrow intervals as a holdout of so many rows. Other weights are
            for means of losses (and "rmse"): c_r = w_r / sum of w.
        groups : array-like of shape (rows,), optional
            Names of what rows belong to, such as users: a group is one independent draw and counts once, with the mean
            of its rows. For means of losses (and "rmse"). They are public.
        largest_group : int, optional
            With `groups`: each row counts, of a larger group as many as this. For means of losses.

        Raises
        ------
        InputError
            If the labels do not fit the metric, or a trial of a user's own function on made-up labels does not give
            numbers, of classes within the bounds; no label is quoted.
        ModelError
            If a user's own function raises in that trial.

        Examples
        --------
        >>> from reusable_holdout.queries import resolve_metric
        >>> bound = resolve_metric("accuracy").bind(["no", "yes", "no"])
        >>> bound, bound.prepare(["yes", "yes", "no"])
        (<BoundMetric: accuracy, 3 rows>, array([1, 1, 0], dtype=uint8))
        """
        return BoundMetric(
            self, y, classes=classes, sample_weight=sample_weight, groups=groups, largest_group=largest_group
        )

    def measure(
        self,
        y: object,
        predictions: object,
        *,
        classes: object | None = None,
        sample_weight: object | None = None,
    ) -> float:
        """Plain value in the metric's own units, for data the analyst may see.

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
        >>> from reusable_holdout.queries import resolve_metric
        >>> resolve_metric("accuracy").measure(["no", "yes"], ["no", "no"])
        0.5
        """
        if self.response == "values":
            open_targets.check_open_targets(self, y)
        bound = self.bind(y, classes=classes, sample_weight=sample_weight)
        return bound.statistic.value(bound.prepare(predictions))


def unit_metric(
    name: str,
    response: Response,
    kernel: Kernel,
    *,
    family: Family = "bounded",
    greater_is_better: bool = True,
    parameters: Mapping[str, float] | None = None,
) -> Metric:
    """Metric of the catalogue whose values lie in [0, 1]."""
    return Metric(
        name=name,
        response=response,
        lower=0,
        upper=1,
        greater_is_better=greater_is_better,
        family=family,
        parameters=parameters or {},
        kernel=kernel,
    )
