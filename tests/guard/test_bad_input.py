"""Everything that does not fit is refused: by the right error, with words, and at no cost."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from cases import for_each, refuses
from sklearn.linear_model import LogisticRegression

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import (
    BudgetError,
    InputError,
    LedgerError,
    LedgerKeyError,
    LedgerMismatchError,
    PlanError,
)
from reusable_holdout.metrics import mae

ROWS = 2_000


class Scene:
    """A guard with a file, one charged answer and one free one; and what bad input is made of."""

    def __init__(self, make, ledger, y, scoring, settings, *, X=None):
        self._make, self.settings = make, settings
        self.ledger, self.y, self.X = ledger, y, X
        self.good, self.free, self.fresh = scoring(0.9), scoring(0.7), scoring(0.75)
        self.guard = make(ledger, X=X)
        if not self.guard.queries_asked:
            self.guard.evaluate(self.good, prior=0.5)
            self.guard.evaluate(self.free, prior=0.7)

    def make(self, ledger=None, **changes):
        """Another guard, by default of the same data in memory."""
        return self._make(ledger, **{"X": self.X, **changes})

    def of(self, metric, y=None, **changes):
        """A guard with another metric."""
        settings = {"metric": metric, "threshold": None, "estimate": None, "noise": None, "X": None}
        settings |= {"charges": 1, "queries": 5, "y": self.y if y is None else y}
        return self.make(**(settings | changes))

    def ask(self, predictions, prior=0.7, **named):
        return self.guard.evaluate(predictions, prior=prior, **named)

    def many(self, predictions, priors, **named):
        return self.guard.evaluate(list(predictions), prior=priors, **named)

    def beside(self, name):
        return self.ledger.with_name(name)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Where the ledger lies that all scenes copy."""
    return tmp_path_factory.mktemp("original") / "guard.db"


@pytest.fixture
def scene(make_guard, tmp_path, original, labels, scoring, settings):
    X = np.random.default_rng(2).normal(size=(ROWS, 3))
    arguments = {"y": labels, "scoring": scoring, "settings": settings, "X": X}
    if not original.exists():
        Scene(make_guard, original, **arguments).guard.close()
    for name in ("guard.db", "guard.db.key"):
        shutil.copy(original.with_name(name), tmp_path / name)
    return Scene(make_guard, tmp_path / "guard.db", **arguments)


def but(array, value, dtype=None):
    """The array with one entry replaced."""
    changed = np.array(array, dtype=np.float64 if dtype is None else dtype)
    changed[7] = value
    return changed


class Case(NamedTuple):
    """One thing that does not fit."""

    name: str
    error: type[Exception]
    words: str
    act: Any


def on(metric, bad, *, prior=None, y=None):
    """Ask a guard of another metric about bad predictions, and see that it counted nothing."""

    def act(scene):
        guard = scene.of(metric, y=y)
        try:
            guard.evaluate(bad, prior=guard.metric.lower if prior is None else prior)
        finally:
            assert (guard.queries_asked, guard.charges_left) == (0, 1)

    return act


def model(changed, **arguments):
    """Ask about a model that does not fit."""

    def act(scene):
        scene.guard.evaluate(changed(scene), **{"prior": 0.7, **arguments})

    return act


def setting(**changes):
    return lambda scene: scene.make(scene.beside("other.db"), **changes)


def fitted(columns=3, classes=(0, 1)):
    X = np.random.default_rng(0).normal(size=(40, columns))
    return LogisticRegression().fit(X, np.resize(classes, 40))


HALF = np.full(ROWS, 0.5)
MATRIX = np.full((ROWS, 3), 1 / 3)
THREE = np.resize([0, 1, 2], ROWS)

# what predictions, labels and models may be is asked at length in tests/metrics and test_models.py
PREDICTIONS = [
    Case("NaN", InputError, "NaN|among", lambda s: s.ask(but(s.good, np.nan))),
    Case("None inside", InputError, "missing", lambda s: s.ask([None, *s.good.tolist()[1:]])),
    Case("None", InputError, ".", lambda s: s.ask(None)),
    Case("text", InputError, ".", lambda s: s.ask("yes")),
    Case("an object", InputError, ".", lambda s: s.ask(object())),
    Case("two columns", InputError, ".", lambda s: s.ask(np.stack([s.good, s.good], axis=1))),
    Case("an unknown label", InputError, "classes 0, 1", lambda s: s.ask(but(s.good, 2, int))),
    Case("a wide sparse matrix", InputError, ".", lambda s: s.ask(scipy.sparse.csr_matrix(s.good))),
    Case("numbers for text labels", InputError, ".", on("accuracy", THREE, y=np.array(list("abc"))[THREE])),
    Case(
        "the wrong text",
        InputError,
        "classes a, b, c",
        on("accuracy", np.array(list("abd"))[THREE], y=np.array(list("abc"))[THREE]),
    ),
    Case("a probability above 1", InputError, r"\[0, 1\]", on("brier", but(HALF, 1.5))),
    Case("an infinite probability", InputError, "finite", on("log_loss", but(HALF, -np.inf))),
    Case("probabilities that do not sum to 1", InputError, "sum to 1", on("brier", MATRIX * 0.9, y=THREE)),
    Case("a NaN score", InputError, "finite", on("roc_auc", but(HALF, np.nan))),
    Case("a NaN value", InputError, "finite", on(mae(lower=0, upper=9), but(HALF, np.nan), y=HALF)),
]

