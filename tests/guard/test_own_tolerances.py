"""Guess and check: a tolerance for each question, kept or refused, and never a free look at the holdout."""

import contextlib

import numpy as np
import pytest
from cases import for_each, refuses

from reusable_holdout import Metric
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.metrics import rmse


def untouched(guard):
    return guard.queries_asked == 0 and not len(guard.history())


def least_tolerance(guard, prior=0.7):
    """The tolerance that a refusal names."""
    with pytest.raises(InputError, match="nothing was asked and nothing was charged") as refused:
        guard.evaluate(np.zeros(2_000, dtype=int), prior=prior, tolerance=1e-4)
    return float(str(refused.value).split("at least ")[1].split()[0])


@pytest.fixture
def guessing(make_guard):
    """A tolerance of 0.2 by default; 0.1 can be kept at first, 0.078 just so."""
    wish = {"tolerance": 0.2, "queries": 200, "charges": None, "threshold": None}
    return make_guard(**wish)


def test_a_guess_within_its_tolerance_stays_and_its_interval_keeps_it(guessing, scoring):
    answer = guessing.evaluate(scoring(0.7), prior=0.71, tolerance=0.1)
    assert (answer.value, answer.charged) == (0.71, False)
    assert 0.61 <= answer.low < 0.7 < answer.high <= 0.81
    other = guessing.evaluate(scoring(0.7), prior=0.71)
    assert (other.replayed, other.query) == (False, 2)
    assert other.threshold != answer.threshold


def test_a_tolerance_decides_what_is_charged(guessing, scoring):
    wide = guessing.evaluate(scoring(0.7), prior=0.75, tolerance=0.2)
    narrow = guessing.evaluate(scoring(0.7), prior=0.75, tolerance=0.08)
    assert (wide.charged, narrow.charged) == (False, True)
    assert narrow.low < 0.7 < narrow.high


def test_another_tolerance_is_another_question_and_the_same_is_a_replay(guessing, scoring):
    asked = [
        guessing.evaluate(scoring(0.7), prior=0.7, tolerance=tolerance)
        for tolerance in (None, 0.2, 0.1, 0.1000001, 0.1)
    ]
    assert [answer.replayed for answer in asked] == [False, False, False, False, True]
    (batch,) = guessing.evaluate([scoring(0.7)], prior=[0.7], tolerance=[0.1])
    assert batch.replayed
    assert guessing.queries_asked == 4


def test_a_tolerance_next_to_nothing_is_not_the_question_without_one(guessing, scoring):
    guessing.evaluate(scoring(0.7), prior=0.7)
    refuses(InputError, "", guessing.evaluate, scoring(0.7), prior=0.7, tolerance=1e-12)


@for_each("prior", [0.0, 0.03, 0.5, 0.7, 0.97, 1.0])
def test_a_tolerance_that_cannot_be_kept_is_refused_with_nothing_asked(guessing, prior):
    least_tolerance(guessing, prior)
    with pytest.raises(InputError, match="at least"):
        guessing.evaluate(list([np.zeros(2_000, dtype=int)] * 2), prior=[prior, prior], tolerance=[0.2, 1e-4])
    assert untouched(guessing)


def test_a_refusal_names_a_tolerance_in_the_metrics_unit_and_hardly_a_wider_one_than_needed(make_guard):
    wide = rmse(lower=0.0, upper=100.0)  # of a mean the rows decide, whatever its tolerance
    guard = make_guard(y=np.zeros(2_000), metric=wide, threshold=None, estimate=70.0, noise=None)
    with pytest.raises(InputError, match="at least") as refused:
        guard.evaluate(np.full(2_000, 70.0), prior=70.0, tolerance=0.01)
    named = float(str(refused.value).split("at least ")[1].split()[0])
    refuses(InputError, "at least", guard.evaluate, np.full(2_000, 70.0), prior=70.0, tolerance=0.99 * named)
    answer = guard.evaluate(np.full(2_000, 70.0), prior=70.0, tolerance=named)
    assert max(70.0 - answer.low, answer.high - 70.0) <= named * (1 + 1e-12) < 100.0


