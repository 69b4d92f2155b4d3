"""An analyst whose training rows are in the holdout is told so by an outcome that costs what a failure costs."""

import contextlib
import copy
import pickle
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from cases import refuses
from guard.counting import Crashing
from made_guards import made_guard
from reusable_holdout_sklearn import GuardedSearchCV, guarded_cross_validate
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from reusable_holdout import Difference, ParquetRows, Question, verify
from reusable_holdout.errors import Halted, ModelError

ROWS = 2_000
RNG = np.random.default_rng(0)
POOL = RNG.normal(size=(2 * ROWS, 3))
LABELS = (POOL @ [1.0, -1.0, 0.5] + RNG.normal(size=2 * ROWS) > 0).astype(int)
TRAIN, HELD, Y_TRAIN, Y = *np.split(POOL, 2), *np.split(LABELS, 2)
OVER = np.r_[TRAIN[:-100], HELD[:100]]
FEW = np.r_[TRAIN[:-3], HELD[:3]]  # too few to risk a false alarm
NAMES = ["b", "a", "c"]
MODEL = LogisticRegression().fit(TRAIN, Y_TRAIN)


class Sure(Crashing):
    predict_proba = Crashing.predict


@pytest.fixture
def guard_of(make_guard):
    def make(ledger=None, *, X=HELD, y=Y, **changes):
        return make_guard(ledger, X=X, y=y, seed=1, **changes)

    return make


def row(guard):
    """What the ledger says of the last question, but for what names it."""
    (last,) = guard._view.ledger.rows(after=guard._view.transcript.state.query - 1)
    return last._replace(digest=b"", name="", asked_at=0.0)


def asked(call):
    try:
        return call()
    except ModelError as error:
        return str(error)


@pytest.mark.parametrize("way", ["evaluate", "compare", "reveal", "gate", "gate of a difference"])
def test_the_outcome_is_that_of_a_model_that_fails(guard_of, way):
    told, rows = [], []
    for model, X_train in ((Crashing(), None), (MODEL, OVER)):
        guard, other = guard_of(reveals=1), copy.copy(MODEL)
        y_train = None if X_train is None else Y_TRAIN
        ways = {
            "evaluate": lambda: guard.evaluate(model, X_train, y_train, prior=0.6),  # noqa: B023
            "compare": lambda: guard.compare(model, other, X_train, y_train, prior=0.0),  # noqa: B023
            "reveal": lambda: guard.reveal(model, X_train, y_train, prior=0.6),  # noqa: B023
            "gate": lambda: guard.gate(model, 0.6, X_train=X_train),  # noqa: B023
            "gate of a difference": lambda: guard.gate(Difference(model, other), 0.0, X_train=X_train),  # noqa: B023
        }
        told.append(asked(ways[way]))
        rows.append(row(guard))
    assert rows[0] == rows[1]
    assert told[0] == told[1]
    assert "failed on the holdout, or X_train holds rows of the holdout" in told[0]


def test_a_gate_tells_such_a_failure_and_goes_on(guard_of):
    guard = guard_of(policy="gate")
    refuses(ModelError, "took one charge", guard.gate, MODEL, 0.6, X_train=OVER)
    assert guard.gate(MODEL, 0.61, X_train=TRAIN).charged


@pytest.mark.parametrize("policy", ["gate", "thresholdout"])
def test_models_that_are_asked_together_stay_one_batch_if_one_of_them_fails(guard_of, policy):
    """Only its own row tells that a model failed: no number of a batch does, and no time."""
    seen = []
    for second in (MODEL, Crashing()):
        guard = guard_of(policy=policy)
        way, fits = "gate" if policy == "gate" else "evaluate", (copy.copy(MODEL), second, copy.copy(MODEL))
        models = [guard.measure(one, prior=0.99, way=way) for one in fits]
        (answers,) = guard.ask([Question(way, models, [0.99, 0.98, 0.97], name=["a", "b", "c"])])
        failed = [isinstance(one, ModelError) for one in answers]
        rows = guard._view.ledger.rows()
        assert failed == [row.told == "failed" for row in rows]
        seen.append([(row.batch, row.query, row.name, row.asked) for row in rows])
        assert len(set(guard.history()["asked_at"])) == 1
    assert seen[0] == seen[1]
    assert failed == [False, True, False]


