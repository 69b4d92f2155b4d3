"""Teachers, which are models of disjoint parts of the private rows, and their votes on public rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from reusable_holdout.demo.datasets import load_adult

COMPONENTS = 20


class Setting(NamedTuple):
    """The numbers of public rows and of teachers, and the pairs (epsilon, charges) to try."""

    queries: int
    tests: int
    teachers: int
    threshold: int  # votes below which a label is not worth a charge
    budgets: list[tuple[float, int]]
    strange: bool = False  # every second query belongs to no class: it lies between all of them


SETTINGS = {
    "digits": Setting(queries=600, tests=200, teachers=100, threshold=50, budgets=[(8.0, 20), (50.0, 60)]),
    "adult": Setting(
        queries=5_000, tests=5_000, teachers=500, threshold=350, budgets=[(2.0, 40), (4.0, 160), (8.0, 100)]
    ),
    "strange": Setting(
        queries=3_000, tests=5_000, teachers=250, threshold=125, budgets=[(4.0, 20), (8.0, 60)], strange=True
    ),
}


class Votes(NamedTuple):
    """The teachers' votes, and the features of the public rows for queries and for tests of a student.

    ``counts`` are the votes, shape (queries, classes), which are private; ``truth`` and ``test_truth`` are for the
    evaluation alone.
    """

    counts: NDArray[np.int64]
    truth: NDArray[np.int64]
    features: NDArray[np.float64]
    tests: NDArray[np.float64]
    test_truth: NDArray[np.int64]


def load(name: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Load features and classes 0, 1, ... of a data set; the data of "strange" are drawn from ten normal laws."""
    if name == "digits":
        X, y = load_digits(return_X_y=True, as_frame=True)
    elif name == "adult":
        X, y = load_adult()
    else:
        drawn, classes = make_blobs(
            60_000, COMPONENTS, centers=10, cluster_std=2.0, center_box=(-4, 4), random_state=0
        )
        X, y = pd.DataFrame(drawn), pd.Series(classes)
    return X, y.to_numpy().astype(np.int64)


def vote(name: str, *, seed: int) -> Votes:
    """Deal the private rows to the teachers, fit them, and let them vote on the public rows."""
    X, y = load(name)
    setting = SETTINGS[name]
    X_private, X_public, y_private, truth = train_test_split(
        X, y, test_size=setting.queries + setting.tests, random_state=seed
    )
    if setting.strange:
        amid = np.random.default_rng(seed).normal(scale=0.02, size=(-(-setting.queries // 2), X.shape[1]))
        X_public.iloc[: setting.queries : 2] = X_public.mean().to_numpy() + amid * X_public.std().to_numpy()
    text = X.select_dtypes(exclude="number").columns
    codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    features = make_pipeline(
        make_column_transformer((codes, text), remainder=StandardScaler()),
        PCA(COMPONENTS, random_state=seed),
    ).fit(X_public)  # on public rows alone: a private row must reach one teacher only
    private, public = features.transform(X_private), features.transform(X_public)
    asked, tests = public[: setting.queries], public[setting.queries :]
    dealt = np.random.default_rng(seed).permutation(len(private))
    counts = np.zeros((len(asked), int(truth.max()) + 1), dtype=np.int64)
    for own in np.array_split(dealt, setting.teachers):
        counts[np.arange(len(asked)), predictions(private[own], y_private[own], asked)] += 1
    return Votes(counts, truth[: setting.queries], asked, tests, truth[setting.queries :])


def predictions(X: NDArray[np.float64], y: NDArray[np.int64], rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Predict rows by a model of others; if these have one class, predict it, and class 0 if there are none."""
    seen = np.unique(y)
    if len(seen) < 2:
        return np.full(len(rows), seen[0] if len(seen) else 0, dtype=np.int64)
    return np.asarray(RidgeClassifier(alpha=5.0).fit(X, y).predict(rows), dtype=np.int64)
