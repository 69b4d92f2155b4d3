"""A holdout that goes to other processes lies on the disk once, and they map it: no copy for each."""

import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars
import pytest
from long_tests import GUARD
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from reusable_holdout import Metric
from reusable_holdout.errors import HandleError
from reusable_holdout.metrics import mae

ROWS = 2_000


@pytest.fixture
def sent(make_guard, ledger):
    """A guard, and what another process makes of its pickle."""
    others = []

    def make(place=ledger, **changes):
        guard = make_guard(place, **changes)
        others.append(pickle.loads(pickle.dumps(guard)))
        return guard, others[-1]

    yield make
    for other in others:
        other.close()


@pytest.fixture
def features(labels):
    return np.random.default_rng(5).normal(size=(ROWS, 4)) + labels[:, None]


def the_first_column_is_large(X):
    column = X.iloc[:, 0].to_numpy() if isinstance(X, pd.DataFrame) else X[:, 0]
    return (np.ravel(column.toarray() if sparse.issparse(column) else np.asarray(column)) > 0.5).astype(int)


class Threshold:
    """Predicts from the first column of whatever comes."""

    def predict(self, X):
        return the_first_column_is_large(np.array(X) if isinstance(X, list) else X)


class Rude:
    """Overwrites what it is given."""

    def predict(self, X):
        X[:] = 7.0
        return np.zeros(len(X), dtype=int)


# ---- what is mapped


def is_mapped(array):
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return not array.flags.writeable
        array = array.base
    return False


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_mapped_and_cannot_be_written(sent, features, dtype, order):
    _, other = sent(X=np.asarray(features > 0, dtype=dtype, order=order))
    for array in (other._view.holdout.X, other._view.holdout.y):
        assert is_mapped(array)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_frames_and_sparse_matrices_are_mapped(sent, features, tmp_path):
    _, other = sent(tmp_path / "frame.db", X=pd.DataFrame(features, columns=list("abcd")))
    assert is_mapped(other._view.holdout.X["c"].to_numpy())
    _, other = sent(tmp_path / "sparse.db", X=sparse.csr_array(features))
    assert is_mapped(other._view.holdout.X.data)
    assert is_mapped(other._view.holdout.X.indices)


def test_weights_are_mapped(sent, features):
    _, other = sent(sample_weight=(np.arange(ROWS) % 2).astype(float))
    assert is_mapped(other._view.holdout.sample_weight)


# ---- equal questions, equal answers

