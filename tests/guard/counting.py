"""A metric and models that note when they see the holdout's rows, and others that fail on them or read a column."""

import numpy as np
import scipy.sparse

from reusable_holdout import Metric

__all__ = [
    "AGREEMENT", "ROWS", "Counted", "Counting", "Crashing", "Failing", "Refusing", "Sign", "fragile", "predictions"
]  # fmt: skip

ROWS = 2_000


class Counting:
    """Counts how often the metric measured, and its models predicted, the holdout's rows."""

    def __init__(self):
        self.measured = self.predicted = 0

    def loss(self, y_true, y_pred):
        wrong = np.asarray(y_true) != np.asarray(y_pred)
        self.measured += bool(wrong.any())  # on the labels themselves it is tried when it is bound
        return wrong.astype(float)

    def metric(self, name="own"):
        return Metric(
            name=name, greater_is_better=False, lower=0.0, upper=1.0, family="binomial", response="labels",
            loss=self.loss,
        )  # fmt: skip

    def model(self, share=0.7):
        return Counted(self, share)

    @property
    def used(self):
        return self.measured + self.predicted


class Counted:
    """Predicts ones, but for a share of the rows."""

    def __init__(self, counting, share):
        self.counting, self.share = counting, share

    def predict(self, X):
        self.counting.predicted += len(X) == ROWS  # on others it is tried before
        return (np.arange(len(X)) >= self.share * len(X)).astype(int)

    def __getstate__(self):  # what it is: who counts is no part of it
        return {"share": self.share}


class Failing(Counted):
    """Fails on the holdout's rows, and on others in another way."""

    def predict(self, X):
        super().predict(X)
        raise ValueError(f"rows {X}")


class Refusing(Counted):
    """Wants no array, whatever is in it."""

    def predict(self, X):
        super().predict(X)
        raise TypeError(f"expecting a DMatrix, got {type(X).__name__}")


def predictions(share):
    """What a model of this share predicts."""
    return (np.arange(ROWS) >= share * ROWS).astype(int)


class Crashing:
    """A model that fails on any rows, each time in another way, and tells them."""

    def predict(self, X):
        raise RuntimeError(f"rows {X!r}")

    predict_proba = predict


class Sign:
    """Predicts by the sign of the first column, whatever the container; each number is another model."""

    def __init__(self, number=0):
        self.number = number

    def predict(self, X):
        if scipy.sparse.issparse(X):
            return (X.tocsc()[:, [0]].toarray()[:, 0] > 0).astype(int)
        if isinstance(X, list):
            return [int(row[0] > 0) for row in X]
        first = X["a"].to_numpy() if hasattr(X, "columns") else np.asarray(X)[:, 0]
        return (first > 0).astype(int)


AGREEMENT = {
    "lower": 0, "upper": 1, "greater_is_better": True, "family": "binomial", "response": "labels"
}  # fmt: skip


def fragile():
    """A metric that fails where the first row is mistaken, and quotes it."""

    def loss(y, p):
        if y[0] != p[0]:
            raise ValueError(f"row 0 is {y[0]}")
        return y == p

    return Metric(name="agreement", loss=loss, **AGREEMENT)
