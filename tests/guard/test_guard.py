"""Asking a guard: answers, batches, replays, history, closing."""

import copy
import functools
import math

import numpy as np
import pytest
from cases import refuses
from guard import counting

from reusable_holdout import Answer, verify
from reusable_holdout.errors import Halted, LedgerError, LedgerMismatchError, ModelError

HISTORY = [
    *("query", "view", "metric", "name", "series", "prior", "value", "low", "high", "threshold"),
    *("outcome", "charged", "way", "told", "nats", "asked", "paired", "charges_left", "asked_at", "measured"),
]


# ---- one question


def test_an_answer_that_agrees_is_the_prior_and_costs_nothing(make_guard, place, scoring):
    answer = make_guard(place).evaluate(scoring(0.7), prior=0.61, name="first")
    assert isinstance(answer, Answer)
    assert (answer.value, answer.charged) == (0.61, False)
    assert (answer.prior, answer.query, answer.charges_left, answer.replayed) == (0.61, 1, 3, False)
    assert (answer.threshold, answer.name) == (0.1, "first")
    assert answer.low <= 0.61 - 0.1 < 0.61 + 0.1 <= answer.high  # the holdout value is within the threshold


CELLS = [  # the holdout's value is 0.7: prior, the cell in thresholds of 0.1 to either side, what is told, its cost
    (0.8, "cell 4", 0.65, 0.145),  # 0.1 to 0.2 too high
    (0.6, "cell 5", 0.75, 0.125),  # 0.1 to 0.2 too low
    (0.599, "cell 5", 0.749, 0.125),
    (0.91, "cell 3", 0.61, 0.13),  # 0.2 to 0.4 too high
    (1.0, "cell 3", 0.7, 0.13),
    (0.48, "cell 6", 0.68, 0.12),  # 0.2 too low, or more: an open cell tells its near end
    (0.0, "cell 6", 0.2, 0.12),
]


@pytest.mark.parametrize(("prior", "told", "middle", "weight"), CELLS)
def test_an_answer_that_deviates_tells_its_cell_and_costs_a_charge(
    make_guard, place, scoring, prior, told, middle, weight
):
    answer = make_guard(place).evaluate(scoring(0.7), prior=prior)
    assert (answer.value, answer.charged, answer.prior) == (middle, True, prior)
    assert (answer.way, answer.told, answer.charges_left) == ("check", told, 2)
    assert answer.nats == pytest.approx(-math.log(weight), abs=1e-12)
    assert answer.low < 0.7 < answer.high


def test_a_cell_between_two_ends_tells_its_middle_and_an_open_one_its_near_end(make_guard, scoring):
    guard = make_guard(threshold=0.05, charges=20)
    for accuracy, middle in ((0.0, 0.05), (0.3456, 0.35), (0.99, 0.6), (1.0, 0.6)):
        # 0.4 to 0.8 below 0.5, of which 0.4 to 0.5 are possible; 0.1 to 0.2 below it; 0.1 or more above it
        assert guard.evaluate(scoring(accuracy), prior=0.5).value == pytest.approx(middle)


def test_the_nearness_of_a_deviation_to_the_threshold_decides_to_the_last_row(make_guard, scoring):
    guard = make_guard(threshold=0.1003)  # 200.6 rows
    assert not guard.evaluate(scoring(0.7), prior=0.6).charged  # 200 rows away
    assert guard.evaluate(scoring(0.7005), prior=0.6).charged  # 201 rows away


def test_the_types_of_an_answer_are_plain(make_guard, scoring):
    answer = make_guard().evaluate(scoring(0.7), prior=np.float32(0.25))
    batch = make_guard().evaluate([scoring(0.7)], prior=np.array([0.25], dtype=np.float32))[0]
    kinds = [
        *(
            *(float, float, float, str, float, bool, int, bool, float, int, float, str, str, float, str),
            *(tuple, bool),
        )
    ]
    assert [type(field) for field in answer] == kinds
    assert [type(field) for field in batch] == kinds
    assert type(answer.paired) is bool
    assert "charged" in str(answer)


def test_a_batch_of_one_answers_like_a_single_question(make_guard, scoring):
    for prior in (0.65, 0.2):
        single = make_guard().evaluate(scoring(0.7), prior=prior)
        assert make_guard().evaluate([scoring(0.7)], prior=[prior]) == [single]


# ---- batches


def test_a_batch_answers_in_the_order_of_its_questions(make_guard, place, scoring):
    guard = make_guard(place)
    asked = [scoring(0.7), scoring(0.9), scoring(0.5)]
    answers = guard.evaluate(list(asked), prior=[0.7, 0.5, 0.45], name=["a", "b", "c"])
    assert [answer.value for answer in answers] == [0.7, 0.7, 0.45]
    assert [answer.charged for answer in answers] == [False, True, False]
    assert [answer.query for answer in answers] == [1, 2, 3]
    assert [answer.name for answer in answers] == ["a", "b", "c"]
    assert guard.history()["value"].tolist() == [0.7, 0.7, 0.45]


