"""The table of the library's metrics, with one entry for each name.

:func:`resolve_metric` looks names up in this table, and takes from it the advice for users of scikit-learn. The tests
run every metric in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reusable_holdout.metrics.confusion_metrics import f1, fbeta, jaccard, matthews_corrcoef, precision
from reusable_holdout.metrics.judged import score
from reusable_holdout.metrics.label_metrics import (
    accuracy,
    balanced_accuracy,
    hamming_loss,
    recall,
    specificity,
    zero_one_loss,
)
from reusable_holdout.metrics.mean_losses import brier, log_loss, mae, mse, negated, quantile_loss
from reusable_holdout.metrics.metric import Metric
from reusable_holdout.metrics.ranks import average_precision, roc_auc, roc_auc_ovr
from reusable_holdout.metrics.squared_errors import r2, rmse


@dataclass(frozen=True)
class Entry:
    """A metric of the catalogue, with the function of scikit-learn that computes the same number.

    The name, response, bounds, direction and family are not stored here. They are those of the metric that `factory`
    makes.

    Attributes
    ----------
    factory : callable
        Function that makes the metric; its parameters have the names that :meth:`Metric.describe` gives them.
    function : str
        Function of `sklearn.metrics` with the same value; empty if there is none.
    called : mapping
        Arguments of `function`, besides labels and predictions.
    fixed : mapping
        Arguments of `factory` that follow from the name, such as the average of "f1_macro".
    stated : mapping
        Arguments of `factory` that a user must state, with values that tests use; empty if the name is enough.
    sign : {1, -1}
        -1 if the metric is the factory's loss with the opposite sign.
    two_classes : bool
        True if the labels must have exactly two classes.
    """

    factory: Callable[..., Metric]
    function: str = ""
    called: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)
    sign: int = 1
    two_classes: bool = False

    def metric(self, **parameters: Any) -> Metric:
        """Make the metric of this entry with the given parameters."""
        made = self.factory(**self.fixed, **parameters)
        return made if self.sign > 0 else negated(made)

    def spelled(self) -> str:
        """Return the code that a user writes to get this metric, with dots for the numbers that the user must state."""
        if not self.stated:
            return f'"{self.metric().name}"'
        shown = dict.fromkeys(self.stated, "...") | {word: repr(one) for word, one in self.fixed.items()}
        call = f"{self.factory.__name__}({', '.join(f'{word}={one}' for word, one in shown.items())})"
        return call if self.sign > 0 else f"negated({call})"


_BOUNDS = {"lower": -1.0, "upper": 3.0}


def _averaged(factory: Callable[..., Metric], function: str, **stated: float) -> Iterator[Entry]:
    """Yield the entries of a metric of one class and of its averages over classes.

    The stated numbers, such as beta, do not change the "micro" average, so there they are fixed at 1.
    """
    yield Entry(factory, function, stated=stated, two_classes=True)
    for average in ("macro", "weighted"):
        yield Entry(factory, function, {"average": average}, fixed={"average": average}, stated=stated)
    yield Entry(
        factory, function, {"average": "micro"}, fixed={"average": "micro"} | dict.fromkeys(stated, 1)
    )


def _signed(factory: Callable[..., Metric], function: str, **stated: float) -> Iterator[Entry]:
    """Yield the entries of a loss and of the same loss with the opposite sign."""
    for sign in (1, -1):
        yield Entry(factory, function, stated=stated, sign=sign)


_ENTRIES = (
    Entry(accuracy, "accuracy_score"),
    Entry(zero_one_loss, "zero_one_loss"),
    Entry(balanced_accuracy, "balanced_accuracy_score"),
    *_averaged(recall, "recall_score"),
    Entry(specificity, "recall_score", {"pos_label": 0}, two_classes=True),
    *_averaged(precision, "precision_score"),
    *_averaged(f1, "f1_score"),
    *_averaged(fbeta, "fbeta_score", beta=2.0),
    Entry(jaccard, "jaccard_score", two_classes=True),
    Entry(matthews_corrcoef, "matthews_corrcoef", two_classes=True),
    *_signed(hamming_loss, "hamming_loss"),
    Entry(brier, "brier_score_loss"),
    Entry(brier, "brier_score_loss", sign=-1, two_classes=True),
    *_signed(log_loss, "log_loss"),
    Entry(roc_auc, "roc_auc_score", two_classes=True),
    Entry(roc_auc_ovr, "roc_auc_score", {"multi_class": "ovr"}),
    Entry(roc_auc_ovr, "roc_auc_score", {"multi_class": "ovr", "average": "weighted"}, {"weighted": True}),
    Entry(average_precision, "average_precision_score", two_classes=True),
    *_signed(mae, "mean_absolute_error", **_BOUNDS),
    *_signed(mse, "mean_squared_error", **_BOUNDS),
    *_signed(rmse, "root_mean_squared_error", **_BOUNDS),
    *_signed(quantile_loss, "mean_pinball_loss", **_BOUNDS, quantile=0.5),
    Entry(r2, "r2_score", stated=_BOUNDS | {"variance": 1.25}),
    Entry(score),
)
CATALOGUE: Mapping[str, Entry] = {entry.metric(**entry.stated).name: entry for entry in _ENTRIES}
