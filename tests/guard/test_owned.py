"""What is done to the data that a guard was given changes nothing of what it answers."""

import hashlib
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from cases import for_each
from guard.counting import Sign

from reusable_holdout import verify
from reusable_holdout.errors import InputError
from reusable_holdout.guard.digests import holdout_digest, own

ROWS = 2_000


def negated_list(X):
    for row in X:
        row[0] = -row[0]


def negated_sparse(X):
    X.data *= -1.0


def negated_frame(X):
    X.loc[:, "a"] = -X["a"]


def negated_polars(X):
    X.replace_column(0, -X["a"])


def filled(X):
    X.fillna(-5.0, inplace=True)  # noqa: PD002 - what people do


CONTAINERS = {
    "numpy": (np.array, lambda X: np.negative(X, out=X)),
    "view": (lambda X: np.concatenate([X, X])[:ROWS], lambda X: np.negative(X.base, out=X.base)),
    "fortran": (np.asfortranarray, lambda X: X.fill(0.0)),
    "list": (lambda X: X.tolist(), negated_list),
    "pandas": (lambda X: pd.DataFrame(X, columns=["a", "b"]), negated_frame),
    "shared with NumPy": (lambda X: pd.DataFrame(X, columns=["a", "b"], copy=False), None),
    "polars": (lambda X: pl.DataFrame(X, schema=["a", "b"]), negated_polars),
    "csr": (scipy.sparse.csr_matrix, negated_sparse),
    "coo": (scipy.sparse.coo_array, negated_sparse),
}


@pytest.fixture
def features(labels):
    return np.stack([np.where(labels, 1.0, -1.0), np.arange(ROWS) / ROWS], axis=1)


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_features_that_are_changed_afterwards_are_asked_as_they_came(
    make_guard, ledger, labels, features, container, durable
):
    make, change = CONTAINERS[container]
    X = make(features)
    guard = make_guard(ledger if durable else None, X=X)
    first = guard.evaluate(Sign(), prior=1.0)
    assert first.value == 1.0
    if change is None:
        np.negative(features, out=features)
    else:
        change(X)
    assert np.mean(np.asarray(Sign().predict(X)) == labels) < 0.9  # it did change
    again = guard.evaluate(Sign(), prior=1.0)
    assert again.replayed
    assert again._replace(replayed=False) == first
    assert guard.evaluate(Sign(1), prior=1.0).value == 1.0
    assert guard.charges_left == 3
    assert guard.final(Sign(2)).value == 1.0


def test_missing_values_that_are_filled_in_place_stay_missing_in_the_guard(make_guard, labels, features):
    X = pd.DataFrame(np.where(features > 0, features, np.nan), columns=["a", "b"])
    guard = make_guard(X=X)
    filled(X)
    assert not X.isna().any(axis=None)
    assert guard._view.holdout.X.isna().sum().sum() == (features <= 0).sum()


def test_labels_in_the_memory_of_pyarrow_are_copied_out_of_it(make_guard, labels, features):
    arrow = pytest.importorskip("pyarrow")
    y, only = np.array(labels), np.ascontiguousarray(features[:, 0])
    weights = np.ones(ROWS)
    shared = {
        name: arrow.array(values) for name, values in {"y": y, "only": only, "weights": weights}.items()
    }
    assert np.shares_memory(shared["y"].to_numpy(), y)
    X = arrow.table({"a": shared["only"]})
    guard = make_guard(X=X, y=shared["y"], sample_weight=shared["weights"])
    y[:], only[:], weights[: ROWS // 2] = 1 - y, -only, 0.0
    assert guard.evaluate(labels, prior=1.0).value == 1.0
    assert not guard.on("zero_one_loss", allow={"vacuous"}).evaluate(labels, prior=0.0).charged
    assert guard.evaluate(Sign(), prior=1.0).value == 1.0


@for_each("container", ["numpy", "list", "pandas"])
def test_labels_weights_and_groups_that_are_changed_afterwards_are_asked_as_they_came(
    make_guard, ledger, labels, features, container
):
    wrap = {"numpy": np.array, "list": lambda given: given.tolist(), "pandas": pd.Series}[container]
    y, weights, groups = wrap(labels), wrap(np.ones(ROWS)), wrap(np.arange(ROWS) // 2)
    weights[0] = 0.0
    guard = make_guard(ledger, X=features, y=y, sample_weight=weights, reveals=3)
    together = make_guard(X=features, y=y, groups=groups)
    for place in range(ROWS):
        y[place], weights[place], groups[place] = 0, 1.0 + place, 0
    for one in (guard, together):
        assert one.evaluate(Sign(), prior=1.0).value == 1.0
    recalls = guard.on(metric="balanced_accuracy", allow={"vacuous"})
    assert recalls.reveal(Sign(), prior=1.0).value > 0.95
    assert together.gate(Sign(), 0.8).charged
    with pickle.loads(pickle.dumps(guard)) as other:  # its handle is of what the ledger names
        assert other.digest == guard.digest
        assert other.evaluate(Sign(1), prior=1.0).value == 1.0
    assert verify(guard.ledger).sound


def test_a_fresh_holdout_is_copied_too_and_what_is_released_is_what_was_asked(make_guard, ledger, labels):
    old = np.stack([np.where(labels, 1.0, -1.0), np.arange(ROWS) / ROWS], axis=1)
    fresh = old + np.array([0.0, 1.0])
    guard = make_guard(ledger, X=old)
    old[:] = 0.0
    rotation = guard.rotate(fresh, labels, early=True)
    fresh[:] = 0.0
    assert np.array_equal(rotation.X[:, 0] > 0, labels)
    with rotation.guard as other:
        assert other.evaluate(Sign(), prior=1.0).value == 1.0


def test_rows_are_copied_once(make_guard, ledger, labels, features):
    guard = make_guard(ledger, X=features)
    held = guard._view.holdout
    assert not np.shares_memory(held.X, features)
    view = guard.on(sample_weight=np.arange(ROWS) % 2, allow={"vacuous"})
    assert view._view.holdout.X is held.X
    assert view._view.holdout.y is held.y
    with pickle.loads(pickle.dumps(guard)) as other:
        assert isinstance(other._view.holdout.X, np.memmap)  # the file that all processes share
    frame = pl.DataFrame(features, schema=["a", "b"])
    mine = own(frame)
    assert mine is not frame
    assert np.shares_memory(mine["a"].to_numpy(), frame["a"].to_numpy())


def test_an_array_that_is_mapped_read_only_stays_where_it_is(tmp_path, features):
    np.save(tmp_path / "X.npy", features)
    for mode, stays in {"r": True, "c": False, "r+": False}.items():
        mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
        part = mapped[5:].view()
        part.flags.writeable = False
        assert (own(mapped) is mapped) == stays
        assert np.shares_memory(own(part), mapped) == stays
        assert np.array_equal(own(part), features[5:])


def test_a_copy_has_the_digest_of_what_was_copied(labels, features):
    for make, _ in CONTAINERS.values():
        X = make(features)
        assert holdout_digest(hashlib.blake2b, own(X), own(labels)) == holdout_digest(
            hashlib.blake2b, X, labels
        )


def test_what_cannot_be_copied_is_refused_in_words_without_its_own(make_guard, labels):
    class Stubborn:
        shape = (ROWS, 2)

        def copy(self):
            raise RuntimeError("PRIVATE 17")

    with pytest.raises(InputError, match="got Stubborn; read it into an array; nothing was made") as caught:
        make_guard(X=Stubborn())
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
