"""Real rows, and a random search over cheap models that are fitted to some of them.

Each candidate is fitted six times on a split, on each of five folds' complements and on all training rows, and its
predictions of every row are kept: out of fold for the training rows, those of the whole fit for all others. Whatever is
compared on the split shares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout.demo.datasets import load_adult

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Fitted", "Rows", "Split", "fit", "load", "propose", "split"]

FOLDS = 5


class Rows(NamedTuple):
    """A data set."""

    X: NDArray[np.float64]
    y: NDArray[np.int8]


class Split(NamedTuple):
    """Places of the rows of disjoint random parts."""

    train: NDArray[np.int64]
    holdout: NDArray[np.int64]
    fresh: NDArray[np.int64]


class Fitted(NamedTuple):
    """Candidates of one split.

    Attributes
    ----------
    predictions : numpy.ndarray of shape (candidates, rows)
        Classes; of a training row out of its fold.
    means : numpy.ndarray of shape (candidates,)
        Of the accuracies of the folds.
    folds : list of pairs of numpy.ndarray
        Places among the training rows, as scikit-learn's splitters give them.
    """

    predictions: NDArray[np.int8]
    means: NDArray[np.float64]
    folds: list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def load(name: str) -> Rows:
    """UCI Adult, which ships with the library, or a set that scikit-learn ships; texts become codes."""
    if name == "adult":
        X, y = load_adult()
        codes = X.apply(lambda one: one if one.dtype.kind in "if" else one.astype("category").cat.codes)
        return Rows(codes.to_numpy(np.float64), y.to_numpy().astype(np.int8))
    X, y = {"digits": load_digits, "breast cancer": load_breast_cancer}[name](return_X_y=True)
    return Rows(X, y.astype(np.int8))


def split(rows: Rows, *, train: int, holdout: int, seed: int) -> Split:
    """Parts at random; the fresh rows are all that is left."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    return Split(*np.split(order, [train, train + holdout]))


def propose(count: int, *, few_rows: bool, seed: int) -> list[BaseEstimator]:
    """Draw models of a random search: half are trees, and a tenth or more each of four better kinds.

    Where there are few rows the last kind is a support vector machine, elsewhere boosted trees.
    """
    rng = np.random.default_rng(seed)

    def wide(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    def tree() -> Any:
        shape = {"max_depth": int(rng.integers(3, 13)), "min_samples_leaf": round(wide(1, 30))}
        return DecisionTreeClassifier(**shape, random_state=int(rng.integers(2**31)))

    def forest() -> Any:
        shape = {"min_samples_leaf": round(wide(1, 20)), "max_features": float(rng.uniform(0.1, 0.6))}
        return RandomForestClassifier(15, **shape, random_state=int(rng.integers(2**31)))

    def logistic() -> Any:
        return make_pipeline(StandardScaler(), LogisticRegression(C=wide(1e-3, 10.0), max_iter=500))

    def discriminant() -> Any:
        return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=float(rng.uniform(0.0, 0.9)))

    def best() -> Any:
        if few_rows:
            machine = SVC(C=wide(0.1, 30.0), gamma=wide(1e-3, 0.1))
            return make_pipeline(StandardScaler(), machine)
        shape = {"max_leaf_nodes": int(rng.integers(4, 16)), "learning_rate": wide(0.05, 0.4)}
        return HistGradientBoostingClassifier(max_iter=30, **shape, random_state=0)

    kinds = [tree, tree, tree, tree, tree, forest, forest, logistic, discriminant, best]
    return [kinds[place % len(kinds)]() for place in range(count)]


def fit(rows: Rows, parts: Split, models: list[BaseEstimator], *, jobs: int) -> Fitted:
    """Fit each candidate six times."""
    X, y = rows.X[parts.train], rows.y[parts.train]
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    predicted = Parallel(n_jobs=jobs)(delayed(_fit_one)(rows, parts.train, folds, one) for one in models)
    predictions = np.array([each for each, _ in predicted])
    return Fitted(predictions, np.array([mean for _, mean in predicted]), folds)


def _fit_one(
    rows: Rows, train: NDArray[np.int64], folds: list[Any], model: BaseEstimator
) -> tuple[NDArray[np.int8], float]:
    X, y = rows.X[train], rows.y[train]
    predictions = clone(model).fit(X, y).predict(rows.X)
    means = []
    for rest, fold in folds:
        own = clone(model).fit(X[rest], y[rest]).predict(X[fold])
        predictions[train[fold]] = own
        means.append(float(np.mean(own == y[fold])))
    return predictions.astype(np.int8), float(np.mean(means))