def test_a_question_that_comes_twice_in_a_batch_is_asked_once(make_guard, place, scoring):
    guard = make_guard(place)
    answers = guard.evaluate(
        [scoring(0.9), scoring(0.7), scoring(0.9), scoring(0.9)], prior=[0.5, 0.7, 0.5, 0.5]
    )
    assert [answer.query for answer in answers] == [1, 2, 1, 1]
    assert [answer.replayed for answer in answers] == [False, False, True, True]
    assert {answer.value for answer in answers if answer.query == 1} == {0.7}
    assert guard.queries_asked == 2
    assert int(guard.history()["charged"].sum()) == 1


def test_the_same_predictions_with_another_prior_are_another_question(make_guard, scoring):
    guard = make_guard()
    answers = guard.evaluate([scoring(0.7), scoring(0.7)], prior=[0.7, 0.71])
    assert [answer.query for answer in answers] == [1, 2]


def test_a_batch_without_charges_is_the_same_as_its_questions_one_by_one(make_guard, place, scoring):
    asked = [scoring(0.7, k) for k in range(6)]
    priors = np.linspace(0.65, 0.75, 6)
    together = make_guard(place).evaluate(list(asked), prior=priors, name=list("abcdef"))
    guard = make_guard()
    for k, answer in enumerate(together):
        alone = guard.evaluate(asked[k], prior=priors[k], name="abcdef"[k])
        assert not alone.charged
        assert (answer.low, answer.high) == pytest.approx((alone.low, alone.high), abs=1e-12)
        assert answer._replace(low=0.0, high=0.0) == alone._replace(low=0.0, high=0.0)


# ---- replays


def test_asking_again_gives_the_recorded_answer_free(make_guard, place, scoring):
    guard = make_guard(place)
    first = guard.evaluate(scoring(0.9), prior=0.5, name="first")
    guard.evaluate(scoring(0.2), prior=0.5)
    again = guard.evaluate(scoring(0.9), prior=0.5, name="another name")
    assert again.replayed
    assert again._replace(replayed=False, charges_left=first.charges_left) == first
    assert guard.queries_asked == 2


def test_noise_is_the_same_for_the_same_question(place, make_guard, scoring):
    guard = make_guard(place, noise=0.01, seed=5, charges=20)
    values = {guard.evaluate(scoring(0.9), prior=0.3).value for _ in range(5)}
    assert len(values) == 1
    other = make_guard(noise=0.01, seed=5, charges=20)  # made anew, from the same seed
    assert {other.evaluate(scoring(0.9), prior=0.3).value} == values


# ---- what was released


def test_history_is_what_was_released_in_order(make_guard, place, scoring):
    guard = make_guard(place)
    empty = guard.history()
    assert list(empty.columns) == HISTORY
    assert len(empty) == 0
    answers = [
        guard.evaluate(scoring(0.7), prior=0.7, name="one"),
        *guard.evaluate([scoring(0.9), scoring(0.6)], prior=[0.5, 0.65], name=["two", "three"]),
    ]
    guard.evaluate(scoring(0.7), prior=0.7)  # a replay is nothing new
    history = guard.history()
    assert list(history.columns) == HISTORY
    assert history["series"].tolist() == ["", "", ""]
    assert history["asked"].tolist() == [1, 2, 3]
    assert [None if np.isnan(one) else one for one in history["measured"]] == [
        one.measured for one in answers
    ]
    for column in set(HISTORY) - {"view", "metric", "series", "asked", "asked_at", "measured"}:
        assert history[column].tolist() == [getattr(answer, column) for answer in answers]
    assert history["charged"].dtype == bool
    assert str(history["asked_at"].dt.tz) == "UTC"


def test_changing_the_history_changes_nothing(make_guard, scoring):
    guard = make_guard()
    guard.evaluate(scoring(0.9), prior=0.5)
    history = guard.history()
    history.loc[:, "value"] = 0.0
    assert guard.history()["value"].tolist() == [0.7]


def test_listeners_hear_of_new_answers_only(make_guard, scoring):
    guard, heard = make_guard(), []
    end = guard.subscribe(lambda answers: heard.extend(answer.query for answer in answers))
    guard.evaluate(scoring(0.9), prior=0.5)
    guard.evaluate(scoring(0.9), prior=0.5)
    guard.evaluate([scoring(0.9), scoring(0.6), scoring(0.6)], prior=[0.5, 0.6, 0.6])
    assert heard == [1, 2]
    refuses(Halted, "", guard.evaluate, [scoring(0.7, k) for k in range(5)], prior=[0.85] * 5)
    assert heard == [1, 2, *range(3, guard.queries_asked + 1)]
    end()
    end()


def test_a_listener_that_fails_does_not_lose_the_answer(make_guard, scoring):
    guard = make_guard()

    def failing(_):
        raise RuntimeError("no network")

    guard.subscribe(failing)
    with pytest.warns(RuntimeWarning, match="no network"):
        answer = guard.evaluate(scoring(0.9), prior=0.5)
    assert answer.value == 0.7
    assert guard.queries_asked == 1


