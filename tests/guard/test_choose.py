"""A choice: the winner, its cell, its cost and its interval, by hand; and what the others are no better than."""

import math

import numpy as np
import pytest
from guard.counting import Crashing
from guard.test_reveal import ASKING, level_of_a_first_question

from reusable_holdout.certainty import THEORY, ConfidenceBound, worst_choice_nats
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.metrics import mae
from reusable_holdout.ways import FAILED, State, Told, Winner
from reusable_holdout.ways.reveal import Choose

ROWS = 2_000
CHOOSING = {"prior_error": ASKING["prior_error"], "choices": [3, 3]}


@pytest.fixture
def three(scoring):
    """Candidates of 0.66, 0.7 and 0.68."""
    return [scoring(0.66), scoring(0.7), scoring(0.68)]


# ---- what is told


CASES = [  # priors, rank of the winner's (candidate 1, at 0.7), its cell, the cell's weight
    ([0.66, 0.7, 0.68], 1, "cell 5", 0.28),
    ([0.72, 0.7, 0.68], 2, "cell 5", 0.28),
    ([0.72, 0.7, 0.73], 3, "cell 5", 0.28),
    ([0.66, 0.72, 0.68], 1, "cell 4", 0.22),  # a unit worse than it was said to be
    ([0.7, 0.7, 0.7], 2, "cell 5", 0.28),  # equal priors rank in their order
    ([0.7, 0.6, 0.7], 3, "cell 8", 0.03),
]


@pytest.mark.parametrize(("priors", "rank", "cell", "weight"), CASES)
def test_a_choice_tells_the_best_candidate_and_the_cell_of_its_value(
    make_guard, three, scoring, priors, rank, cell, weight
):
    guard = make_guard(**CHOOSING)
    choice = guard.choose(list(three), priors, name="which?")
    answer = choice.answer
    assert (choice.index, answer.way, answer.charged, answer.name) == (1, "choose", False, "which?")
    assert answer.told == f"candidate 1 of 3, rank {rank}, {cell}"
    favour = 0.5 / (rank * (rank + 1)) + 0.5 / 3
    assert answer.nats == pytest.approx(-math.log(favour) - math.log(weight))
    revealed = make_guard(**ASKING).reveal(three[1], prior=priors[1])
    assert (answer.value, answer.prior) == (revealed.value, priors[1])
    assert (answer.low, answer.high) == pytest.approx((revealed.low, revealed.high))  # the same cell's
    assert answer.low < 0.7 < answer.high


def test_the_others_are_no_better_than_the_winners_cell(make_guard, three):
    choice = make_guard(**CHOOSING).choose(list(three), [0.66, 0.7, 0.68])
    bound = ConfidenceBound("binomial", rows=ROWS, sum_of_squares=1 / ROWS)
    highest = bound.upper(0.71, log_level=level_of_a_first_question())
    assert choice.others == pytest.approx(highest, abs=2 / ROWS)
    assert choice.others == pytest.approx(choice.answer.high, abs=1e-6)  # without noise


def test_of_losses_the_smallest_wins_and_the_others_are_no_smaller(make_guard):
    settings = {**CHOOSING, "estimate": 0.3, "y": np.zeros(ROWS), "metric": mae(lower=0.0, upper=1.0)}
    losses = [np.full(ROWS, loss) for loss in (0.32, 0.3, 0.35)]
    choice = make_guard(**settings).choose(list(losses), [0.31, 0.3, 0.29])
    told, _, width = choice.answer.told.rpartition(", width ")
    assert (choice.index, told) == (1, "candidate 1 of 3, rank 2, cell 5")
    assert int(width) < 0  # rows that are all alike leave less than the guess says
    assert (
        choice.others < choice.answer.low < 0.3 < choice.answer.high
    )  # of the others the rows' spread is not told


def test_with_noise_the_winner_may_be_another_and_all_that_is_said_holds(make_guard, scoring):
    """Scores a standard deviation of the noise apart."""
    scores, winners = (0.68, 0.7, 0.69), set()
    for seed in range(30):
        guard = make_guard(**CHOOSING, noise=0.01, threshold=0.4, tolerance=None, seed=seed)
        choice = guard.choose([scoring(score) for score in scores], [0.69, 0.7, 0.68])
        winners.add(choice.index)
        assert choice.answer.low < scores[choice.index] < choice.answer.high
        assert all(score <= choice.others for score in scores)
        assert choice.others > choice.answer.high
    assert len(winners) > 1


def test_a_candidate_that_comes_again_in_another_choice_has_fresh_noise(make_guard, three, monkeypatch):
    """Noise that is held from one choice to the next is not what composes: the choices would add up to a sort."""
    named, choose = [], Choose.choose

    def spy(kind, scores, priors, questions, state):
        named.append(set(questions))
        return choose(kind, scores, priors, questions, state)

    monkeypatch.setattr(Choose, "choose", spy)
    guard = make_guard(**CHOOSING)
    guard.choose(list(three), [0.66, 0.7, 0.68])
    guard.choose(list(three[:2]), [0.66, 0.7])
    assert [len(names) for names in named] == [3, 2]
    assert not named[0] & named[1]


