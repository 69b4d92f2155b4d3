"""Guards whose questions are all charged, so that the budget can be counted; and a Dask cluster."""

import contextlib

import numpy as np
import pytest
from conformance.cells import used
from made_guards import made_guard

ROWS = 2_000
_LABELS = np.random.default_rng(0).integers(0, 2, ROWS)


@pytest.fixture
def make_guard(tmp_path, closed_at_the_end):
    """Guards with a file for a ledger, closed when the test ends; without noise every question is charged."""

    def make(name="guard.db", *, X=None, y=_LABELS, **changes):
        wish = {"queries": 200, "charges": 25, "threshold": 0.1, "noise": 0.0, "estimate": 0.7}
        wish |= {"vacuous": True, "ledger": tmp_path / name, **changes}
        return closed_at_the_end(made_guard(X, y, **wish))

    return make


@pytest.fixture
def predictions():
    """Predictions that are right on 1,400 rows; each number gives others."""

    def numbered(number):
        return np.where(np.roll(np.arange(ROWS) >= 1_400, number), 1 - _LABELS, _LABELS)

    return numbered


@pytest.fixture(scope="module", params=["loky", "threading", "multiprocessing", "dask"])
def backend(request):
    """Name of a backend; all tests of one run together, and the cluster only while Dask's is asked for.

    A process that forks with a cluster in it, as joblib does for multiprocessing, was seen to lose its workers.
    """
    with used("dask") if request.param == "dask" else contextlib.nullcontext():
        yield request.param