PRIORS = [
    *(
        Case(f"prior {prior!r:.20}", InputError, "a prior must be", lambda s, p=prior: s.ask(s.fresh, p))
        for prior in (
            *(np.nan, np.inf, -np.inf, 1.0000001, -1e-9, 1e300, -(10**40), "0.7", b"0.7", "nonsense"),
            *(None, True, np.True_, 1j, [0.7], [0.7, 0.7], np.array([]), np.array(["0.7"]), {}, object),
            10**400,
        )
    ),
    Case("a prior above 9", InputError, r"\[0, 9\]", on(mae(lower=0, upper=9), HALF, prior=9.1, y=HALF)),
    Case("a prior below the metric's bounds", InputError, ".", on("log_loss", HALF, prior=-0.01)),
]  # fmt: skip

BATCHES = [
    Case("an empty batch", InputError, "at least one", lambda s: s.many([], [])),
    Case("one question for a batch", InputError, "a prior must be", lambda s: s.many(s.good, [0.5])),
    Case("one bad question", InputError, r"predictions\[1\]", lambda s: s.many([s.fresh, but(s.good, 2)], [0.7, 0.7])),
    Case("too few priors", InputError, r"\(2,\)", lambda s: s.many([s.fresh, s.good], [0.7])),
    Case("too many priors", InputError, r"\(1,\)", lambda s: s.many([s.fresh], [0.7, 0.7])),
    Case("one prior for all", InputError, r"\(1,\)", lambda s: s.many([s.fresh], 0.7)),
    Case("a NaN prior", InputError, "a prior must be", lambda s: s.many([s.fresh, s.good], [0.7, np.nan])),
    Case("an infinite prior", InputError, "a prior must be", lambda s: s.many([s.fresh], [np.inf])),
    Case("a prior beyond", InputError, "a prior must be", lambda s: s.many([s.fresh], [1.1])),
    Case("text priors", InputError, "must be a number", lambda s: s.many([s.fresh], ["0.7"])),
    Case("boolean priors", InputError, "must be a number", lambda s: s.many([s.fresh], [True])),
    Case("no priors", InputError, ".", lambda s: s.many([s.fresh], None)),
    Case("ragged priors", InputError, ".", lambda s: s.many([s.fresh, s.good], [[0.5], [0.5, 0.5]])),
    Case("objects as priors", InputError, "must be a number", lambda s: s.many([s.fresh], [None])),
    Case("a huge prior", InputError, ".", lambda s: s.many([s.fresh], [10**400])),
    Case("too few names", InputError, "names", lambda s: s.many([s.fresh, s.good], [0.7] * 2, names=["a"])),
    Case("one text for names", InputError, "names", lambda s: s.many([s.fresh], [0.7], names="a")),
    Case("numbers for names", InputError, "names", lambda s: s.many([s.fresh], [0.7], names=[1])),
    Case("a number among names", InputError, "names", lambda s: s.many([s.fresh] * 2, [0.7] * 2, names=["a", 1])),
    Case("a number for names", InputError, "names", lambda s: s.many([s.fresh], [0.7], names=1)),
    Case("a name that is no Unicode", InputError, "name", lambda s: s.ask(s.fresh, name="\ud800")),
    Case(
        "more questions than are left",
        BudgetError,
        "39 new questions asked, 38 left of 40",
        lambda s: s.many([np.roll(s.fresh, k) for k in range(39)], [0.75] * 39),
    ),
]  # fmt: skip

MODELS = [
    Case("no model", InputError, "predict", model(lambda _: object())),
    Case("a model for other columns", InputError, "3 columns", model(lambda _: fitted(4))),
    Case("an unfitted model", InputError, "fitted", model(lambda _: LogisticRegression())),
    Case("no prior and no training data", InputError, "prior", model(lambda _: fitted(), prior=None)),
    Case("a text prior", InputError, "prior", model(lambda _: fitted(), prior="0.7")),
    Case("a NaN prior of a model", InputError, "prior", model(lambda _: fitted(), prior=np.nan)),
    Case("a nonsense name of a model", InputError, "name", model(lambda _: fitted(), name=3)),
    Case("a model for labels only", InputError, "labels only", lambda s: s.make(X=None).evaluate(fitted(), prior=0.7)),
    Case("a prior that is a word", InputError, "prior", lambda s: s.guard.evaluate(fitted(), s.X, s.y, prior="loo")),
    *(
        Case(f"cv={cv!r}", InputError, "cv must be", lambda s, cv=cv: s.guard.evaluate(fitted(), s.X, s.y, cv=cv))
        for cv in (1, 0, -3, True, "5", 2.5, None)
    ),
]  # fmt: skip

