"""Asking a guard: answers, replays, halts, resumption, and whatever the data come in."""

import copy
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import (
    Answer,
    BudgetError,
    Halted,
    HoldoutError,
    LedgerError,
    LedgerKeyError,
    LedgerMismatchError,
    ModelError,
    ReusableHoldout,
    verify,
)
from reusable_holdout.queries import resolve_metric

HISTORY = [
    "query",
    "name",
    "prior",
    "value",
    "charged",
    "low",
    "high",
    "threshold",
    "charges_left",
    "asked_at",
]
BOTH = pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "guard.db"


@pytest.fixture
def place(durable, ledger):
    return ledger if durable else None


# ---- one question


@BOTH
def test_an_answer_that_agrees_is_the_prior_and_costs_nothing(make_guard, place, scoring):
    answer = make_guard(place).evaluate_predictions(scoring(0.7), prior=0.61, name="first")
    assert isinstance(answer, Answer)
    assert answer[:2] == (0.61, False)
    assert (answer.prior, answer.query, answer.charges_left, answer.replayed) == (0.61, 1, 3, False)
    assert (answer.threshold, answer.name) == (0.1, "first")
    assert answer.low <= 0.61 - 0.1 < 0.61 + 0.1 <= answer.high  # the holdout value is within the threshold


@BOTH
@pytest.mark.parametrize("prior", [0.8, 0.6, 0.599, 0.0, 1.0])
def test_an_answer_that_deviates_is_the_holdout_value_and_costs_a_charge(make_guard, place, scoring, prior):
    answer = make_guard(place).evaluate_predictions(scoring(0.7), prior=prior)
    assert (answer.value, answer.charged, answer.prior) == (0.7, True, prior)
    assert answer.charges_left < 3
    assert answer.low < 0.7 < answer.high


def test_a_charged_value_lies_on_the_stated_grid_and_within_the_bounds(make_guard, scoring):
    guard = make_guard(resolution=0.03, threshold=0.05, charges=20)
    for accuracy in (0.0, 0.3456, 0.99, 1.0):
        value = guard.evaluate_predictions(scoring(accuracy), prior=0.5).value
        assert 0.0 <= value <= 1.0
        assert math.isclose(value / 0.03, round(value / 0.03), abs_tol=1e-9) or value == 1.0
        assert abs(value - accuracy) <= 0.015 + 1e-9


def test_the_nearness_of_a_deviation_to_the_threshold_decides_to_the_last_row(make_guard, scoring):
    guard = make_guard(threshold=0.1003)  # 200.6 rows
    assert not guard.evaluate_predictions(scoring(0.7), prior=0.6).charged  # 200 rows away
    assert guard.evaluate_predictions(scoring(0.7005), prior=0.6).charged  # 201 rows away


def test_the_types_of_an_answer_are_plain(make_guard, scoring):
    answer = make_guard().evaluate_predictions(scoring(0.7), prior=np.float32(0.25))
    batch = make_guard().evaluate_many([scoring(0.7)], np.array([0.25], dtype=np.float32))[0]
    kinds = [float, bool, float, float, float, int, int, bool, float, str]
    assert [type(field) for field in answer] == kinds
    assert [type(field) for field in batch] == kinds
    assert "charged" in str(answer)


def test_a_batch_of_one_answers_like_a_single_question(make_guard, scoring):
    for prior in (0.65, 0.2):
        single = make_guard().evaluate_predictions(scoring(0.7), prior=prior)
        assert make_guard().evaluate_many([scoring(0.7)], [prior]) == [single]


# ---- models


