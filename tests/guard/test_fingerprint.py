"""A model's fingerprint is its content, wherever it was fitted."""

import mmap
import pickle
import socket
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import joblib
import numpy as np
import pytest
from cases import for_each
from joblib import delayed
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from reusable_holdout.guard.fingerprint import fingerprint


def fit(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    return model.fit(X, (X[:, 0] > 0).astype(int))


@for_each(
    "model",
    [
        LogisticRegression(),
        SVC(),
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), FunctionTransformer(np.abs), LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=np.random.RandomState(0)),
        HistGradientBoostingClassifier(max_iter=3, random_state=0),
        VotingClassifier([("svc", SVC()), ("bayes", GaussianNB())]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_journey_changes_nothing_and_a_parameter_does(model):
    here = fingerprint(fit(clone(model)))
    assert fingerprint(pickle.loads(pickle.dumps(fit(clone(model))))) == here
    there = joblib.Parallel(2)(delayed(fit)(clone(model)) for _ in range(2))
    assert [fingerprint(one) for one in there] == [here, here]
    assert fingerprint(model) != here
    name = next(name for name, value in model.get_params().items() if isinstance(value, int | float))
    assert fingerprint(fit(clone(model)).set_params(**{name: 77})) != here


def test_random_fits_and_what_cannot_be_pickled_are_different_each_time():
    forest = RandomForestClassifier(3)
    assert fingerprint(fit(clone(forest))) != fingerprint(fit(clone(forest)))
    with Path(__file__).open("rb") as file, mmap.mmap(-1, 8) as mapped, socket.socket() as network:
        for held in (file, mapped, network, threading.Lock(), (one for one in ""), memoryview(b"")):
            local = make_pipeline(FunctionTransformer(held), LogisticRegression())
            assert fingerprint(local) != fingerprint(local)


def test_values_are_told_apart():
    cycle = []
    cycle.append(cycle)
    values = [
        *(1, 1.0, True, "1", b"1", None, ..., 1j, np.float32(1), np.int64(1)),
        *([], (), {}, set(), [1], (1,), {1: 1}, {1}, frozenset({1}), [[1], 2], [1, [2]]),
        *(np.array([1, 2]), np.array([[1, 2]]), np.array([1.0, 2.0]), np.array([1, None]), np.array(["a"])),
        *(np.zeros(1, dtype=[("a", "i1"), ("b", "i8")]), np.zeros(1, dtype=[("a", "i1")])),
        *([deque([1]), deque([2])], [deque([1, deque()]), 2], np.ma.array([1, 2], mask=[True, False])),
        *(np.ma.array([1, 2]), np.array([[1], [2]], dtype=object)),
        *(int, len, np.abs, cycle, {"a": 1, "b": 2}, {"a": 2, "b": 1}, float("nan")),
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert [fingerprint(value) for value in values] == [fingerprint(value) for value in values]


def test_what_is_no_content_does_not_count():
    array = np.arange(12.0).reshape(3, 4)
    assert fingerprint(np.asfortranarray(array)) == fingerprint(array) == fingerprint(array[::1])
    shared = [1]
    assert fingerprint([shared, shared]) == fingerprint([[1], [1]])
    assert fingerprint(SVC()) == fingerprint(SVC())
    assert fingerprint(RandomForestClassifier(n_jobs=2)) == fingerprint(RandomForestClassifier(n_jobs=1))


def test_a_process_whose_folder_is_gone_knows_the_same_models(tmp_path):
    """As joblib's workers may be, which outlive the folder that they were started in."""
    path = tmp_path / "model.pkl"
    model = fit(RandomForestClassifier(2, random_state=0))
    path.write_bytes(pickle.dumps(model))
    code = f"""
import os, pickle, tempfile
import sklearn.ensemble  # while there is a folder: Python 3.13.0 cannot import sockets in one that is gone
from reusable_holdout.guard.fingerprint import fingerprint
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
with open({str(path)!r}, "rb") as file:
    print(fingerprint(pickle.load(file)).hex())
"""
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == fingerprint(model).hex()


# ---- CatBoost: each fit writes its date and a random name into the model


class StandsForCatBoost:
    """As `catboost.core.CatBoostClassifier` of 1.2.10: what its pickle holds, and what its copies can change."""

    def __init__(self, leaves, metadata):
        self._leaves, self._metadata = leaves, metadata

    def get_metadata(self):
        return self._metadata

    def copy(self):
        return StandsForCatBoost(self._leaves, dict(self._metadata))

    def __getstate__(self):
        return {"iterations": 5, "__model": repr((self._leaves, self._metadata)).encode()}


def test_a_catboost_model_is_the_same_whenever_it_was_fitted():
    first, second = (
        {"model_guid": name, "train_finish_time": date, "params": "{}"}
        for name, date in [("a1", "2026-01-01"), ("b22", "2026-01-02")]
    )
    one, again = StandsForCatBoost([0.5], first), StandsForCatBoost([0.5], second)
    assert fingerprint(one) == fingerprint(one) == fingerprint(again)
    assert one.get_metadata()["model_guid"] == "a1"
    for other in (StandsForCatBoost([0.6], first), StandsForCatBoost([0.5], {**first, "params": "{1}"})):
        assert fingerprint(other) != fingerprint(one)


def test_a_real_catboost_model_is_the_same_whenever_it_was_fitted():
    catboost = pytest.importorskip("catboost")
    settings = {"iterations": 3, "depth": 2, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    one, again, other = (
        fit(catboost.CatBoostClassifier(**settings, learning_rate=rate)) for rate in (0.5, 0.5, 0.1)
    )
    assert fingerprint(one) == fingerprint(pickle.loads(pickle.dumps(one))) == fingerprint(again)
    assert fingerprint(other) != fingerprint(one)
