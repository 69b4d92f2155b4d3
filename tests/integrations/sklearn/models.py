"""Models that count their fits, or fail on the holdout's 4,000 rows; in a module, so that workers find them."""

from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

__all__ = ["Counting", "FailsOnTheHoldout", "TreeFailsOnTheHoldout"]

_HELD_OUT = 4_000


class Counting(DecisionTreeClassifier):
    """Counts the fits of all its kind."""

    fits = 0

    def fit(self, X, y, sample_weight=None, check_input=True):
        type(self).fits += 1
        return super().fit(X, y, sample_weight, check_input)


class FailsOnTheHoldout(DummyClassifier):
    """Fails on the holdout, in words that are the holdout's own."""

    def predict(self, X):
        if len(X) == _HELD_OUT:
            raise ValueError("private words")
        return super().predict(X)


class TreeFailsOnTheHoldout(DecisionTreeClassifier):
    """Fails on the holdout if its depth is between two numbers."""

    def __init__(self, *, max_depth=None, random_state=None, since=0, until=99):
        super().__init__(max_depth=max_depth, random_state=random_state)
        self.since, self.until = since, until

    def predict(self, X, check_input=True):
        if len(X) == _HELD_OUT and self.since <= self.max_depth <= self.until:
            raise ValueError("private words")
        return super().predict(X, check_input)