@pytest.mark.parametrize("policy", ["gate", "thresholdout"])
def test_a_halt_among_models_carries_all_that_were_answered(guard_of, policy):
    guard = guard_of(policy=policy, charges=1)
    priors = [0.5, 0.51, 0.52] if policy == "gate" else [0.99, 0.05, 0.5]
    way = "gate" if policy == "gate" else "evaluate"
    models = [guard.measure(copy.copy(MODEL), prior=prior, way=way) for prior in priors]
    halted = refuses(Halted, "", guard.ask, [Question(way, models, priors, name=["a", "b", "c"])])
    assert len(halted.answers) == guard.answered > 0


@pytest.mark.parametrize("paired", [False, True])
def test_a_gate_with_guardrails_fails_too(guard_of, paired):
    guard = guard_of(policy="gate", queries=100)
    rail = guard.on("brier", estimate=0.2, allow={"vacuous"})
    least = -0.5 if paired else 0.1
    good, failing = (
        (Difference(MODEL, copy.copy(MODEL)), Difference(Sure(), MODEL)) if paired else (MODEL, Sure())
    )
    limits = {rail: 0.5 if paired else 1.0}
    for subject, X_train in ((good, OVER), (failing, None)):
        refuses(ModelError, "took one charge", guard.gate, subject, least, X_train=X_train, guardrails=limits)
    told = guard.history()["told"].tolist()[-2:]
    assert told[0] == told[1]
    assert told[0].startswith("failed with")
    assert guard.gate(good, least - 0.01, X_train=TRAIN, guardrails=limits).charged


def test_fresh_rows_and_a_few_that_agree_are_no_hindrance(guard_of):
    guard = guard_of()
    assert guard.evaluate(MODEL, TRAIN, Y_TRAIN).query == 1
    assert guard.evaluate(MODEL, FEW, Y_TRAIN, prior=0.61).query == 2
    coarse = np.random.default_rng(1).integers(0, 3, size=(2 * ROWS, 3)).astype(float)
    guard = guard_of(X=coarse[ROWS:])
    assert guard.evaluate(MODEL, coarse[:ROWS], Y_TRAIN, prior=0.6).query == 1


def test_a_table_without_rows_holds_none(guard_of):
    guard = guard_of()
    assert guard.evaluate(MODEL, TRAIN[:0], Y_TRAIN[:0], prior=0.7).query == 1


def test_a_table_of_other_columns_holds_no_rows(guard_of):
    guard = guard_of(X=pd.DataFrame(HELD, columns=NAMES))
    model = LogisticRegression().fit(pd.DataFrame(TRAIN, columns=NAMES), Y_TRAIN)
    other = pd.DataFrame(OVER, columns=["a", "b", "x"])
    assert guard.evaluate(model, OVER[:, :2], Y_TRAIN, prior=0.6).query == 1
    assert guard.evaluate(model, other, Y_TRAIN, prior=0.61).query == 2
    assert guard.evaluate(model, [object()] * ROWS, Y_TRAIN, prior=0.62).query == 3


@pytest.mark.parametrize(
    "form",
    [
        lambda X: X.tolist(),
        scipy.sparse.csr_array,
        lambda X: pd.DataFrame(X, columns=NAMES)[sorted(NAMES)],
        lambda X: pl.DataFrame(pd.DataFrame(X, columns=NAMES)),
        lambda X: pytest.importorskip("dask.array").from_array(X, chunks=300),
        lambda X: pytest.importorskip("pyarrow").Table.from_pandas(pd.DataFrame(X, columns=NAMES)),
    ],
    ids=["list", "sparse", "pandas", "polars", "dask", "arrow"],
)
def test_training_rows_in_every_form_are_compared(guard_of, form):
    guard = guard_of(X=pd.DataFrame(HELD, columns=NAMES))
    refuses(ModelError, "", guard.evaluate, MODEL, form(OVER), Y_TRAIN, prior=0.6)
    assert guard.evaluate(MODEL, form(TRAIN), Y_TRAIN, prior=0.61).query == 2


