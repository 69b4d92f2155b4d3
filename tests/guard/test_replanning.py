"""Rows are given another plan before their first question, and never afterwards."""

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from cases import refuses
from made_guards import made_guard

from reusable_holdout import Question, ReusableHoldout, verify
from reusable_holdout.errors import InputError, LedgerMismatchError, RolledBackError, RotatedError
from reusable_holdout.guard.configuration import Configuration

LABELS = np.arange(4_000) % 2
PLAN = {"queries": 100, "tolerance": 0.1}


@pytest.fixture
def make(tmp_path):
    def made(labels=LABELS, **settings):
        return made_guard(
            None, labels, ledger=tmp_path / "guard.db", **PLAN | {"unwitnessed": True} | settings
        )

    return made


@pytest.mark.parametrize(
    "other",
    [
        *({"tolerance": 0.06}, {"queries": 500}, {"metric": "zero_one_loss"}),
        *({"metric": "f1", "tolerance": 0.2}, {"gates": True}, {"classes": [0, 1, 2]}),
        {"sample_weight": np.arange(4_000) < 3_000},
    ],
    ids="-".join,
)
def test_another_plan_is_an_epoch_of_its_own(make, tmp_path, other):
    before = make()
    refuses(LedgerMismatchError, r"replan=True|pass the same", make, **other)
    after = make(**other, replan=True)
    assert after.epoch == 2
    assert after.queries_asked == 0
    assert all(getattr(after.plan, name) == value for name, value in other.items() if name in PLAN)
    ask = after.gate if other.get("gates") else lambda one, prior: after.evaluate(one, prior=prior)
    assert ask(LABELS, 0.9).query == 1
    refuses(RotatedError, "given another plan", before.evaluate, LABELS, prior=1.0)
    found = verify(tmp_path / "guard.db")
    assert found.sound
    assert found.queries == 1


def test_where_nothing_is_new_the_guard_is_resumed(make):
    first = make(replan=True)
    again = make(replan=True)
    assert again.epoch == first.epoch == 1
    first.evaluate(LABELS, prior=1.0)
    assert make(replan=True).evaluate(LABELS, prior=1.0).replayed


def test_after_the_first_question_it_is_refused_and_the_guard_goes_on(make):
    guard = make()
    guard.evaluate(LABELS, prior=1.0)
    with pytest.raises(LedgerMismatchError, match="queries answered: 1; nothing was changed"):
        make(tolerance=0.06, replan=True)
    assert guard.evaluate(1 - LABELS, prior=0.0).query == 2
    assert guard.epoch == 1


def test_a_view_that_was_opened_is_something_that_was_told(make):
    make().on("zero_one_loss")
    refuses(LedgerMismatchError, "queries answered: 1", make, tolerance=0.06, replan=True)


def test_class_counts_that_were_told_are_told_again_but_in_no_other_way(make):
    settings = {"metric": "recall", "tolerance": 0.2}
    assert make(**settings)._view.facts.counts.place is not None
    assert make(**settings | {"tolerance": 0.25}, replan=True).epoch == 2
    halved = {"sample_weight": np.arange(4_000) < 2_000}
    for other in ({"prevalence": [0.3, 0.7]}, {"metric": "accuracy"}, {"metric": "specificity"}, halved):
        with pytest.raises(LedgerMismatchError, match="class counts were told; nothing was changed"):
            make(**settings | other, replan=True, vacuous=True)


def test_where_the_rows_evidence_decides_no_class_counts_were_told(make):
    make(metric="f1", tolerance=0.2)
    assert make(metric="f1", tolerance=0.2, prevalence=[0.3, 0.7], replan=True).epoch == 2
    assert make(replan=True).epoch == 3


def test_ids_and_the_word_on_overlap_stay(make):
    make(ids=np.arange(4_000), overlapping=True)
    with pytest.raises(LedgerMismatchError, match="once overlap was allowed for rows"):
        make(ids=np.arange(4_000), tolerance=0.06, replan=True)
    with pytest.raises(LedgerMismatchError, match="ids= must be those"):
        make(ids=np.arange(4_000).astype(str), overlapping=True, tolerance=0.06, replan=True)
    assert make(ids=np.arange(4_000), overlapping=True, tolerance=0.06, replan=True).epoch == 2


