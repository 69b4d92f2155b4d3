"""Rows that a holdout must not have are looked for when its owner makes or rotates a guard."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from cases import for_each, refuses
from children import Child
from guard.forging import sql
from made_guards import made_guard

from reusable_holdout import ParquetRows, ReusableHoldout, Rows, verify
from reusable_holdout.errors import InputError, LedgerMismatchError, OverlapError, TamperedLedgerError
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.ledger.storage import SqlLedger

ROWS = 600
RNG = np.random.default_rng(0)
POOL = RNG.normal(size=(4 * ROWS, 4))
HELD, SECOND, THIRD, TRAIN = np.split(POOL, 4)
Y = RNG.integers(0, 2, ROWS)
NAMES = ["d", "a", "c", "b"]
WISH = {"queries": 20, "charges": 2, "estimate": 0.7, "seed": 1, "vacuous": True}
IDS = np.array([f"r{k}" for k in range(3 * ROWS)])
MIXED = np.r_[TRAIN, HELD[:3]]


def make(X=HELD, y=Y, ledger=None, **changes):
    return made_guard(X, y, ledger=ledger, **(WISH | changes))


def frame(X, names=NAMES):
    return pd.DataFrame(X, columns=names)


# ---- training rows


def test_rows_that_were_trained_on_are_refused_with_how_many():
    with pytest.raises(
        OverlapError, match=r"3 of its 600 rows are in training=.* explains none.*nothing was made"
    ) as told:
        make(training=MIXED)
    assert (told.value.rows, told.value.explained) == (3, 0)
    again = pickle.loads(pickle.dumps(told.value))
    assert (str(again), again.rows, again.explained) == (str(told.value), 3, 0)
    assert isinstance(again, InputError)


def test_rows_that_were_not_are_no_hindrance():
    make(training=TRAIN)
    make(frame(HELD), training=frame(TRAIN))


def test_who_insists_gets_a_guard():
    assert make(training=MIXED, overlapping=True).queries_asked == 0


@pytest.mark.parametrize(
    ("held", "trained"),
    [
        *((frame(HELD), frame(MIXED)), (frame(HELD), frame(MIXED)[sorted(NAMES)])),
        (frame(HELD), pl.DataFrame(frame(MIXED)[sorted(NAMES)])),
        *((pl.DataFrame(frame(HELD)), frame(MIXED)[sorted(NAMES)]), (frame(HELD), MIXED)),
        *((HELD, frame(MIXED)), (HELD.tolist(), MIXED), (scipy.sparse.csr_array(HELD), MIXED)),
        (HELD, scipy.sparse.csc_array(MIXED)),
    ],
)
def test_tables_are_compared_in_every_form(held, trained):
    refuses(OverlapError, r"3 of its 600", make, held, training=trained)


def test_tables_that_are_not_in_memory_are_compared_too(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame(HELD).assign(y=Y).to_parquet(tmp_path / "held.parquet", row_group_size=100)
    frame(MIXED)[sorted(NAMES)].to_parquet(tmp_path / "train.parquet", row_group_size=100)
    stored = ParquetRows(tmp_path / "train.parquet", chunk_rows=70)
    lazy = dd.from_pandas(frame(MIXED), npartitions=3)
    for training in (stored, lazy, lazy.to_dask_array(lengths=True)):
        with pytest.raises(OverlapError, match=r"3 of its 600"):
            make(ParquetRows(tmp_path / "held.parquet", chunk_rows=90), "y", training=training)


def test_rows_that_agree_by_chance_are_none_that_were_trained_on():
    coarse = np.random.default_rng(1).integers(0, 4, size=(4_000, 6))
    held, trained = coarse[:1_000], coarse[1_000:]
    y = np.arange(1_000) % 2
    make(held, y, training=trained)
    with pytest.raises(OverlapError, match=r"by their features, and chance explains") as told:
        make(held, y, training=np.r_[trained[300:], held[:300]])
    assert told.value.rows >= 300
    assert 0 < told.value.explained < told.value.rows


def test_no_words_quote_a_row():
    told = refuses(OverlapError, "", make, np.round(HELD, 3) + 12_345, training=np.round(MIXED, 3) + 12_345)
    assert "12345" not in str(told)


def test_a_refused_guard_leaves_no_file(ledger):
    refuses(OverlapError, "", make, ledger=ledger, training=MIXED)
    assert not list(ledger.parent.iterdir())


# ---- ids


def test_one_row_in_ten_thousand_is_found():
    y, names = np.arange(10_000) % 2, np.arange(10_000) * 7
    with pytest.raises(OverlapError, match=r"1 of its 10,000 rows are in training=, by their ids"):
        make(None, y, ids=names, training=[5, 7 * 1_234, 8])
    make(None, y, ids=names, training=[5, 8])


def test_names_of_64_bits_are_told_apart():
    names = 2**60 + np.arange(ROWS)
    make(None, ids=names, training=names + ROWS)
    refuses(OverlapError, r"1 of its 600", make, None, ids=names, training=names - ROWS + 1)


def test_ids_of_judged_rows_are_those_of_the_metric():
    names = [f"q{k}" for k in range(ROWS)]
    make(None, names, metric="score", training=["other", "other"])
    with pytest.raises(OverlapError, match=r"1 of its 600"):
        make(None, names, metric="score", training=pd.Series(["other", "q7"]))


def test_who_has_ids_may_pass_a_table_too():
    refuses(OverlapError, r"by their features", make, ids=IDS[:ROWS], training=MIXED)


def test_ids_do_not_leave_the_guard(ledger):
    with make(ledger=ledger, ids=IDS[:ROWS]) as guard:
        guard.evaluate(Y, prior=0.5)
        told = repr(guard) + repr(vars(guard)) + guard.history().to_csv()
        pickle.dumps(guard)
    held = ledger.with_name("guard.db.holdout").read_bytes() + ledger.read_bytes()
    assert "r599" not in told
    assert b"r599" not in held


@for_each(
    ("arguments", "words"),
    [
        ({"ids": IDS}, r"each of the 600 rows; got 1,800 names; nothing was made"),
        ({"ids": [*IDS[: ROWS - 1].tolist(), "r0"]}, r"once; 2 of 600 rows share a name"),
        ({"ids": np.r_[np.arange(ROWS - 1.0), np.nan]}, r"some are missing; nothing was made"),
        ({"training": IDS}, r"table with the holdout's columns if the guard has no ids; got one column"),
        (
            {"training": TRAIN[:, :3]},
            r"without labels; got rows of shape \(3,\), the holdout's are \(4,\); nothing",
        ),
        ({"training": [[1, 2, 3, 4], [1]]}, r"rows of one length"),
        ({"training": TRAIN[:0]}, r"training= must hold rows; got none; nothing was made"),
        ({"training": "train.csv"}, r"training= must be data; got a path"),
        ({"X": None, "training": TRAIN}, r"must be ids if the guard has no features; got a table"),
        (
            {"X": frame(HELD), "training": frame(TRAIN, list("abcx"))},
            r"1 of the other rows. columns have names",
        ),
        ({"ids": IDS[:ROWS], "training": np.arange(9)}, r"kind as ids=; got numbers, ids= are text"),
        ({"allow": {"ignore"}}, r"allow"),
        ({"X": None, "y": IDS[:ROWS], "metric": "score", "ids": IDS[:ROWS]}, r"have ids already, in y"),
    ],
)
def test_a_slip_is_told(arguments, words):
    told = refuses(InputError, words, make, **arguments)
    assert not isinstance(told, OverlapError)


# ---- rotation


@pytest.mark.parametrize("on_disk", [True, False])
def test_rows_of_any_epoch_before_are_refused_and_nothing_changes(ledger, on_disk):
    guard = make(ledger=ledger if on_disk else None)
    guard = guard.rotate(SECOND, Y, early=True, allow={"second budget"}).guard
    before = guard._view.ledger.configurations()
    for epoch, old in ((1, HELD), (2, SECOND)):
        with pytest.raises(
            OverlapError, match=rf"599 of its 600 rows are rows of epoch {epoch}.*nothing was released"
        ):
            guard.rotate(np.r_[THIRD[:1], old[1:]], Y, early=True)
    assert guard._view.ledger.configurations() == before
    assert guard.evaluate(Y, prior=0.5).query == 1  # it still answers
    assert guard.rotate(THIRD, Y, early=True).guard.epoch == 3


def test_who_insists_may_rotate():
    assert make().rotate(HELD[::-1], Y, early=True, allow={"overlap"}).guard.epoch == 2


def test_training_rows_are_looked_for_in_the_new_holdout():
    guard = make()
    guard.rotate(Rows(SECOND, Y, training=np.r_[TRAIN, HELD]), early=True)  # the old rows are free
    with pytest.raises(OverlapError, match=r"1 of its 600 rows are in training=.*nothing was released"):
        make().rotate(Rows(SECOND, Y, training=np.r_[TRAIN, SECOND[:1]]), early=True)


def test_by_ids_one_row_is_too_many(ledger):
    guard = make(None, ledger=ledger, ids=IDS[:ROWS])
    with pytest.raises(OverlapError, match=r"1 of its 600 rows are rows of epoch 1, by their ids"):
        guard.rotate(Rows(None, 1 - Y, ids=IDS[ROWS - 1 : 2 * ROWS - 1]), early=True)
    with pytest.raises(
        InputError,
        match=r"come with ids of text, as those of epoch 1 did; got none; nothing was released",
    ):
        guard.rotate(None, 1 - Y, early=True)
    with pytest.raises(InputError, match=r"ids of text, as those of epoch 1 did; got numbers"):
        guard.rotate(Rows(None, 1 - Y, ids=np.arange(ROWS)), early=True)
    assert guard.rotate(Rows(None, 1 - Y, ids=IDS[ROWS : 2 * ROWS]), early=True).guard.epoch == 2


def test_judged_rows_are_known_by_their_names():
    guard = make(None, IDS[:ROWS], metric="score")
    refuses(OverlapError, r"1 of its 600", guard.rotate, None, IDS[ROWS - 1 : 2 * ROWS - 1], early=True)
    guard.rotate(None, IDS[ROWS : 2 * ROWS], early=True)


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        (frame(HELD), frame(SECOND)[sorted(NAMES)], frame(np.r_[HELD[:9], THIRD[9:]])[NAMES[::-1]]),
        (frame(HELD), SECOND, frame(np.r_[HELD[:9], THIRD[9:]])),
        (HELD, frame(SECOND), np.r_[HELD[:9], THIRD[9:]]),
        (HELD, frame(SECOND), frame(np.r_[HELD[:9], THIRD[9:]])),
        (frame(HELD), pl.DataFrame(frame(SECOND)), pl.DataFrame(frame(np.r_[HELD[:9], THIRD[9:]]))),
        (frame(HELD), frame(SECOND)[sorted(NAMES)], np.r_[HELD[:9], THIRD[9:]][:, [1, 3, 2, 0]]),
    ],
)
def test_columns_are_those_of_the_first_epoch(first, second, third):
    guard = make(first).rotate(second, Y, early=True).guard
    refuses(OverlapError, r"9 of its 600 rows are rows of epoch 1", guard.rotate, third, Y, early=True)


def test_rows_that_agree_by_chance_are_fresh():
    coarse = np.random.default_rng(1).integers(0, 4, size=(3_000, 6))
    y = np.arange(1_000) % 2
    guard = make(coarse[:1_000], y).rotate(coarse[1_000:2_000], y, early=True).guard
    with pytest.raises(OverlapError, match=r"chance explains"):
        guard.rotate(np.r_[coarse[2_300:], coarse[:300]], y, early=True)
    guard.rotate(coarse[2_000:], y, early=True)


def test_a_guard_that_was_opened_again_knows_them(ledger):
    make(ledger=ledger).close()
    again = ReusableHoldout.open(ledger, HELD, Y)
    refuses(OverlapError, r"600 of its 600", again.rotate, HELD[::-1], Y, early=True)
    again.close()


def test_a_process_that_dies_in_a_rotation_leaves_the_ledger_as_it_was(ledger):
    make(ledger=ledger).close()
    np.savez(ledger.with_suffix(".npz"), held=HELD, second=SECOND, y=Y)
    child = Child(
        """
