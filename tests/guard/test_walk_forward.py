"""Walk-forward questions: what a fit may read, what an interval is about, what is refused, and what never leaves."""

import itertools
import logging
import sys
import traceback
import warnings
from contextlib import suppress
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from long_tests import GUARD
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from reusable_holdout import Difference, Plan, ReusableHoldout, Rows, WalkForward
from reusable_holdout.errors import Halted, InputError, ModelError

BEFORE, ROWS = 50, 600
DAYS = pd.date_range("2024-01-01", periods=BEFORE + ROWS, freq="D")
FEATURE = np.random.default_rng(0).normal(size=BEFORE + ROWS)
LABELS = (FEATURE + np.random.default_rng(1).normal(size=BEFORE + ROWS) > 0).astype(int)
TABLE = pd.DataFrame({"row": np.arange(BEFORE + ROWS), "x": FEATURE}, index=DAYS)
SERIES = pd.Series(LABELS, index=DAYS)
SECRET = "label 271828"


class Coin(ClassifierMixin, BaseEstimator):
    """Predicts by the labels so far."""

    def __init__(self, rule="majority"):
        self.rule = rule

    def fit(self, X, y):
        rules = {"majority": int(2 * y.sum() > len(y)), "last": int(y[-1]), "odd": int(y.sum() % 2)}
        self.classes_, self.label_ = np.array([0, 1]), rules[self.rule]
        return self

    def predict(self, X):
        return np.full(len(X), self.label_)


class Spy(Coin):
    """Notes what it reads, and does what a test asks for when it is fitted on rows of the holdout."""

    read: ClassVar = []  # by all fits and predictions

    def __init__(self, trick=None):
        self.rule, self.trick = "majority", trick

    def fit(self, X, y):
        Spy.read.append(("fit", numbers(X), list(y)))
        self.private_ = len(y) > BEFORE
        if self.trick is not None and self.private_:
            self.trick(X, y)
        return super().fit(X, np.asarray(y))

    def predict(self, X):
        Spy.read.append(("predict", numbers(X), None))
        return super().predict(X)


def numbers(X):
    return np.asarray(X)[:, 0].astype(int).tolist()


@pytest.fixture(autouse=True)
def _begun_anew(monkeypatch):
    monkeypatch.setenv("REUSABLE_HOLDOUT_REGISTRY", "off")
    Spy.read = []


def guard_of(X=TABLE, y=SERIES, order="time", **more):
    given = Rows(X[BEFORE:], y[BEFORE:], order=order, groups=more.pop("groups", None))
    numbers = more if "plan" in more else {"queries": 40, "charges": 4, "estimate": 0.75} | more
    return ReusableHoldout(given, seed=0, allow={"vacuous", "no witness"}, **numbers)


def walk(model=None, refit="M", X=TABLE, y=SERIES):
    return WalkForward(LogisticRegression() if model is None else model, X[:BEFORE], y[:BEFORE], refit)


def blocks():
    """The rows that were read to fit and to predict each block of the holdout, and its labels of the former."""
    holdout = [pair for pair in itertools.pairwise(Spy.read) if pair[1][0] == "predict"][1:]
    return [(fit[1], fit[2], predicted[1]) for fit, predicted in holdout]


# ---- what a fit reads