def test_the_tolerance_that_a_refusal_names_is_accepted(guessing, scoring):
    for prior in (0.1, 0.3, 0.5, 0.7, 0.9):
        named = least_tolerance(guessing, prior)
        answer = guessing.evaluate(scoring(prior), prior=prior, tolerance=named)
        assert max(prior - answer.low, answer.high - prior) <= named


@for_each(
    "tolerance",
    [
        *(0.0, -0.1, 1.5, float("nan"), float("inf"), "wide", "0.1", True, 10**400, [], {}, object()),
        (0.1, None),
    ],
)
def test_a_tolerance_that_is_none_is_refused(guessing, labels, tolerance):
    refuses(InputError, r"tolerances? must be", guessing.evaluate, labels, prior=0.7, tolerance=tolerance)
    assert untouched(guessing)


@for_each("tolerances", [[0.1], [0.1, 0.1, 0.1], 0.1, [[0.1, 0.1]], [0.1, -1.0], ["0.1", "0.2"]])
def test_tolerances_of_a_batch_are_one_for_each_question(guessing, labels, tolerances):
    with pytest.raises(InputError, match=r"tolerances? must be"):
        guessing.evaluate([labels, 1 - labels], prior=[0.7, 0.7], tolerance=tolerances)
    assert untouched(guessing)


def test_a_tolerance_that_a_charge_inside_the_batch_makes_impossible_does_not_undo_the_charge(
    guessing, scoring
):
    """Both batches state the same; only the holdout tells them apart, so each must leave its mark."""
    narrow = least_tolerance(guessing) + 0.002  # kept before the first charge only
    for variant, score in enumerate((0.7, 0.3)):
        before = guessing.queries_asked
        asked = [scoring(score, variant), scoring(0.7, 50 + variant)]
        with contextlib.suppress(InputError):
            guessing.evaluate(list(asked), prior=[0.7, 0.7], tolerance=[0.2, narrow])
        assert guessing.queries_asked > before


def test_whether_a_metric_fails_does_not_decide_whether_a_batch_is_refused(make_guard, labels):
    def loss(truth, predicted):
        if (predicted == 1).all() and truth[0] == labels[0]:
            raise ArithmeticError
        return (truth != predicted).astype(float)

    metric = Metric(name="probing", lower=0, upper=1, greater_is_better=False, response="labels", loss=loss)
    outcomes = []
    for first in (np.ones(2_000, dtype=int), np.arange(2_000) % 2):
        guard = make_guard(metric=metric)
        with pytest.raises((InputError, ModelError)) as raised:
            guard.evaluate([first, labels], prior=[0.5, 0.5], tolerance=[1.0, 1e-4])
        outcomes.append((raised.type, guard.queries_asked))
    assert outcomes[0] == outcomes[1]


def test_tolerances_of_a_batch_decide_as_those_of_single_questions(make_guard, scoring):
    wish = {"tolerance": 0.2, "queries": 200, "charges": None, "threshold": None}
    single, batch = (make_guard(**wish) for _ in range(2))
    tolerances = [0.2, 0.15, 0.18, 0.16, 0.2]
    predictions = [scoring(score, k) for k, score in enumerate((0.7, 0.9, 0.65, 0.5, 0.6))]
    alone = [
        single.evaluate(each, prior=0.7, tolerance=tolerance)
        for each, tolerance in zip(predictions, tolerances, strict=True)
    ]
    together = batch.evaluate(list(predictions), prior=[0.7] * 5, tolerance=tolerances)
    assert [(a.value, a.charged, a.threshold) for a in alone] == [
        (a.value, a.charged, a.threshold) for a in together
    ]
    assert [answer.charged for answer in alone] == [False, True, False, True, False]