@pytest.fixture
def problem():
    """Features and labels that a line separates with some noise: 600 training rows, 2,000 in the holdout."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2_600, 4))
    y = (X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=2_600) > 0).astype(int)
    return X[:600], y[:600], X[600:], y[600:]


def test_training_data_give_the_prior_and_the_fit(make_guard, problem):
    X_train, y_train, X, y = problem
    guard = make_guard(X=X, y=y)
    answer = guard.evaluate(LogisticRegression(), X_train, y_train)
    model = LogisticRegression().fit(X_train, y_train)
    assert not answer.charged
    assert abs(answer.prior - model.score(X_train, y_train)) < 0.05
    assert answer.name == "LogisticRegression"
    assert guard.history()["name"].tolist() == ["LogisticRegression"]


def test_an_unfitted_model_stays_unfitted(make_guard, problem):
    X_train, y_train, X, y = problem
    model = LogisticRegression()
    make_guard(X=X, y=y).evaluate(model, X_train, y_train)
    assert not hasattr(model, "coef_")


def test_the_fitted_model_is_asked_about_and_not_refitted(make_guard, problem):
    X_train, y_train, X, y = problem
    inverted = LogisticRegression().fit(X_train, 1 - y_train)
    answer = make_guard(X=X, y=y).evaluate(inverted, X_train, y_train)
    assert answer.prior > 0.7  # its recipe is fine
    assert answer.charged
    assert answer.value < 0.3  # it is not


def test_a_stated_prior_is_taken_as_given(make_guard, problem):
    X_train, y_train, X, y = problem
    model = LogisticRegression().fit(X_train, y_train)
    answer = make_guard(X=X, y=y).evaluate(model, prior=0.123)
    assert answer.prior == 0.123
    assert answer.charged


def test_a_stated_prior_lets_training_data_serve_the_fit_alone(make_guard, problem):
    X_train, y_train, X, y = problem
    answer = make_guard(X=X, y=y).evaluate(LogisticRegression(), X_train, y_train, prior=0.8, name="mine")
    assert (answer.prior, answer.charged, answer.name) == (0.8, False, "mine")


def test_the_in_sample_prior_is_the_training_score(make_guard, problem):
    X_train, y_train, X, y = problem
    answer = make_guard(X=X, y=y).evaluate(
        DecisionTreeClassifier(random_state=0), X_train, y_train, prior="in-sample"
    )
    assert answer.prior == 1.0  # a full tree knows its training rows
    assert answer.charged


@pytest.mark.parametrize("cv", [2, 5])
def test_the_cross_validated_prior_is_repeatable(make_guard, problem, cv):
    X_train, y_train, X, y = problem
    guard = make_guard(X=X, y=y)
    tree = DecisionTreeClassifier(random_state=0).fit(X_train, y_train)
    first = guard.evaluate(tree, X_train, y_train, cv=cv)
    assert first.prior < 0.9  # unlike its in-sample score
    assert guard.evaluate(tree, X_train, y_train, cv=cv).replayed


def test_equal_models_are_one_question_and_other_models_are_others(make_guard, problem):
    X_train, y_train, X, y = problem
    guard = make_guard(X=X, y=y)
    first = DummyClassifier(strategy="constant", constant=1).fit(X_train, y_train)
    same = DummyClassifier(strategy="constant", constant=1).fit(X_train, y_train)
    other = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X_train, np.ones(600, dtype=int))
    assert not guard.evaluate(first, prior=0.5).replayed
    assert guard.evaluate(same, prior=0.5).replayed
    # it predicts the same for every row; that is not for the analyst to learn for free
    assert not guard.evaluate(other, prior=0.5).replayed
    assert guard.queries_asked == 2


def test_a_model_that_cannot_be_pickled_is_a_new_question_each_time(make_guard, problem):
    class Local:
        def predict(self, X):
            return np.ones(len(X), dtype=int)

    guard, model = make_guard(X=problem[2], y=problem[3]), Local()
    assert not guard.evaluate(model, prior=0.5).replayed
    assert not guard.evaluate(model, prior=0.5).replayed
    assert guard.queries_asked == 2


class Crashing:
    """A model that fails on the holdout, and tells its rows."""

    def predict(self, X):
        raise ValueError(f"cannot digest {X!r}")


@BOTH
def test_a_model_that_fails_takes_one_charge_and_no_second(make_guard, place, problem):
    guard = make_guard(place, X=problem[2], y=problem[3])
    for _ in range(2):  # the second is a replay
        with pytest.raises(ModelError, match="withheld"):
            guard.evaluate(Crashing(), prior=0.5)
    history = guard.history()
    assert history["charged"].tolist() == [True]
    assert history[["low", "high"]].to_numpy().tolist() == [[0.0, 1.0]]
    assert guard.charges_left < 3


def test_failures_alone_halt_the_guard(make_guard, problem):
    guard = make_guard(X=problem[2], y=problem[3])
    for prior in (0.5, 0.51, 0.52):
        with pytest.raises((ModelError, Halted)):
            guard.evaluate(Crashing(), prior=prior)
    with pytest.raises(Halted) as halt:
        guard.evaluate(Crashing(), prior=0.53)
    assert halt.value.reason in {"charges", "code"}
    with pytest.raises(ModelError):  # a replay, also after the halt
        guard.evaluate(Crashing(), prior=0.5)


# ---- batches


@BOTH
def test_a_batch_answers_in_the_order_of_its_questions(make_guard, place, scoring):
    guard = make_guard(place)
    asked = [scoring(0.7), scoring(0.9), scoring(0.5)]
    answers = guard.evaluate_many(asked, [0.7, 0.5, 0.45], names=["a", "b", "c"])
    assert [answer.value for answer in answers] == [0.7, 0.9, 0.45]
    assert [answer.charged for answer in answers] == [False, True, False]
    assert [answer.query for answer in answers] == [1, 2, 3]
    assert [answer.name for answer in answers] == ["a", "b", "c"]
    assert guard.history()["value"].tolist() == [0.7, 0.9, 0.45]


def test_a_matrix_and_a_list_are_the_same_batch(make_guard, scoring):
    guard = make_guard()
    matrix = np.stack([scoring(0.7), scoring(0.6)])
    first = guard.evaluate_many(matrix, [0.7, 0.6])
    again = guard.evaluate_many(list(matrix), (0.7, 0.6))
    assert [answer._replace(replayed=True) for answer in first] == again


@BOTH
def test_a_question_that_comes_twice_in_a_batch_is_asked_once(make_guard, place, scoring):
    guard = make_guard(place)
    answers = guard.evaluate_many(
        [scoring(0.9), scoring(0.7), scoring(0.9), scoring(0.9)], [0.5, 0.7, 0.5, 0.5]
    )
    assert [answer.query for answer in answers] == [1, 2, 1, 1]
    assert [answer.replayed for answer in answers] == [False, False, True, True]
    assert {answer.value for answer in answers if answer.query == 1} == {0.9}
    assert guard.queries_asked == 2
    assert int(guard.history()["charged"].sum()) == 1


def test_the_same_predictions_with_another_prior_are_another_question(make_guard, scoring):
    guard = make_guard()
    answers = guard.evaluate_many([scoring(0.7), scoring(0.7)], [0.7, 0.71])
    assert [answer.query for answer in answers] == [1, 2]


def test_a_batch_may_mix_known_and_new_questions(make_guard, scoring):
    guard = make_guard()
    known = guard.evaluate_predictions(scoring(0.9), prior=0.5)
    answers = guard.evaluate_many([scoring(0.7), scoring(0.9), scoring(0.8)], [0.7, 0.5, 0.8])
    assert [answer.replayed for answer in answers] == [False, True, False]
    assert answers[1]._replace(replayed=False) == known
    assert [answer.query for answer in answers] == [2, 1, 3]


def test_one_batch_is_no_wider_than_its_questions_one_by_one(make_guard, scoring):
    asked, priors = [scoring(0.7, k) for k in range(3)], [0.85, 0.85, 0.85]
    together = make_guard().evaluate_many(asked, priors)
    guard = make_guard()
    alone = [guard.evaluate_predictions(one, prior=prior) for one, prior in zip(asked, priors, strict=True)]
    for batch, single in zip(together, alone, strict=True):
        assert batch.value == single.value
        assert batch.low >= single.low
        assert batch.high <= single.high
    assert together[2].low > alone[2].low


@BOTH
def test_a_batch_larger_than_the_queries_left_is_refused_whole(make_guard, place, scoring):
    guard = make_guard(place, queries=4)
    guard.evaluate_predictions(scoring(0.9), prior=0.5)
    asked = [scoring(0.6, k) for k in range(4)]
    with pytest.raises(BudgetError, match="4 new questions asked, 3 left of 4"):
        guard.evaluate_many(asked, [0.6] * 4)
    assert (guard.queries_asked, int(guard.history()["charged"].sum())) == (1, 1)
    # known questions and repetitions do not count
    answers = guard.evaluate_many([scoring(0.9), *asked[:3], asked[0]], [0.5] + [0.6] * 4)
    assert [answer.query for answer in answers] == [1, 2, 3, 4, 2]


# ---- replays


@BOTH
def test_asking_again_gives_the_recorded_answer_free(make_guard, place, scoring):
    guard = make_guard(place)
    first = guard.evaluate_predictions(scoring(0.9), prior=0.5, name="first")
    guard.evaluate_predictions(scoring(0.2), prior=0.5)
    again = guard.evaluate_predictions(scoring(0.9), prior=0.5, name="another name")
    assert again.replayed
    assert again._replace(replayed=False, charges_left=first.charges_left) == first
    assert guard.queries_asked == 2


def test_a_replay_is_recognised_in_any_container_and_dtype(make_guard, scoring):
    guard = make_guard()
    predictions = scoring(0.9)
    guard.evaluate_predictions(predictions, prior=0.5)
    forms = [
        predictions.tolist(),
        predictions.astype(np.uint8),
        predictions.astype(np.float64),
        predictions[:, None],
        pd.Series(predictions, index=range(5, 2_005)),
        pl.Series(predictions),
        np.repeat(predictions, 2)[::2],
    ]
    for form in forms:
        assert guard.evaluate_predictions(form, prior=0.5).replayed
    assert guard.evaluate_predictions(predictions, prior=np.float64(0.5)).replayed
    assert guard.evaluate_many([predictions], [0.5])[0].replayed


@BOTH
def test_noise_is_the_same_for_the_same_question(place, make_guard, scoring):
    guard = make_guard(place, noise_scale=0.01, seed=5, charges=20, resolution=0.001)
    values = {guard.evaluate_predictions(scoring(0.9), prior=0.3).value for _ in range(5)}
    assert len(values) == 1
    other = make_guard(
        noise_scale=0.01, seed=5, charges=20, resolution=0.001
    )  # made anew, from the same seed
    assert {other.evaluate_predictions(scoring(0.9), prior=0.3).value} == values


# ---- halts


def spend(guard, scoring, count=3):
    """Charged questions; priors near enough for the code not to run out first."""
    return [guard.evaluate_predictions(scoring(0.7, k), prior=0.85) for k in range(count)]


@BOTH
def test_the_guard_halts_when_the_charges_are_spent(make_guard, place, scoring):
    guard = make_guard(place)
    answers = spend(guard, scoring)
    assert [answer.charges_left for answer in answers] == [2, 1, 0]
    assert guard.halted
    assert guard.halt_reason == "charges"
    with pytest.raises(Halted, match="all 3 charges are spent") as halt:
        guard.evaluate_predictions(scoring(0.61), prior=0.61)
    assert halt.value.reason == "charges"
    assert halt.value.answers == []
    assert halt.value.history["value"].tolist() == [answer.value for answer in answers]
    pd.testing.assert_frame_equal(halt.value.history, guard.history())
    assert guard.queries_asked == 3


@BOTH
def test_the_guard_halts_when_the_queries_are_asked(make_guard, place, scoring):
    guard = make_guard(place, queries=5)
    for k in range(5):
        guard.evaluate_predictions(scoring(0.7, k), prior=0.7)
    assert guard.halted
    with pytest.raises(Halted, match="all 5 declared queries are asked") as halt:
        guard.evaluate_predictions(scoring(0.7, 5), prior=0.7)
    assert halt.value.reason == "queries"
    with pytest.raises(Halted) as halt:
        guard.evaluate_many([scoring(0.7, 6)] * 2, [0.7] * 2)
    assert halt.value.reason == "queries"


@BOTH
def test_the_guard_halts_when_the_answers_have_said_too_much(make_guard, place, scoring):
    guard = make_guard(place, resolution=0.001)
    guard.evaluate_predictions(scoring(1.0), prior=0.0)
    guard.evaluate_predictions(scoring(0.999), prior=0.0)
    with pytest.raises(Halted, match="have said all") as halt:
        guard.evaluate_predictions(scoring(0.998), prior=0.0)
        guard.evaluate_predictions(scoring(0.997), prior=0.0)
    assert halt.value.reason == guard.halt_reason == "code"
    assert int(guard.history()["charged"].sum()) < 3
    assert guard.charges_left == 0


@BOTH
def test_replays_are_free_after_a_halt(make_guard, place, scoring):
    guard = make_guard(place)
    answers = spend(guard, scoring)
    again = spend(guard, scoring)
    assert all(answer.replayed for answer in again)
    assert [answer.value for answer in again] == [answer.value for answer in answers]
    batch = guard.evaluate_many([scoring(0.7, k) for k in range(3)], [0.85] * 3)
    assert batch == again
    assert guard.queries_asked == 3


@BOTH
def test_a_halt_inside_a_batch_keeps_what_was_released_before_it(make_guard, place, scoring):
    guard = make_guard(place)
    guard.evaluate_predictions(scoring(0.7), prior=0.85)
    asked = [scoring(0.6), scoring(0.7, 1), scoring(0.7, 2), scoring(0.6, 1), scoring(0.7, 3)]
    with pytest.raises(Halted, match="3 of the batch were answered") as halt:
        guard.evaluate_many(asked, [0.6, 0.85, 0.85, 0.6, 0.85])
    released = halt.value.answers
    assert [(answer.query, answer.charged) for answer in released] == [(2, False), (3, True), (4, True)]
    assert guard.history()["query"].tolist() == [1, 2, 3, 4]
    assert halt.value.history["value"].tolist() == guard.history()["value"].tolist()
    again = guard.evaluate_many(asked[:3], [0.6, 0.85, 0.85])
    assert [answer._replace(replayed=False, charges_left=0) for answer in again] == [
        answer._replace(charges_left=0) for answer in released
    ]


def test_a_batch_answers_its_replays_up_to_the_halt(make_guard, scoring):
    guard = make_guard()
    spend(guard, scoring, 2)
    asked = [scoring(0.7), scoring(0.7, 2), scoring(0.7, 1), scoring(0.6), scoring(0.7)]
    with pytest.raises(Halted) as halt:
        guard.evaluate_many(asked, [0.85, 0.85, 0.85, 0.6, 0.85])
    assert [answer.query for answer in halt.value.answers] == [1, 3, 2]
    assert [answer.replayed for answer in halt.value.answers] == [True, False, True]


def test_a_batch_that_ends_with_the_last_charge_does_not_raise(make_guard, scoring):
    guard = make_guard()
    answers = guard.evaluate_many([scoring(0.7, k) for k in range(3)], [0.85] * 3)
    assert answers[-1].charges_left == 0
    assert guard.halted


def test_a_batch_after_the_halt_halts_even_if_it_is_too_large(make_guard, scoring):
    guard = make_guard(queries=4)
    spend(guard, scoring)
    with pytest.raises(Halted):
        guard.evaluate_many([scoring(0.6, k) for k in range(4)], [0.6] * 4)


def test_no_except_exception_swallows_a_halt():
    assert not issubclass(Halted, Exception)


# ---- what was released


@BOTH
def test_history_is_what_was_released_in_order(make_guard, place, scoring):
    guard = make_guard(place)
    empty = guard.history()
    assert list(empty.columns) == HISTORY
    assert len(empty) == 0
    answers = [
        guard.evaluate_predictions(scoring(0.7), prior=0.7, name="one"),
        *guard.evaluate_many([scoring(0.9), scoring(0.6)], [0.5, 0.65], names=["two", "three"]),
    ]
    guard.evaluate_predictions(scoring(0.7), prior=0.7)  # a replay is nothing new
    history = guard.history()
    assert list(history.columns) == HISTORY
    for column in HISTORY[:-1]:
        assert history[column].tolist() == [getattr(answer, column) for answer in answers]
    assert history["charged"].dtype == bool
    assert str(history["asked_at"].dt.tz) == "UTC"


def test_changing_the_history_changes_nothing(make_guard, scoring):
    guard = make_guard()
    guard.evaluate_predictions(scoring(0.9), prior=0.5)
    history = guard.history()
    history.loc[:, "value"] = 0.0
    assert guard.history()["value"].tolist() == [0.9]


def test_listeners_hear_of_new_answers_only(make_guard, scoring):
    guard, heard = make_guard(), []
    end = guard.subscribe(lambda answers: heard.extend(answer.query for answer in answers))
    guard.evaluate_predictions(scoring(0.9), prior=0.5)
    guard.evaluate_predictions(scoring(0.9), prior=0.5)
    guard.evaluate_many([scoring(0.9), scoring(0.6), scoring(0.6)], [0.5, 0.6, 0.6])
    assert heard == [1, 2]
    with pytest.raises(Halted):
        guard.evaluate_many([scoring(0.7, k) for k in range(5)], [0.85] * 5)
    assert heard == [1, 2, *range(3, guard.queries_asked + 1)]
    end()
    end()


def test_a_listener_that_fails_does_not_lose_the_answer(make_guard, scoring):
    guard = make_guard()

    def failing(_):
        raise RuntimeError("no network")

    guard.subscribe(failing)
    with pytest.warns(RuntimeWarning, match="no network"):
        answer = guard.evaluate_predictions(scoring(0.9), prior=0.5)
    assert answer.value == 0.9
    assert guard.queries_asked == 1


# ---- life


def test_the_repr_says_what_is_left(make_guard, scoring):
    guard = make_guard()
    assert (
        repr(guard) == "<ReusableHoldout: accuracy, 2,000 rows, 0 of 40 queries asked, 3 of 3 charges left>"
    )
    spend(guard, scoring, 1)
    assert "1 of 40 queries asked, 2 of 3 charges left" in repr(guard)
    guard.close()
    assert repr(guard) == "<ReusableHoldout: accuracy, 2,000 rows, closed>"


@BOTH
def test_a_closed_guard_answers_nothing(make_guard, place, scoring):
    with make_guard(place) as guard:
        guard.evaluate_predictions(scoring(0.9), prior=0.5)
    guard.close()  # twice is no harm
    for ask in (
        lambda: guard.evaluate_predictions(scoring(0.9), prior=0.5),
        lambda: guard.evaluate_many([scoring(0.9)], [0.5]),
        guard.history,
        lambda: guard.queries_asked,
        lambda: guard.charges_left,
        lambda: guard.halted,
    ):
        with pytest.raises(LedgerError, match="closed"):
            ask()


def test_the_context_manager_closes_and_lets_errors_pass(make_guard, ledger):
    with pytest.raises(ZeroDivisionError), make_guard(ledger) as guard:
        raise ZeroDivisionError
    with pytest.raises(LedgerError):
        guard.history()


def test_opening_resumes_where_the_ledger_ends(make_guard, reopen, ledger, scoring):
    with make_guard(ledger) as guard:
        first = guard.evaluate_predictions(scoring(0.9), prior=0.5, name="first")
        history, plan = guard.history(), guard.plan
    again = reopen(ledger)
    pd.testing.assert_frame_equal(again.history(), history)
    assert (again.queries_asked, again.charges_left) == (1, first.charges_left)
    assert again.plan.record() == plan.record()
    assert again.evaluate_predictions(scoring(0.9), prior=0.5) == first._replace(replayed=True)
    assert again.evaluate_predictions(scoring(0.8), prior=0.8).query == 2


def test_opening_again_does_not_refill(make_guard, reopen, ledger, scoring):
    made = 0
    with pytest.raises(Halted):
        for k in range(10):
            with make_guard(ledger) if k % 2 else (reopen(ledger) if k else make_guard(ledger)) as guard:
                guard.evaluate_predictions(scoring(0.7, k), prior=0.85)
                made += 1
    assert made == 3


def test_the_same_settings_resume_however_they_are_spelled(make_guard, ledger, labels, settings, scoring):
    make_guard(ledger).evaluate_predictions(scoring(0.9), prior=0.5)
    spellings = [
        {"y": labels.tolist()},
        {"y": pd.Series(labels)},
        {"y": labels.astype(np.int32)},
        {"confidence": 0.95},
        {"metric": resolve_metric("accuracy")},
        {"threshold": np.float64(0.1)},
    ]
    for changes in spellings:
        assert make_guard(ledger, **changes).queries_asked == 1
    with ReusableHoldout(None, labels, ledger=str(ledger), **settings) as guard:
        assert guard.queries_asked == 1
    with ReusableHoldout(None, labels, ledger=f"sqlite:///{ledger}", **settings) as guard:
        assert guard.queries_asked == 1


@BOTH
@pytest.mark.parametrize(
    "changes",
    [
        {"queries": np.int64(40)},
        {"charges": np.int32(3)},
        {"threshold": np.float32(0.125)},
        {"confidence": np.float32(0.875)},
        {"estimate": np.float32(0.75)},
        {"seed": np.int64(3)},
    ],
    ids=str,
)
def test_settings_may_be_numbers_of_numpy(make_guard, place, scoring, changes):
    assert make_guard(place, **changes).evaluate_predictions(scoring(0.7), prior=0.7).query == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"queries": 41},
        {"queries": 39},
        {"charges": 4},
        {"charges": 2},
        {"threshold": 0.11},
        {"noise_scale": 0.001},
        {"resolution": 0.04},
        {"confidence": 0.9},
        {"estimate": 0.71},
        {"delta": 0.01},
        {"tolerance": 0.3},
        {"metric": "zero_one_loss"},
        {"metric": "balanced_accuracy"},
    ],
    ids=str,
)
def test_other_settings_are_refused_and_change_nothing(make_guard, ledger, scoring, changes):
    guard = make_guard(ledger)
    guard.evaluate_predictions(scoring(0.9), prior=0.5)
    before = ledger.read_bytes(), guard.history()
    with pytest.raises(LedgerMismatchError, match="nothing was asked and nothing was charged"):
        make_guard(ledger, **changes)
    pd.testing.assert_frame_equal(guard.history(), before[1])
    assert ledger.read_bytes() == before[0]


def test_other_data_are_refused(make_guard, reopen, ledger, labels):
    X = np.random.default_rng(1).normal(size=(2_000, 3))
    make_guard(ledger, X=X)
    flipped = labels.copy()
    flipped[17] = 1 - flipped[17]
    other = X.copy()
    other[5, 2] += 1e-12
    for changes in (
        {"X": X, "y": flipped},
        {"X": X, "y": labels[::-1]},
        {"X": other},
        {"X": X[:, ::-1]},
        {"X": X[:, :2]},
        {"X": None},
        {"X": pd.DataFrame(X, columns=list("abc"))},
    ):
        with pytest.raises(LedgerMismatchError, match="other data"):
            reopen(ledger, **changes)
        with pytest.raises(LedgerMismatchError, match="other data"):
            make_guard(ledger, **changes)
    assert reopen(ledger, X).queries_asked == 0


def test_another_number_of_rows_is_refused(make_guard, reopen, ledger, labels):
    make_guard(ledger)
    with pytest.raises(LedgerMismatchError):
        reopen(ledger, y=labels[:-1])


def test_another_seed_is_refused_and_the_same_resumes(make_guard, reopen, ledger):
    make_guard(ledger, seed=7)
    assert make_guard(ledger, seed=7).queries_asked == 0
    assert make_guard(ledger).queries_asked == 0  # the key lies beside the ledger
    assert reopen(ledger, seed=7).queries_asked == 0
    for opened in (lambda: make_guard(ledger, seed=8), lambda: reopen(ledger, seed=8)):
        with pytest.raises(LedgerKeyError):
            opened()


def test_another_key_is_refused_and_the_same_resumes(make_guard, reopen, ledger):
    make_guard(ledger, key=bytes(range(32)))
    assert reopen(ledger, key=bytes(range(32))).queries_asked == 0
    with pytest.raises(LedgerMismatchError, match="noise key"):
        reopen(ledger, key=bytes(32))


def test_a_lost_key_is_not_replaced(make_guard, reopen, ledger):
    make_guard(ledger)
    ledger.with_name("guard.db.key").unlink()
    for opened in (lambda: make_guard(ledger), lambda: reopen(ledger)):
        with pytest.raises(LedgerKeyError, match="restore"):
            opened()
    assert not ledger.with_name("guard.db.key").exists()


def test_a_key_that_others_can_read_is_refused(make_guard, reopen, ledger):
    make_guard(ledger)
    key = ledger.with_name("guard.db.key")
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    with pytest.raises(LedgerKeyError, match="644"):
        reopen(ledger)


def test_opening_what_was_never_made_is_refused(reopen, tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        reopen(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_is_the_same_guard(make_guard):
    guard = make_guard()
    assert copy.copy(guard) is guard
    assert copy.deepcopy(guard) is guard
    assert copy.deepcopy({"nested": [guard]})["nested"][0] is guard


# ---- data


class Sign:
    """Predicts by the sign of the first column, whatever the container."""

    def predict(self, X):
        if scipy.sparse.issparse(X):
            first = X.tocsr()[:, [0]].toarray()[:, 0]
        elif isinstance(X, pd.DataFrame | pl.DataFrame):
            first = X["a"].to_numpy()
        else:
            first = X[:, 0]
        return (first > 0).astype(int)


CONTAINERS = {
    "numpy": np.asarray,
    "fortran": np.asfortranarray,
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b"], index=range(100, 2_100)),
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b"]),
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
    "coo": scipy.sparse.coo_array,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_features_may_come_in_any_container(make_guard, reopen, ledger, labels, container):
    X = np.stack([np.where(labels, 1.0, -1.0), np.zeros(2_000)], axis=1)
    wrapped = CONTAINERS[container](X)
    with make_guard(ledger, X=wrapped) as guard:
        answer = guard.evaluate(Sign(), prior=0.5)
    assert (answer.value, answer.charged) == (1.0, True)
    assert reopen(ledger, CONTAINERS[container](X)).evaluate(Sign(), prior=0.5).replayed


def test_the_model_gets_the_features_in_their_own_container(make_guard, labels):
    seen = []

    class Looking(Sign):
        def predict(self, X):
            seen.append(type(X))
            return super().predict(X)

    for wrap in CONTAINERS.values():
        X = wrap(np.zeros((2_000, 2)))
        make_guard(X=X).evaluate(Looking(), prior=0.5)
        assert seen.pop() is type(X)


def test_equal_sparse_holdouts_are_the_same_holdout(make_guard, reopen, ledger):
    X = scipy.sparse.random_array((2_000, 5), density=0.1, rng=np.random.default_rng(0), format="csr")
    make_guard(ledger, X=X)
    assert reopen(ledger, X.tocoo()).queries_asked == 0
    assert reopen(ledger, X.tocsc()).queries_asked == 0


def test_explicit_zeros_do_not_make_another_holdout(make_guard, reopen, ledger):
    coordinates = np.arange(2_000), np.zeros(2_000, dtype=int)
    X = scipy.sparse.coo_array((np.ones(2_000), coordinates), shape=(2_000, 5)).tocsr()
    zero = scipy.sparse.csr_array(([0.0], ([7], [3])), shape=(2_000, 5))
    stored = scipy.sparse.csr_array(scipy.sparse.hstack([X[:, :3], zero[:, 3:]]))
    assert (stored.nnz, stored.count_nonzero()) == (2_001, 2_000)
    make_guard(ledger, X=X)
    assert reopen(ledger, stored).queries_asked == 0


STRINGS = np.array(["no", "yes"])


@pytest.mark.parametrize(
    "wrap",
    [
        lambda y: y,
        lambda y: y.astype(object),
        list,
        pd.Series,
        lambda y: pd.Series(pd.Categorical(y)),
        lambda y: pd.Series(y, dtype="string"),
        pl.Series,
        lambda y: pl.Series(y).cast(pl.Categorical),
    ],
    ids=["numpy", "object", "list", "pandas", "categorical", "string dtype", "polars", "polars categorical"],
)
def test_labels_may_be_text(make_guard, labels, scoring, wrap):
    guard = make_guard(y=wrap(STRINGS[labels]))
    answer = guard.evaluate_predictions(wrap(STRINGS[scoring(0.9)]), prior=0.5)
    assert (answer.value, answer.charged) == (0.9, True)
    assert guard.evaluate_predictions(STRINGS[scoring(0.9)], prior=0.5).replayed


def test_text_labels_from_a_model(make_guard, problem):
    X_train, y_train, X, y = problem
    guard = make_guard(X=X, y=STRINGS[y])
    answer = guard.evaluate(LogisticRegression(), X_train, STRINGS[y_train])
    assert answer.prior > 0.7
    assert not answer.charged


def test_booleans_are_labels(make_guard, labels, scoring):
    guard = make_guard(y=labels.astype(bool))
    assert guard.evaluate_predictions(scoring(0.9).astype(bool), prior=0.5).value == 0.9


def test_roc_auc_takes_probabilities_and_scores(make_guard, problem):
    X_train, y_train, X, y = problem
    guard = make_guard(
        metric="roc_auc", X=X, y=y, queries=5, charges=2, threshold=0.2, resolution=0.05, estimate=0.9
    )
    model = LogisticRegression().fit(X_train, y_train)
    assert not guard.evaluate(model, X_train, y_train).charged
    from sklearn.metrics import roc_auc_score

    answer = guard.evaluate_predictions(1.0 - model.predict_proba(X)[:, 1], prior=0.5)
    assert answer.charged
    assert abs(answer.value - (1.0 - roc_auc_score(y, model.predict_proba(X)[:, 1]))) <= 0.025 + 1e-6


@pytest.fixture
def multiclass():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2_600, 3))
    y = np.argmax(X + rng.normal(scale=0.5, size=X.shape), axis=1)
    return X[:600], y[:600], X[600:], y[600:]


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "log_loss", "brier"])
def test_several_classes(make_guard, multiclass, metric):
    X_train, y_train, X, y = multiclass
    bound = resolve_metric(metric)
    span = bound.upper - bound.lower
    guard = make_guard(
        metric=metric,
        X=X,
        y=np.array(["red", "green", "blue"])[y],
        queries=10,
        charges=2,
        threshold=0.25 * span,
        resolution=0.05 * span,
        noise_scale=0.0,
        estimate=None,
    )
    answer = guard.evaluate(LogisticRegression(), X_train, np.array(["red", "green", "blue"])[y_train])
    assert not answer.charged
    assert answer.low <= answer.value <= answer.high
    model = LogisticRegression().fit(X_train, np.array(["red", "green", "blue"])[y_train])
    worst = bound.lower if bound.greater_is_better else bound.upper
    charged = guard.evaluate(model, prior=worst)
    assert charged.charged
    assert abs(charged.value - answer.prior) < 0.1 * span


def test_a_model_that_never_saw_a_class_has_probability_zero_for_it(make_guard, multiclass):
    X_train, y_train, X, y = multiclass
    two = y_train < 2
    guard = make_guard(
        metric="brier", X=X, y=y, threshold=0.3, resolution=0.05, queries=5, charges=1, estimate=None
    )
    model = LogisticRegression().fit(X_train[two], y_train[two])
    answer = guard.evaluate(model, prior=0.0)
    table = np.column_stack([model.predict_proba(X), np.zeros(len(X))])
    bound = resolve_metric("brier")
    assert abs(answer.value - bound.measure(y, table)) <= 0.025 + 1e-6


def test_real_values_with_bounds(make_guard):
    from reusable_holdout.queries import mae

    rng = np.random.default_rng(5)
    X = rng.normal(size=(2_600, 3))
    y = np.clip(X @ [1.0, 0.5, 0.0] + rng.normal(scale=0.1, size=2_600), -5.0, 5.0)
    guard = make_guard(
        metric=mae(lower=-5.0, upper=5.0),
        X=X[600:],
        y=y[600:],
        threshold=1.0,
        resolution=0.25,
        noise_scale=0.0,
        estimate=None,
        queries=5,
        charges=2,
    )
    answer = guard.evaluate(LinearRegression(), X[:600], y[:600])
    assert not answer.charged
    assert guard.metric.lower <= answer.low <= answer.value <= answer.high <= guard.metric.upper
    wrong = guard.evaluate_predictions(np.full(2_000, -5.0), prior=0.1)
    assert wrong.charged
    assert wrong.value == pytest.approx(5.0, abs=0.5)


def test_a_metric_of_ones_own_resumes_with_itself_only(make_guard, reopen, ledger, labels, scoring):
    from reusable_holdout import InputError, Metric

    own = Metric(
        name="agreement",
        lower=0,
        upper=1,
        greater_is_better=True,
        family="binomial",
        response="labels",
        loss=lambda y, p: y == p,
    )
    make_guard(ledger, metric=own).evaluate_predictions(scoring(0.9), prior=0.5)
    with pytest.raises(InputError, match="pass the same metric="):
        reopen(ledger)
    assert reopen(ledger, metric=own).queries_asked == 1
    with pytest.raises(LedgerMismatchError):
        reopen(ledger, metric="accuracy")


def test_the_ledger_is_sound_after_all_kinds_of_answers(make_guard, ledger, scoring):
    guard = make_guard(ledger, noise_scale=0.002)
    guard.evaluate_predictions(scoring(0.7), prior=0.7)
    guard.evaluate_many([scoring(0.9), scoring(0.6), scoring(0.9)], [0.5, 0.6, 0.5])
    with pytest.raises(Halted):
        guard.evaluate_many([scoring(0.7, k) for k in range(8)], [0.95] * 8)
    assert verify(ledger).problems == []
    assert issubclass(LedgerMismatchError, HoldoutError)