SETTINGS = [
    *(
        Case(f"{name}={value!r}", InputError, name, setting(**{name: value}))
        for name, values in {
            "queries": (0, -1, 1.5, "10", True, np.nan, 10**30, None),
            "charges": (0, -1, 1.5, "3", True, np.inf, 10**30),
            "tolerance": (0.0, -0.1, np.nan, np.inf, "0.1", True, 1j, []),
            "threshold": (0.0, -0.1, np.nan, np.inf, "0.1"),
            "noise": (-0.1, np.nan, np.inf, "0.1"),
            "prior_error": (0.0, -0.1, np.nan, np.inf, "0.1"),
            "reveals": (-1, 1.5, "3", "", [], False, True, 10**30),
            "choices": ((0,), (-1,), (1.5,), ("3",), (None,), "3", 3, 0, (10**30,)),
            "confidence": (0.0, 1.0, -1.0, 1.5, 95, np.nan, "0.95"),
            "estimate": (-0.1, 1.1, np.nan, np.inf, "0.7"),
            "delta": (-0.1, 1.0, 2.0, np.nan, "0.1"),
        }.items()
        for value in values
        if (name, value) != ("queries", None)
    ),
    Case("more charges than queries", PlanError, "charges", setting(charges=41)),
    Case("an impossible tolerance", PlanError, "it needs", setting(tolerance=1e-6)),
    Case("an unknown metric", InputError, ".", setting(metric="acuracy")),
    Case("a function for a metric", InputError, ".", setting(metric=np.mean)),
    Case("a metric without its bounds", InputError, ".", setting(metric="mae")),
    Case("no rows", InputError, "at least 1", setting(X=None, y=[])),
    Case("no labels", InputError, ".", setting(X=None, y=None)),
    Case("more labels than rows", InputError, "the same number of rows", setting(y=np.append(THREE, 0))),
    *(
        Case(f"one class for {metric}", InputError, ".", lambda s, m=metric: s.of(m, y=np.zeros(ROWS, int)))
        for metric in ("balanced_accuracy", "roc_auc")
    ),
    Case("features that are objects", InputError, "numbers, dates or text", setting(X=np.zeros(ROWS, "V8"))),
]


def on_an_unwritable_file(scene):
    """Root may write any file, but not where a folder lies in place of the write-ahead log."""
    scene.guard.close()
    folder = scene.beside("guard.db-wal")
    folder.mkdir()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "reusable_holdout.ledger.sqlite._BUSY_SECONDS", 0
            )  # it would wait for the folder to go
            scene.make(scene.ledger).evaluate(scene.fresh, prior=0.2)
    finally:
        folder.rmdir()


def on_a_read_only_file(scene):
    scene.guard._view.ledger._connection.driver.execute("PRAGMA query_only = ON")
    scene.ask(scene.fresh, 0.2)


def on_a_full_disk(scene):
    connection = scene.guard._view.ledger._connection.driver
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    scene.guard.evaluate(scene.fresh, prior=0.2, name="long " * 100_000)


def opened(scene, **changes):
    ReusableHoldout.open(**{"ledger": scene.ledger, "X": scene.X, "y": scene.y, **changes})


LEDGERS = [
    Case("an unwritable file", LedgerError, "check the file", on_an_unwritable_file),
    Case("a read-only file", LedgerError, "READONLY.*nothing was charged", on_a_read_only_file),
    Case("a full disk", LedgerError, "FULL.*nothing was charged", on_a_full_disk),
    Case("opening with another metric", LedgerMismatchError, "metric is", lambda s: opened(s, metric="zero_one_loss")),
    Case("opening with another key", LedgerMismatchError, "noise key", lambda s: opened(s, key=bytes(32))),
    Case("a short key", InputError, "32 bytes; got 3", lambda s: opened(s, key=b"abc")),
    Case("a key of another kind", InputError, "bytes or a Path", lambda s: opened(s, key=3)),
    Case("a key and a seed", InputError, "not both", lambda s: opened(s, key=bytes(32), seed=3)),
    Case("a seed of text", InputError, "integer", lambda s: s.make(seed="three")),
    Case("a seed with a fraction", InputError, "integer", lambda s: s.make(seed=3.5)),
    Case("a path that cannot be made", LedgerError, "check the file", lambda s: s.make("/proc/guard.db")),
    Case("a folder for a key", LedgerKeyError, "restore", lambda s: s.make(s.beside("b.db"), key=s.ledger.parent)),
    Case("a key in no folder", LedgerError, "writable", lambda s: s.make(key=s.beside("none") / "key")),
    Case("a key in /proc", LedgerError, "another folder", lambda s: s.make(key=Path("/proc/guard.key"))),
    Case("a key of mutable bytes", InputError, "bytes or a Path", lambda s: s.make(key=bytearray(32))),
    Case("a long key", InputError, "32 bytes; got 33", lambda s: s.make(key=bytes(33))),
    Case("verifying a folder", LedgerError, "folder", lambda s: verify(s.ledger.parent)),
    Case("verifying another database's text", LedgerError, ".", lambda s: verify(s.beside("guard.db.key"))),
]  # fmt: skip