# ---- which question it is


def test_other_priors_order_or_candidates_are_another_choice(make_guard, three):
    guard = make_guard(**CHOOSING | {"choices": [3] * 5})
    asked = [
        (three, [0.66, 0.7, 0.68]),
        (three, [0.66, 0.7, 0.69]),
        (three[::-1], [0.68, 0.7, 0.66]),
        (three[:2], [0.66, 0.7]),
    ]
    choices = [guard.choose(*each) for each in asked]
    assert [choice.answer.query for choice in choices] == [1, 2, 3, 4]
    assert guard.queries_asked == 3 + 3 + 3 + 2


# ---- what is refused


def test_one_that_could_break_a_promise_is_refused_and_leaves_no_trace(make_guard, place, labels, three):
    words = set()
    for y in (labels, 1 - labels):
        guard = make_guard(place if y is labels else None, y=y, choices=[2], reveals=0)
        before = guard.history()
        assert guard.price("choose", candidates=2).allowed
        assert not guard.price("choose", candidates=3).allowed
        with pytest.raises(
            InputError, match=r"a choice can cost 5.3 nats, and .* nothing was told"
        ) as refused:
            guard.choose(list(three), [0.66, 0.7, 0.68])
        words.add(str(refused.value))
        assert guard.history().equals(before)
        assert guard.queries_asked == 0
        assert guard.choose(list(three[:2]), [0.66, 0.7]).answer.query == 1
    assert len(words) == 1


def test_as_many_choices_as_were_set_aside_are_answered_whatever_they_tell(make_guard, scoring):
    """The last of the favourites wins, far from its prior; and all charges are still answered."""
    guard = make_guard(**CHOOSING)
    for k in range(2):
        candidates = [scoring(0.02, k), scoring(0.03, k), scoring(0.05, k)]
        answer = guard.choose(list(candidates), [0.999, 0.998, 0.99]).answer
        assert answer.told == "candidate 2 of 3, rank 3, cell 0"
        assert answer.nats == pytest.approx(worst_choice_nats(3) + THEORY.reveal.worst)
    left = [guard.evaluate(scoring(0.05, k), prior=0.99).charges_left for k in range(3)]
    assert left == [2, 1, 0]


# ---- what fails


def test_a_choice_of_which_a_candidate_fails_names_the_best_of_the_others_and_tells_no_value(
    make_guard, problem
):
    from sklearn.dummy import DummyClassifier

    X_train, y_train, X, y = problem
    poor = DummyClassifier(strategy="constant", constant=0).fit(X_train, y_train)
    guard = make_guard(X=X, y=y, **CHOOSING)
    with pytest.raises(ModelError, match=r"candidates that did not fail, if there is one, is number 2"):
        guard.choose([Crashing(), poor, Crashing()], [0.9, 0.5, 0.8])
    assert guard.history()["told"].tolist() == ["candidate 1 of 3, rank 3, failed"]
    assert guard.queries_asked == 3


def test_a_candidate_that_failed_never_wins_over_one_whose_noisy_score_is_below_zero(make_guard):
    way = make_guard(**CHOOSING, noise=0.01, threshold=0.4, tolerance=None)._view.ways.choose
    for number in range(20):
        digests = [bytes([number, place]) * 16 for place in range(3)]
        _, outcome = way.choose([None, 0, None], np.array([0.9, 0.1, 0.5]), digests, State())
        assert outcome.told == Told(FAILED, winner=Winner(1, 3, 3))


def test_if_all_candidates_fail_it_takes_nats_once_and_no_charge(make_guard, place, problem):
    guard = make_guard(place, X=problem[2], y=problem[3], **CHOOSING)
    for _ in range(2):  # the second is a replay
        with pytest.raises(
            ModelError,
            match=r"took 4.4 nats and 2 queries .query 1, after which 38 of 40 queries were left., 3 charges",
        ):
            guard.choose([Crashing(), Crashing()], [0.5, 0.6])
    (row,) = guard.history().itertuples()
    assert (row.way, row.told, row.charged) == ("choose", "candidate 1 of 2, rank 1, failed", False)
    assert row.nats == pytest.approx(-math.log(0.5 / 2 + 0.25) - math.log(0.025))
    assert (math.isnan(row.low), math.isnan(row.high), row.asked, guard.charges_left) == (True, True, 2, 3)


# ---- where it stands


@pytest.mark.parametrize(("spread", "sides"), [(None, 2), (0.2, 3)])
def test_the_ends_of_a_choice_share_one_failure_probability(make_guard, spread, sides):
    """Rows that certify the winner bound it by another test than the others."""
    metric = "accuracy" if spread is None else mae(lower=0, upper=1)
    changes = {"threshold": None, "spread": spread, "charges": 2, "choices": [3]}
    ways = make_guard(y=np.arange(ROWS) % 2.0, metric=metric, **changes)._view.ways
    certificate, state = ways.choose.certificate, State()
    whole = math.exp(certificate.log_level(ways.reveal.length(state), 1.0))
    each = math.exp(certificate.log_level(ways.choose.length(state), 0.5))
    assert sides * each == pytest.approx(whole)
