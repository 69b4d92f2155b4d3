"""Guards whose questions are all charged, so that the budget can be counted; and a Dask cluster."""

import contextlib

import numpy as np
import pytest

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import Halted

ROWS = 2_000
_LABELS = np.random.default_rng(0).integers(0, 2, ROWS)


@pytest.fixture
def make_guard(tmp_path):
    """Guards with a file for a ledger, closed when the test ends; without noise every question is charged."""
    made = []

    def make(name="guard.db", *, charges=25, X=None, y=_LABELS, **changes):
        settings = {
            "queries": 200,
            "threshold": 0.1,
            "noise_scale": 0.0,
            "estimate": 0.7,
            "vacuous": True,
        }
        guard = ReusableHoldout(X, y, charges=charges, ledger=tmp_path / name, **{**settings, **changes})
        made.append(guard)
        return guard

    yield make
    for guard in made:
        guard.close()


@pytest.fixture
def predictions():
    """Predictions that are right on 1,400 rows; each number gives others."""

    def numbered(number):
        return np.where(np.roll(np.arange(ROWS) >= 1_400, number), 1 - _LABELS, _LABELS)

    return numbered


@pytest.fixture
def answer_or_halt():
    """A function that workers get by value: asks, and gives the answer or the reason of the halt."""

    def ask(guard, predictions, name, answer=Answer, halted=Halted):
        try:
            return answer(*guard.evaluate_predictions(predictions, prior=0.85, name=name))
        except halted as halt:
            return halt.reason

    return ask


@contextlib.contextmanager
def dask_cluster():
    """Two workers, each a process, on loopback and without a dashboard; its port is any that is free."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield


@pytest.fixture(scope="module", params=["loky", "threading", "multiprocessing", "dask"])
def backend(request):
    """Name of a backend; all tests of one run together, and the cluster only while Dask's is asked for.

    A process that forks with a cluster in it, as joblib does for multiprocessing, was seen to lose its workers.
    """
    with dask_cluster() if request.param == "dask" else contextlib.nullcontext():
        yield request.param