import os, signal, sys
import numpy as np
from reusable_holdout import ReusableHoldout
from reusable_holdout.ledger.storage import Transaction
data = np.load(sys.argv[2])
guard = ReusableHoldout.open(sys.argv[1], data["held"], data["y"])
rotate = Transaction.rotate
Transaction.rotate = lambda *given: (rotate(*given), os.kill(os.getpid(), signal.SIGKILL))
guard.rotate(data["second"], data["y"], early=True, allow={"second budget"})
""",
        ledger,
        ledger.with_suffix(".npz"),
    )
    assert child.wait() == -9
    with ReusableHoldout.open(ledger, HELD, Y) as guard:
        assert guard.epoch == 1
        assert guard.rotate(SECOND, Y, early=True, allow={"second budget"}).guard.epoch == 2
    assert verify(ledger).sound


# ---- the ledger


def kept(ledger):
    store = SqlLedger(ledger)
    found = [store.known_rows(epoch) for epoch in range(1, len(store.configurations()) + 1)]
    configurations = [Configuration.parse(text) for text in store.configurations()]
    store.close()
    return found, configurations


def test_it_keeps_a_number_for_each_row_and_the_chain_seals_them(ledger):
    make(ledger=ledger, ids=IDS[:ROWS]).rotate(Rows(SECOND, Y, ids=IDS[ROWS : 2 * ROWS]), early=True)
    texts, configurations = kept(ledger)
    assert [len(text) for text in texts] == [2 * 8 * (ROWS + 1)] * 2
    assert all(list(one.known_rows) == ["features", "ids of text"] for one in configurations)
    assert verify(ledger).sound


def test_which_rows_two_epochs_share_is_not_told_without_the_key(ledger):
    make(ledger=ledger).rotate(HELD[::-1], 1 - Y, early=True, allow={"overlap", "second budget"})
    one, other = (np.frombuffer(text, dtype="<u8") for text in kept(ledger)[0])
    assert len(np.intersect1d(one, other)) == 0


def test_copies_are_not_told_without_the_key(ledger):
    make(np.repeat(HELD[:300], 2, axis=0), ledger=ledger, groups=np.arange(ROWS) // 2).close()
    (text,), _ = kept(ledger)
    assert len(np.unique(np.frombuffer(text, dtype="<u8"))) == ROWS + 1


def test_labels_alone_are_known_as_a_whole(ledger):
    make(None, ledger=ledger).close()
    assert kept(ledger)[0] == [b""]
    assert verify(ledger).sound


@pytest.mark.parametrize("value", [b"", b"x" * 8 * (ROWS + 1), None])
def test_rows_that_were_changed_are_found(ledger, value):
    guard = make(ledger=ledger)
    guard.evaluate(Y, prior=0.5)
    sql(ledger, ("UPDATE configuration SET known_rows = ?", value))
    assert verify(ledger).problems == [
        "what it keeps of its rows is not what was sealed: a rotation cannot recognize them"
    ]
    with pytest.raises(TamperedLedgerError, match=r"rows of epoch 1 are not those that were sealed"):
        guard.rotate(SECOND, Y, early=True, allow={"second budget"})
    assert guard.rotate(SECOND, Y, early=True, allow={"overlap", "second budget"}).guard.epoch == 2


def test_that_the_owner_insists_is_a_public_fact(ledger):
    make(ledger=ledger, overlapping=True, training=MIXED).close()
    assert json.loads(kept(ledger)[1][0].text())["allow"] == ["overlap", "vacuous"]
    make(ledger=ledger).close()  # what was allowed stays in the ledger, whoever resumes
    assert json.loads(kept(ledger)[1][0].text())["allow"] == ["overlap", "vacuous"]
    ReusableHoldout.open(ledger, HELD, Y).close()


def test_other_ids_are_refused_when_it_is_resumed(ledger):
    make(ledger=ledger, ids=IDS[:ROWS]).close()
    make(ledger=ledger).close()
    make(ledger=ledger, ids=IDS[:ROWS][::-1]).close()
    with pytest.raises(LedgerMismatchError, match=r"ids= must be those the ledger was made with"):
        make(ledger=ledger, ids=IDS[1 : ROWS + 1])