QUESTIONS = [*PREDICTIONS, *PRIORS, *BATCHES, *MODELS]


def refused(scene, case):
    before = scene.guard.history()
    caught = refuses(case.error, case.words, case.act, scene)
    assert type(caught) is case.error
    assert len(str(caught)) > 20
    with scene.make(scene.ledger) as guard:
        assert guard.queries_asked == 2
        assert guard.charges_left == before["charges_left"].iloc[-1]
        pd.testing.assert_frame_equal(guard.history(), before)
    assert verify(scene.ledger).problems == []


@for_each("case", QUESTIONS, ids=[case.name for case in QUESTIONS])
def test_bad_questions_are_refused_with_words_and_at_no_cost(scene, case):
    refused(scene, case)


@for_each("case", SETTINGS, ids=[case.name for case in SETTINGS])
def test_bad_settings_are_refused_with_words_and_at_no_cost(scene, case):
    refused(scene, case)


@pytest.mark.parametrize("case", LEDGERS, ids=[case.name for case in LEDGERS])
def test_bad_ledgers_are_refused_with_words_and_at_no_cost(scene, case):
    refused(scene, case)


# ---- odder things


def about(**attributes):
    """Ask about a model with such attributes."""
    return model(lambda _: type("M", (), {"predict": lambda _, X: np.ones(len(X), int), **attributes})())


def estimated(X=None, y=None, **arguments):
    """Ask about a fitted model with such training data."""

    def act(scene):
        rows = np.arange(60)
        scene.guard.evaluate(
            fitted(), scene.X[rows] if X is None else X, scene.y[rows] if y is None else y, **arguments
        )

    return act


ODD = [
    Case("a text array for a prior", InputError, "a prior must be", lambda s: s.ask(s.fresh, np.array("0.7"))),
    Case("bytearray for a prior", InputError, "a prior must be", lambda s: s.ask(s.fresh, bytearray(b"0.7"))),
    Case("a duration for a prior", InputError, "a prior must be", lambda s: s.ask(s.fresh, np.timedelta64(0, "ns"))),
    Case("a boolean array for a prior", InputError, "a prior must be", lambda s: s.ask(s.fresh, np.array(True))),
    Case("features that are a number", InputError, ".", setting(X=3)),
    Case("features that are one text", InputError, ".", setting(X="a" * ROWS)),
    Case("features that are ragged", InputError, ".", setting(X=[[1], [1, 2]] * 1_000)),
    Case("features that can be read once", InputError, ".", setting(X=iter(range(ROWS)))),
    Case("features that are a set", InputError, ".", setting(X=set(range(ROWS)))),
    Case("a boolean seed", InputError, "integer", lambda s: s.make(seed=True)),
    Case("a path with a zero byte", LedgerError, ".", lambda s: s.make("a\0b")),
    Case("a path that is too long", LedgerError, ".", lambda s: s.make("x" * 5_000)),
    Case("verifying a path that is too long", LedgerError, ".", lambda _: verify("x" * 5_000)),
    Case("a model with several outputs", InputError, "classes", about(classes_=[np.arange(2), np.arange(2)])),
    Case("a model with nonsense for classes", InputError, "classes", about(classes_=3)),
    Case("more folds than rows", InputError, "cv", estimated(cv=100)),
    Case("no training rows", InputError, ".", estimated(np.empty((0, 3)), np.empty(0, int))),
    Case("a splitter without folds", InputError, "cv", estimated(cv=type("C", (), {"split": lambda *_: iter(())})())),
]  # fmt: skip


@for_each("case", ODD, ids=[case.name for case in ODD])
def test_more_bad_input_is_refused_with_words_and_at_no_cost(scene, case, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # some of these make a ledger where they stand
    refused(scene, case)


def test_no_case_is_named_twice():
    cases = [*QUESTIONS, *SETTINGS, *LEDGERS, *ODD]
    assert len({case.name for case in cases}) == len(cases)