# ---- life


def test_the_repr_says_what_is_left(make_guard, spend, scoring):
    guard = make_guard()
    assert (
        repr(guard) == "<ReusableHoldout: accuracy, 2,000 rows, 0 of 40 queries asked, 3 of 3 charges left>"
    )
    spend(guard, 1)
    assert "1 of 40 queries asked, 2 of 3 charges left" in repr(guard)
    guard.close()
    assert repr(guard) == "<ReusableHoldout: accuracy, 2,000 rows, closed>"


def test_an_answer_is_formatted_as_text_or_by_a_format_of_numbers_as_its_value(make_guard, labels):
    answer = make_guard(noise=0.0).evaluate(labels, prior=0.5)
    assert f"{answer}" == str(answer)
    assert f"{answer:.3f}" == f"{answer.value:.3f}"
    assert f"{answer:>12.1%}" == f"{answer.value:>12.1%}"
    with pytest.raises(ValueError, match="format"):
        f"{answer:date}"


def test_a_closed_guard_answers_nothing(make_guard, place, scoring):
    with make_guard(place) as guard:
        guard.evaluate(scoring(0.9), prior=0.5)
    guard.close()  # twice is no harm
    for ask in (
        *(lambda: guard.price("final"), lambda: guard.final_width, guard.history),
        *(lambda: guard.queries_asked, lambda: guard.charges_left, lambda: guard.halted),
    ):
        refuses(LedgerError, "closed", ask)


def test_the_context_manager_closes_and_lets_errors_pass(make_guard, ledger):
    with pytest.raises(ZeroDivisionError), make_guard(ledger) as guard:
        raise ZeroDivisionError
    refuses(LedgerError, "", guard.history)


def test_a_copy_is_the_same_guard(make_guard):
    guard = make_guard()
    assert copy.copy(guard) is guard
    assert copy.deepcopy(guard) is guard
    assert copy.deepcopy({"nested": [guard]})["nested"][0] is guard


# ---- metrics of one's own that fail on the holdout


@pytest.fixture
def fragile(labels, make_guard):
    """Guards whose metric fails where the first row is mistaken, and predictions where it does."""
    failing = labels.copy()
    failing[0] = 1 - failing[0]
    return functools.partial(make_guard, metric=counting.fragile()), failing


@pytest.fixture
def spend_soundly(scoring):
    """All charges, on predictions that are right about the first row."""

    def ask(guard):
        for prior in (0.85, 0.86, 0.87):
            guard.evaluate(scoring(0.7), prior=prior)
        assert guard.halted

    return ask


def test_the_ledger_is_sound_after_failures_and_the_halt_they_lead_to(fragile, ledger):
    make, failing = fragile
    guard = make(ledger)
    with pytest.raises(Halted) as halt:
        for k in range(10):
            refuses(ModelError, "", guard.evaluate, failing, prior=0.9 - k / 100)
    assert halt.value.reason == "charges"
    assert len(halt.value.history) == 3
    assert halt.value.history["charged"].all()
    with pytest.raises(ModelError):  # asked before the halt: a replay
        guard.evaluate(failing, prior=0.9)
    assert verify(ledger).problems == []


def test_a_new_question_after_the_halt_halts_whether_or_not_it_would_fail(
    fragile, spend_soundly, labels, scoring
):
    make, failing = fragile
    guard = make()
    spend_soundly(guard)
    for predictions in (failing, labels):
        for ask in (
            lambda one=predictions: guard.evaluate(one, prior=0.5),
            lambda one=predictions: guard.evaluate([scoring(0.7), one], prior=[0.85, 0.5]),
        ):
            refuses(Halted, "", ask)


# ---- found by trying to break it


@pytest.mark.parametrize("resume", ["open", "make"])
def test_resuming_with_other_classes_does_not_give_the_answer_to_another_question(
    make_guard, reopen, ledger, labels, resume
):
    y = np.array(["b", "c"])[labels]
    first, second = np.full(2_000, "b"), np.full(2_000, "c")
    with make_guard(ledger, y=y, classes=["a", "b", "c"]) as guard:
        guard.evaluate(first, prior=0.9)
    try:  # refusing to resume is as good
        again = reopen(ledger, y=y) if resume == "open" else make_guard(ledger, y=y)
    except LedgerMismatchError:
        return
    assert not again.evaluate(second, prior=0.9).replayed


def test_another_holdout_of_arrays_in_cells_is_refused(make_guard, reopen, ledger):
    X, other = np.empty(2_000, dtype=object), np.empty(2_000, dtype=object)
    for row in range(2_000):
        X[row], other[row] = np.zeros(1_500), np.zeros(1_500)
        other[row][700] = 1.0
    make_guard(ledger, X=X).close()
    refuses(LedgerMismatchError, "", reopen, ledger, X=other)
