"""Ledgers that version 0.2.0 made with `exam=`: they verify, say what was wrong, replay, and answer nothing new."""

import dataclasses
import json

import numpy as np
import pytest
from cases import for_each
from golden.asking import FOLDER, Golden
from guard.forging import rewrite, sql
from sklearn.base import BaseEstimator, ClassifierMixin

from reusable_holdout import Plan, ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.report import report_page

GRADED = Golden.read(FOLDER / "0.2.0" / "graded")
LABELS = GRADED.arrays[GRADED.expected["holdout"]["y"]["array"]]
SCORES = np.where(LABELS == 1, 0.65, 0.35)
WORDS = "made with exam= by version 0.2.0, and the certificate of its final rests on a mistake"


@pytest.fixture
def ledger(tmp_path):
    return GRADED.copied(tmp_path / "graded")


@pytest.fixture
def unfinished(ledger):
    """The same before its final."""
    sql(ledger, ("DELETE FROM answers WHERE kind = 'final'",))
    assert verify(ledger).sound
    return ledger


# ---- there is no such option


class FailsIfExtreme(ClassifierMixin, BaseEstimator):
    """A model that tells by failing whether its score on some rows is extreme."""

    def __init__(self, truth, rows):
        self.truth, self.rows = truth, rows

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        guessed = (X[:, 0] > 0).astype(int)
        if len(X) > self.rows.max() and abs((guessed == self.truth)[self.rows].mean() - 0.5) > 0.05:
            raise ValueError("extreme")
        return guessed


@for_each("exam", [0.1, 200, None])
def test_no_rows_that_models_predict_are_taken_for_rows_of_which_nothing_was_told(exam):
    X = np.random.default_rng(0).normal(size=(2_000, 2))
    y = np.random.default_rng(1).integers(0, 2, len(X))
    settings = {"queries": 40, "charges": 3, "exam": exam}
    with pytest.raises(InputError, match=r"no argument 'exam' any more; .* keep rows .* in another file"):
        ReusableHoldout(X, y, **settings).evaluate(FailsIfExtreme(y, np.arange(200)), prior=0.5)
    with pytest.raises(InputError, match="in another file"):
        Plan(rows=2_000, **settings)


# ---- what is said of their certificate


def test_verify_says_what_was_wrong_with_the_certificate(ledger, capsys):
    found = verify(ledger)
    assert found.sound
    assert WORDS in found.mistake
    assert f"mistaken: it was {WORDS}" in str(found)
    assert main(["verify", str(ledger), "--json"]) == 0
    assert WORDS in json.loads(capsys.readouterr().out)["mistake"]


def test_history_and_report_say_it_too(ledger, capsys):
    assert main(["history", str(ledger)]) == 0
    assert WORDS in capsys.readouterr().err
    page, _ = report_page(ledger)
    assert WORDS in page


def test_nothing_is_said_of_other_ledgers(tmp_path, capsys):
    other = Golden.read(FOLDER / "0.2.0" / "values").copied(tmp_path / "values")
    assert verify(other).mistake == ""
    assert main(["history", str(other)]) == 0
    assert capsys.readouterr().err == ""


@for_each(
    ("view", "how"),
    [
        (0, lambda told: told.replace("value 0.124", "value 0.524")),
        (0, lambda told: told.replace("within 0.096", "within 0.106")),
        (0, lambda told: told + "; apart; apart"),
        (0, lambda told: "value 0.124672363"),
        (1, lambda told: told.replace("exam 0.115 binomial 400", "exam 0.115 binomial 4000")),
        (1, lambda told: told.replace("exam 0.115", "exam 0.2")),
        (1, lambda told: told.replace("of 2;", "of 3;")),
        (1, lambda told: told + "; apart"),
        (1, lambda told: told.replace("value 0.1525", "value 0.155")),
        (1, lambda told: told.replace("all 0.1525 binomial", "all 1.525 binomial")),
        (1, lambda told: "value 0.1525"),
    ],
)
def test_a_final_that_was_changed_is_found(tmp_path_factory, view, how):
    ledger = GRADED.copied(tmp_path_factory.mktemp("changed") / "graded")

    def change(rows):
        forged = [row for row in rows if row.kind == "final" and row.view == view]
        assert len(forged) == 1
        assert how(forged[0].told) != forged[0].told
        return [row._replace(told=how(row.told)) if row in forged else row for row in rows]

    rewrite(ledger, change)
    assert not verify(ledger).sound


# ---- they answer nothing new


def asked_of(guard):
    """Every way to ask something new."""
    view = guard.on("zero_one_loss", estimate=0.2, vacuous=True)
    yield lambda: guard.evaluate_predictions(SCORES, prior=0.2)
    yield lambda: guard.evaluate_many([SCORES, 1 - SCORES], [0.2, 0.3])
    yield lambda: guard.reveal_predictions(SCORES, prior=0.2)
    yield lambda: guard.choose_predictions([SCORES, 1 - SCORES], [0.2, 0.2])
    yield lambda: guard.compare_predictions(SCORES, 1 - SCORES, prior=0.1)
    yield lambda: guard.on("f1", vacuous=True)
    yield lambda: view.evaluate_predictions(LABELS, prior=0.2)
    yield lambda: guard.final_predictions(SCORES)


def test_a_ledger_with_an_exam_replays_and_answers_nothing_new(unfinished):
    before = verify(unfinished)
    with GRADED.opened(unfinished) as guard:
        views = GRADED.views(guard)
        for question in GRADED.expected["questions"][:-1]:
            told = GRADED.ask(views, question)
            assert told.pop("replayed", True)
            assert told == question["told"]
        assert guard.halted
        for ask in asked_of(guard):
            with pytest.raises(Halted, match=r"exam= by version 0\.2\.0"):
                ask()
    assert verify(unfinished) == before


def test_it_goes_on_with_fresh_rows_without_one(unfinished):
    fresh = np.random.default_rng(1).integers(0, 2, 3_000)
    with GRADED.opened(unfinished) as guard, guard.rotate(None, fresh).guard as following:
        assert following.plan.record()["exam"] is None
        assert following.plan.rows == 3_000
        assert following.evaluate_predictions(np.where(fresh == 1, 0.65, 0.35), prior=0.12).query == 1
    assert verify(unfinished).sound
    assert WORDS in verify(unfinished).mistake  # of its first epoch


def test_its_rows_may_be_given_a_plan_without_one_if_nothing_was_asked(ledger):
    sql(ledger, ("DELETE FROM answers",))
    settings = {"metric": "brier", "queries": 40, "tolerance": 0.12, "estimate": 0.2, "spread": 0.25}
    more = {"reveals": 1, "choices": [3], "ledger": ledger, "witness": False}
    with ReusableHoldout(None, LABELS, replan=True, **settings, **more) as guard:
        assert guard.epoch == 2
        assert guard.plan.record()["exam"] is None
        assert not guard.evaluate_predictions(SCORES, prior=0.12).charged
    assert verify(ledger).sound


def test_a_kept_plan_is_written_down_as_it_was():
    record = GRADED.expected["plan"]
    plan = Plan.kept(record)
    assert plan.record() == record
    assert (plan.rows, plan.exam_rows) == (1_600, 400)
    assert plan.certificate(greater_is_better=False) == dataclasses.replace(
        Plan.kept({**record, "exam": None, "rows": 1_600}).certificate(greater_is_better=False), exam_rows=400
    )