def test_rows_of_a_holdout_in_files_are_compared(guard_of, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(HELD, columns=NAMES).assign(y=Y)
    frame.to_parquet(tmp_path / "held.parquet", row_group_size=300)
    guard = guard_of(X=ParquetRows(tmp_path / "held.parquet"), y="y")
    refuses(ModelError, "", guard.evaluate, MODEL, OVER, Y_TRAIN, prior=0.6)


def test_what_was_answered_is_told_again_whatever_the_training_rows(guard_of):
    guard = guard_of()
    first = refuses(ModelError, "", guard.evaluate, MODEL, OVER, Y_TRAIN, prior=0.6)
    again = refuses(ModelError, "", guard.evaluate, MODEL, TRAIN, Y_TRAIN, prior=0.6)
    assert str(first) == str(again)
    answer = guard.evaluate(MODEL, prior=0.7)
    assert guard.evaluate(MODEL, OVER, Y_TRAIN, prior=0.7) == answer._replace(replayed=True)
    assert guard.queries_asked == 2


def test_rows_are_read_for_no_replay_and_after_no_halt(guard_of, monkeypatch):
    guard = guard_of(queries=1, charges=1)
    guard.evaluate(MODEL, prior=0.7)
    monkeypatch.setattr(
        type(guard._view.holdout), "row_set", property(lambda _: pytest.fail("they were read"))
    )
    assert guard.evaluate(MODEL, OVER, Y_TRAIN, prior=0.7).replayed
    refuses(Halted, "", guard.evaluate, MODEL, OVER, Y_TRAIN, prior=0.6)


def test_a_loop_with_one_table_numbers_it_once(guard_of, monkeypatch):
    from reusable_holdout.guard import known_rows

    numbered, compared = [], known_rows._compared
    monkeypatch.setattr(known_rows, "_compared", lambda X, held: numbered.append(1) or compared(X, held))
    guard = guard_of(charges=10)
    views = [guard, guard.on("brier", estimate=0.2, allow={"vacuous"})]
    for prior in (0.6, 0.61, 0.62):
        for one in views:
            one.evaluate(MODEL, TRAIN, Y_TRAIN, prior=prior if one is guard else 0.19 + prior / 100)
    assert len(numbered) == 1
    guard.evaluate(MODEL, TRAIN.copy(), Y_TRAIN, prior=0.63)
    assert len(numbered) == 2


def test_the_owner_may_allow_it_and_it_is_kept_so(guard_of, ledger, reopen):
    guard_of(ledger, overlapping=True).close()
    guard = reopen(ledger, HELD, Y)
    assert guard.evaluate(MODEL, OVER, Y_TRAIN, prior=0.6).query == 1
    assert (
        guard.on("brier", estimate=0.2, allow={"vacuous"}).evaluate(MODEL, OVER, Y_TRAIN, prior=0.2).query
        >= 2
    )


def test_how_many_rows_agree_is_told_nowhere(guard_of, ledger, capfd):
    """Ninety rows, or a hundred: all that can be seen is the same."""
    seen = []
    for place, count in enumerate((90, 100)):
        guard = guard_of(ledger.with_name(f"{place}.db"))
        X_train = np.r_[TRAIN[:-count], HELD[:count]]
        failed = refuses(ModelError, "", guard.evaluate, MODEL, X_train, Y_TRAIN, prior=0.6)
        error = failed
        names = [local for frame, _ in traceback.walk_tb(error.__traceback__) for local in frame.f_locals]
        assert not {"rows", "own", "holdout", "last"} & set(names)
        assert (error.__cause__, error.__context__) == (None, None)
        assert verify(guard.ledger).sound
        history = guard.history().drop(columns="asked_at").to_csv()
        seen.append((str(error), repr(guard), history, row(guard), repr(guard._view.trained_on)))
        assert len(pickle.dumps(guard)) < 1_000
    assert seen[0] == seen[1]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("way", ["evaluate", "choose"])
def test_a_whole_search_on_rows_of_the_holdout_fails(guard_of, way):
    grid = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]})
    guard, other = guard_of(choices=[2]), guard_of(choices=[2])
    with contextlib.suppress(ModelError) if way == "evaluate" else pytest.raises(ModelError):
        GuardedSearchCV(grid, guard, ask=way).fit(OVER, Y_TRAIN)
    assert guard.history()["charged"].tolist() == ([True, True] if way == "evaluate" else [False])
    assert guard.history()["told"].str.endswith("failed").all()
    GuardedSearchCV(grid, other, ask=way).fit(TRAIN, Y_TRAIN)
    assert not other.history()["told"].str.endswith("failed").any()


def test_a_cross_validation_on_rows_of_the_holdout_fails(guard_of):
    guard = guard_of()
    with pytest.raises(ModelError, match="or X holds rows of the holdout"):
        guarded_cross_validate(LogisticRegression(), OVER, Y_TRAIN, guard)
    assert guard.history()["charged"].tolist() == [True]


def test_a_guard_without_features_compares_nothing():
    names = [f"q{k}" for k in range(100)]
    guard = made_guard(None, names, metric="score", queries=5, charges=1, vacuous=True)
    assert not guard._view.trained_on.holds(np.ones((100, 1)))