@for_each(
    ("refit", "groups", "count"),
    [
        ("week", None, 86),
        ("M", None, 21),
        (7, None, 86),
        (2, np.arange(ROWS) // 10, 30),
        ("M", np.arange(ROWS) // 10, 21),
        (TimeSeriesSplit(6, test_size=100, gap=5, max_train_size=40), None, 6),
        (TimeSeriesSplit(12), None, 12),
    ],
)
def test_no_fit_reads_a_row_of_its_block_or_a_later_one(refit, groups, count):
    Spy.read = []
    guard_of(groups=groups).walk_forward(Spy(), TABLE[:BEFORE], SERIES[:BEFORE], refit=refit, prior=0.5)
    found, step = blocks(), np.arange(ROWS) if groups is None else groups
    assert len(found) == count
    assert [row for _, _, own in found for row in own if row >= BEFORE] == list(range(BEFORE, BEFORE + ROWS))
    for fit, labels, own in found:
        assert labels == LABELS[fit].tolist()
        assert max(fit) < min(own)
        assert max(fit) < BEFORE or step[max(fit) - BEFORE] < step[min(own) - BEFORE]
    if isinstance(refit, TimeSeriesSplit) and refit.gap:
        assert all(min(own) - max(fit) == 6 and len(fit) == 40 for fit, _, own in found)


def coins(labels, share, questions):
    """A guard of a few rows, without noise."""
    X = np.arange(2.0, 2 + len(labels))[:, None]
    plan = Plan(noise=0.0, confidence=0.5, final_share=share, queries=questions, charges=1, estimate=0.5)
    given = Rows(X, np.array(labels), classes=[0, 1], order="time")
    return ReusableHoldout(given, plan=plan, seed=0, allow={"vacuous", "no witness"})


@pytest.mark.long(*GUARD)
def test_intervals_miss_the_mean_of_the_risks_no_more_often_than_promised():
    """Of all sequences of fair coins: the risk of each row is 1/2, given the labels before it, for any procedure."""
    history = np.arange(2.0)[:, None], np.array([0, 1])
    ways = [WalkForward(Coin(rule), *history, 1) for rule in ("majority", "last", "odd")]
    every = list(itertools.product([0, 1], repeat=8))
    missed = dict.fromkeys([*range(3), "any"], 0)
    for labels in every:
        guard, answers = coins(labels, 0.5, 3), []
        with suppress(Halted):
            answers.extend(guard.evaluate(procedure, prior=0.95) for procedure in ways)
        missed["any"] += any(not one.low <= 0.5 <= one.high for one in [*answers, *guard.final(ways)])
        for rule, procedure in enumerate(ways):
            last = coins(labels, 1.0, 1).final(procedure)
            missed[rule] += not last.low <= 0.5 <= last.high
    assert all(0 < count <= 0.5 * len(every) for count in missed.values())
    twin = [coins(labels, 1.0, 1).final(np.array(labels)).low for labels in every]  # sees its own row's label
    assert min(twin) > 0.5


# ---- how it is asked


def test_all_verbs_take_procedures_and_slices_learn_from_all_rows():
    guard, one, other = guard_of(), walk(), walk(DummyClassifier())
    answer = guard.walk_forward(one.model, one.X_history, one.y_history, refit="M")
    folds = cross_val_score(one.model, one.X_history, one.y_history, cv=TimeSeriesSplit(5))
    assert answer.prior == pytest.approx(folds.mean())
    assert guard.walk_forward(one.model, one.X_history, one.y_history, refit="M").replayed
    assert guard.compare(one, other, prior=0.2).high > 0.1
    assert guard.gate(Difference(one, other), at_least=0.0).outcome == "better"
    assert guard.reveal(one, prior=0.75).outcome == "revealed"
    assert guard.choose([other, one], [0.5, 0.75]).index == 1
    late = guard.on(where=np.arange(ROWS) >= 300, allow={"vacuous"})
    Spy.read = []
    late.evaluate(walk(Spy()), prior=0.5)
    assert blocks()[-1][0] == TABLE["row"][DAYS < "2025-10-01"].tolist()
    assert guard.final([one, other]).best_index == 0


def test_another_procedure_is_another_question():
    guard, changed = guard_of(), TABLE.copy()
    changed.iloc[3, 1] += 1.0
    labels = SERIES.copy()
    labels.iloc[3] = 1 - labels.iloc[3]
    first = guard.evaluate(walk(), prior=0.7)
    again = [walk(), walk(X=TABLE.copy()), walk(LogisticRegression(n_jobs=2))]
    others = [
        walk(y=SERIES.astype(bool)),
        walk(y=SERIES.to_numpy()),
        walk(X=changed),
        walk(y=labels),
        walk(refit="W"),
        walk(LogisticRegression(C=2.0)),
    ]
    others += [walk(refit=30), walk(X=TABLE.set_index(DAYS - pd.Timedelta(days=90)))]
    assert [guard.evaluate(one, prior=0.7).query for one in again] == [first.query] * 3
    assert [guard.evaluate(one, prior=0.7).query for one in others] == list(range(2, 10))


@for_each(
    "convert", [np.asarray, lambda X: np.asarray(X).tolist(), csr_matrix, lambda X: X.reset_index(drop=True)]
)
def test_containers_are_joined(convert):
    data, labels = convert(TABLE[["x"]]), np.where(LABELS, "up", "down")
    plainly = guard_of(TABLE[["x"]]).final(walk(refit=100, X=TABLE[["x"]]))
    assert guard_of(data, labels).final(walk(refit=100, X=data, y=labels)).value == plainly.value


def test_categories_that_the_history_does_not_have_are_missing():
    kinds = pd.Categorical(np.where(np.arange(BEFORE + ROWS) < BEFORE + 100, "a", "b"))
    data = TABLE.assign(kind=kinds)
    known = data[:BEFORE].assign(kind=data["kind"][:BEFORE].cat.remove_unused_categories())
    seen = []
    guard_of(data).evaluate(walk(Spy(trick=lambda X, _: seen.append(X)), X=known), prior=0.5)
    assert list(seen[-1]["kind"].cat.categories) == ["a"]
    assert seen[-1]["kind"].isna().sum() == len(seen[-1]) - BEFORE - 100


def test_random_numbers_are_repeatable_and_the_callers_are_not_used():
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.RandomState(7).random_sample(2)
    draws = []
    first, second = (Spy(trick=lambda *_: draws.append(np.random.random_sample())) for _ in range(2))  # noqa: NPY002
    guard_of().evaluate([walk(first), walk(second, refit="month")], prior=[0.5, 0.6])
    assert draws[:20] == draws[20:]
    assert np.random.random_sample(2).tolist() == expected.tolist()  # noqa: NPY002


# ---- refused, free


def test_what_does_not_fit_is_refused_by_public_facts():
    guard, steps, model = guard_of(), guard_of(groups=np.arange(ROWS) // 7), LogisticRegression()
    private = guard_of(plan=Plan(noise=0.01, queries=2, charges=1))
    for words, asked, given in [
        ("rows in time order", guard_of(order=None, y=1 - SERIES), walk()),
        ("type and the columns", guard, walk(X=TABLE[["x"]])),
        ("type and the columns", guard, walk(X=TABLE.to_numpy())),
        ("a label in y_history", guard, WalkForward(model, TABLE[:BEFORE], SERIES[:9], 7)),
        ("cloned and fitted", guard, walk(FrozenEstimator(model.fit(TABLE, SERIES)))),
        ("must end before the first row", guard, WalkForward(model, TABLE[:60], SERIES[:60], 7)),
        *(
            ("refit must be a period", guard, walk(refit=refit))
            for refit in ("often", 0, -3, True, None, 1.5)
        ),
        ("and no times", guard_of(TABLE.to_numpy(), LABELS[::-1]), walk(X=TABLE.to_numpy(), y=LABELS)),
        ("hold each row", guard, walk(refit=KFold(5))),
        ("hold each row", guard, walk(refit=TimeSeriesSplit(2, test_size=9))),
        ("without differential privacy", private, walk()),
        ("end in a step before", steps, walk(refit=TimeSeriesSplit(6, test_size=100))),
        ("raised ValueError", guard, walk(y=SERIES * 0)),
        ("classes must be among", guard, walk(y=SERIES + 5)),
        ("needs a model with predict", guard, walk(make_pipeline(StandardScaler(), StandardScaler()))),
    ]:
        refuses(InputError, words, asked.evaluate, given, prior=0.7)
        assert asked.queries_asked == 0
    short = WalkForward(model, TABLE[:4], SERIES[:4], 7)
    refuses(InputError, "prior must be stated", guard.evaluate, short)


# ---- what never leaves


def _tells(X, y):
    sys.stdout.write(SECRET)
    sys.stderr.write(SECRET)
    warnings.warn(SECRET, UserWarning, stacklevel=1)
    logging.getLogger("model").critical(SECRET)


def _raises(X, y):
    raise InputError(SECRET)


def _exits(X, y):
    raise SystemExit(SECRET)


def test_a_fit_on_the_holdout_tells_nothing(capfd, caplog, recwarn):
    guard = guard_of()
    guard.evaluate(walk(Spy(trick=_tells)), prior=0.5)
    for trick in (_raises, _exits):
        failure = refuses(
            ModelError, "failed on the holdout", guard.evaluate, walk(Spy(trick=trick)), prior=0.5
        )
        assert SECRET not in "".join(traceback.format_exception(failure))
        assert failure.__cause__ is failure.__context__ is None
    assert guard.charges_left == 2
    assert SECRET not in "".join([*capfd.readouterr(), caplog.text, *(str(one.message) for one in recwarn)])


def test_fits_keep_nothing_and_change_nothing(tmp_path, capfd):
    def spoil(X, y):
        X.iloc[:, :] = 0
        y.iloc[:] = 0

    guard, model = guard_of(), Spy(trick=spoil)
    assert guard.evaluate(walk(model), prior=0.5).query == 1
    assert set(vars(model)) == {"rule", "trick"}
    assert guard._view.holdout.X.equals(TABLE[BEFORE:])
    assert guard._view.holdout.y.equals(SERIES[BEFORE:])
    assert [labels for _, labels, _ in blocks()][-1] == LABELS[: len(blocks()[-1][1])].tolist()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["row"]), remainder="passthrough"
    )
    loud = LogisticRegression(solver="liblinear", verbose=3)
    guard.evaluate(
        walk(make_pipeline(encoder, loud, memory=str(tmp_path / "cache"), verbose=True)), prior=0.7
    )
    assert not (tmp_path / "cache").exists()
    assert capfd.readouterr() == ("", "")


class Shifting(Spy):
    """Leaves the first block to the second one, which knows the first one's labels."""

    def predict(self, X):
        return (
            np.zeros(0 if self.private_ else 2 * len(X), dtype=int) if len(X) == 300 else super().predict(X)
        )


def test_a_block_cannot_predict_for_another():
    guard = guard_of()
    refuses(ModelError, "failed on the holdout", guard.evaluate, walk(Shifting(), refit=300), prior=0.5)


def test_a_history_that_holds_the_holdout_fails():
    X, labels = TABLE.to_numpy(), SERIES.to_numpy()
    again = WalkForward(LogisticRegression(), X[BEFORE:], labels[BEFORE:], 300)
    refuses(ModelError, "holds rows of the holdout", guard_of(X, labels).evaluate, again, prior=0.7)