KINDS = {
    "array": lambda X: X,
    "columns first": np.asfortranarray,
    "every second column": lambda X: X[:, ::2],
    "float32": lambda X: X.astype(np.float32),
    "other bytes": lambda X: X.astype(">f8"),
    "frame": pd.DataFrame,
    "frame with text": lambda X: pd.DataFrame(X).assign(text=["a", "b"] * (ROWS // 2)),
    "frame of categories": lambda X: pd.DataFrame(X).assign(kind=pd.Categorical(["a", "b"] * (ROWS // 2))),
    "polars": polars.DataFrame,
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "lists": lambda X: X.tolist(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_has_the_same_holdout_whatever_its_type(sent, features, kind):
    """Its digest is checked when it is opened; the answer is that of the same rows."""
    guard, other = sent(X=KINDS[kind](features))
    answer = other.evaluate(Threshold(), prior=0.7)
    assert answer.value == guard.evaluate(Threshold(), prior=0.7).value
    twin = other.evaluate(the_first_column_is_large(features), prior=0.7)
    assert twin.value == answer.value
    assert type(other._view.holdout.X) is type(guard._view.holdout.X) or isinstance(
        other._view.holdout.X, np.memmap
    )


def test_a_holdout_that_was_mapped_by_its_owner_is_mapped_again(sent, features, tmp_path):
    np.save(tmp_path / "X.npy", features)
    guard, other = sent(X=np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert is_mapped(other._view.holdout.X)
    assert Path(other._view.holdout.X.filename).name == "guard.db.holdout"
    assert other.evaluate(Threshold(), prior=0.7).query == 1
    assert guard.evaluate(Threshold(), prior=0.7).replayed


@pytest.mark.parametrize(
    "metric", ["accuracy", "balanced_accuracy", "f1", "matthews_corrcoef", "roc_auc", "brier", "log_loss"]
)
def test_metrics_score_read_only_labels_and_weights_as_others(sent, labels, metric):
    guess = np.random.default_rng(1).random(ROWS)
    if metric in {"brier", "log_loss"}:
        guess = np.column_stack([1 - guess, guess])
    elif metric != "roc_auc":
        guess = (guess > 0.5).astype(int)
    weight = {"sample_weight": np.arange(ROWS) % 2} if metric == "accuracy" else {}
    settings = {"charges": 1, "queries": 5, "threshold": None, **weight}
    guard, other = sent(metric=metric, **settings)
    assert other._view.holdout.bound.score(other._view.holdout.bound.prepare(guess)[None]).tolist() == (
        guard._view.holdout.bound.score(guard._view.holdout.bound.prepare(guess)[None]).tolist()
    )


def absolute_error(y, predicted):
    return np.abs(y - predicted)


_OWN = {"name": "own", "lower": 0, "upper": 1, "greater_is_better": False, "response": "values"}


@pytest.mark.parametrize("metric", [mae(lower=0, upper=1), Metric(**_OWN, loss=absolute_error)])
def test_metrics_of_values_score_read_only_targets_as_others(sent, metric):
    rng = np.random.default_rng(2)
    y, guess = rng.random(ROWS), rng.random(ROWS)
    guard, other = sent(metric=metric, y=y, charges=1, threshold=None)
    one, two = guard._view.holdout.bound, other._view.holdout.bound
    assert one.score(one.prepare(guess)[None]).tolist() == two.score(two.prepare(guess)[None]).tolist()


# ---- models


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        KNeighborsClassifier(algorithm="kd_tree"),
        RandomForestClassifier(5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        SVC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_predict_on_a_mapped_holdout(sent, features, labels, model):
    """They get a copy that they may write to, so compiled code that asks for one works."""
    guard, other = sent(X=features)
    model.fit(features[:200] + 0.1, labels[:200])
    answer = other.evaluate(model, prior=0.7)
    assert answer.value == guard.evaluate(model, prior=0.7).value
    assert answer.high > answer.low


@pytest.mark.parametrize("kind", ["array", "frame", "columns first"])
def test_a_model_that_writes_into_its_features_changes_nobodys(sent, features, ledger, kind):
    guard, other = sent(X=KINDS[kind](features))
    before = ledger.with_name("guard.db.holdout").read_bytes()
    rude = other.evaluate(Rude(), prior=0.5)
    assert rude.low <= 0.5 <= rude.high  # it did not fail
    assert other.evaluate(Threshold(), prior=0.7).value == guard.evaluate(Threshold(), prior=0.7).value
    assert ledger.with_name("guard.db.holdout").read_bytes() == before


# ---- the file


def test_the_file_is_written_wholly_or_not_at_all(make_guard, ledger, monkeypatch):
    guard = make_guard(ledger)
    pickle.dumps(guard)
    before = ledger.with_name("guard.db.holdout").read_bytes()

    def interrupted(_, file, **__):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(joblib, "dump", interrupted)
    guard._handle = None
    with pytest.raises(KeyboardInterrupt):
        pickle.dumps(guard)
    assert [path.name for path in ledger.parent.glob("*holdout*")] == ["guard.db.holdout"]
    assert ledger.with_name("guard.db.holdout").read_bytes() == before


def test_a_mapped_holdout_survives_that_its_file_is_replaced(sent, make_guard, features, ledger):
    guard, other = sent(X=features)
    first = ledger.with_name("guard.db.holdout").stat().st_ino
    pickle.dumps(make_guard(ledger, X=features))
    assert ledger.with_name("guard.db.holdout").stat().st_ino != first
    answer = other.evaluate(Threshold(), prior=0.7)
    assert answer.value == guard.evaluate(Threshold(), prior=0.7).value


@pytest.mark.parametrize("damage", [b"", b"no pickle", b"half"])
def test_a_damaged_file_is_refused_without_its_words(make_guard, ledger, features, damage):
    blob = pickle.dumps(make_guard(ledger, X=features))
    path = ledger.with_name("guard.db.holdout")
    path.write_bytes(path.read_bytes()[:5_000] if damage == b"half" else damage)
    absent = pickle.loads(blob)
    with pytest.raises(HandleError, match="cannot be read") as caught:
        absent.history()
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_rows_that_are_arrays_in_a_list_take_no_mapping_each(sent, labels):
    """A process may have 65,530 mappings."""
    many = 70_000
    y = np.resize(labels, many)
    _, other = sent(X=[np.array([float(one)]) for one in y], y=y, queries=5)
    assert len(other._view.holdout.X) == many
    assert other.evaluate(Threshold(), prior=0.95).value == 0.95


def test_where_files_cannot_be_mapped_they_are_loaded(make_guard, ledger, features, monkeypatch):
    blob = pickle.dumps(make_guard(ledger, X=features))

    def refused(*_, **__):
        raise OSError(19, "No such device")

    monkeypatch.setattr("joblib.numpy_pickle.make_memmap", refused)
    with pickle.loads(blob) as other:
        assert not is_mapped(other._view.holdout.X)
        assert np.array_equal(other._view.holdout.X, features)


# ---- memory

_GROWTH = """
import pickle, sys, psutil
from reusable_holdout import ReusableHoldout
import joblib, sklearn.utils.validation
blob = open(sys.argv[1], "rb").read()
before = psutil.Process().memory_full_info().uss
guard = pickle.loads(blob)
total = float(guard._view.holdout.X.sum())  # touches every page
answer = guard.evaluate(guard._view.holdout.X[:, 0].astype(int), prior=1.0)
print("ready", flush=True)
sys.stdin.readline()  # until the other has it mapped too: a page that one alone has mapped counts as its own
print(psutil.Process().memory_full_info().uss - before, total, answer.query, flush=True)
sys.stdin.readline()
"""


@pytest.mark.long(*GUARD)
@pytest.mark.skipif(sys.platform != "linux", reason="counts pages as Linux does")
def test_two_workers_share_the_pages_of_one_holdout(make_guard, ledger, tmp_path):
    """200 MB; what each worker adds to the machine is a tenth of that at most."""
    X = np.ones((50_000, 500))
    guard = make_guard(ledger, X=X, y=np.arange(50_000) % 2)
    (tmp_path / "guard.pickle").write_bytes(pickle.dumps(guard))
    command = [sys.executable, "-c", _GROWTH, str(tmp_path / "guard.pickle")]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 2
    grown = []
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
        grown.append(worker.stdout.readline().split())
    for worker in workers:
        worker.communicate("end\n")
    assert [(float(total), int(query)) for _, total, query in grown] == [(X.size, 1)] * 2
    assert max(int(uss) for uss, *_ in grown) < 0.1 * X.nbytes, grown