class Agrees:
    """Predicts the labels, which are the only feature."""

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("kind", ["evaluate", "choose"])
@pytest.mark.parametrize("how", ["replanned", "rotated"])
def test_what_was_measured_before_is_no_answer_afterwards(tmp_path, how, kind):
    X, settings = (
        LABELS[:, None].astype(float),
        PLAN | {"choices": [1], "ledger": tmp_path / "guard.db", "unwitnessed": True},
    )
    before = made_guard(X, LABELS, **settings)
    measured = before.measure(Agrees(), prior=0.5, way=kind)
    if how == "replanned":
        after = made_guard(X, LABELS, metric="zero_one_loss", replan=True, **settings)
    else:
        after = before.rotate(X[::-1].copy(), 1 - LABELS[::-1], early=True).guard
    refuses(InputError, "must come from this guard's measure", after.ask, [Question(kind, [measured], [0.5])])
    assert after.queries_asked == 0


def test_a_released_holdout_that_comes_back_is_found_though_nothing_was_asked_of_it(tmp_path):
    path, settings = tmp_path / "guard.db", PLAN | {"unwitnessed": True}
    first = made_guard(None, LABELS, ledger=path, **settings)
    made_guard(None, LABELS, ledger=path, **settings | {"tolerance": 0.2}, replan=True)
    again = made_guard(None, LABELS, ledger=path, **settings | {"tolerance": 0.2})
    again.rotate(None, np.roll(LABELS, 1) ^ (np.arange(4_000) < 100), early=True)
    assert verify(path).sound
    ledger = first._view.ledger.latest()
    stored, known_rows = Configuration.parse(ledger.configurations()[0]), ledger.known_rows(1)
    with ledger.transaction() as transaction:
        text = replace(stored, epoch=4, previous=transaction.tail.seal.hex()).text()
        transaction.rotate(text, known_rows)
    found = verify(path)
    assert not found.sound
    assert sum("which was released" in problem for problem in found.problems) == 2


def test_other_rows_or_another_key_are_refused_as_ever(make):
    make()
    refuses(LedgerMismatchError, "it belongs to other data", make, 1 - LABELS, tolerance=0.06, replan=True)
    refuses(LedgerMismatchError, "noise key", make, key=bytes(32), tolerance=0.06, replan=True)
    assert make().epoch == 1


def test_a_guard_that_was_sent_elsewhere_is_refused_there(make):
    sent = pickle.dumps(make())
    after = make(tolerance=0.06, replan=True)
    refuses(RotatedError, "given another plan", pickle.loads(sent).evaluate, LABELS, prior=1.0)
    assert pickle.loads(pickle.dumps(after)).evaluate(LABELS, prior=1.0).query == 1


def test_the_witness_sees_it_and_an_older_copy_is_refused(make, tmp_path):
    watched = {"witness": tmp_path / "witness"}
    make(**watched).close()
    shutil.copy(tmp_path / "guard.db", tmp_path / "older.db")
    make(tolerance=0.06, replan=True, **watched).close()
    shutil.copy(tmp_path / "older.db", tmp_path / "guard.db")
    refuses(RolledBackError, "", make, **watched)


def test_the_budget_is_the_rows_only_one_and_stays_marked_where_it_is_not(make, tmp_path, monkeypatch):
    monkeypatch.setenv("REUSABLE_HOLDOUT_REGISTRY", str(tmp_path / "registry"))
    with made_guard(None, LABELS, ledger=tmp_path / "first.db", unwitnessed=True, **PLAN):
        make(another_budget=True)
        guard = make(tolerance=0.06, replan=True)
    assert guard.evaluate(LABELS, prior=1.0).another_budget
    assert verify(tmp_path / "guard.db").another_budget


def test_rows_are_known_again_when_the_guard_is_rotated(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8_000, 3))
    y = (X[:, 0] > 0).astype(int)
    settings = {"ledger": tmp_path / "guard.db", "unwitnessed": True, "queries": 100}
    made_guard(X[:4_000], y[:4_000], tolerance=0.1, **settings)
    guard = made_guard(X[:4_000], y[:4_000], tolerance=0.2, replan=True, **settings)
    guard.evaluate(y[:4_000], prior=1.0)
    refuses(ValueError, "rows", guard.rotate, X[2_000:6_000], y[2_000:6_000], early=True)
    assert guard.rotate(X[4_000:], y[4_000:], early=True).guard.epoch == 3
    assert verify(tmp_path / "guard.db").sound


def test_of_several_at_once_the_last_one_answers(make, tmp_path):
    make()

    def planned(tolerance):
        try:
            return make(tolerance=tolerance, replan=True)
        except (RotatedError, LedgerMismatchError) as error:  # before it began, or before it took its place
            return error

    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(planned, [0.06, 0.07, 0.08, 0.09]))
    guards = [one for one in made if isinstance(one, ReusableHoldout)]
    last = max(guards, key=lambda one: one.epoch)
    assert last.evaluate(LABELS, prior=1.0).query == 1
    for guard in guards:
        if guard is not last:
            refuses(RotatedError, "", guard.evaluate, LABELS, prior=1.0)
    assert verify(tmp_path / "guard.db").sound
