"""A reveal: the cell of the holdout's value, its middle, its cost and its interval, by hand."""

import math

import numpy as np
import pytest
from guard.counting import fragile

from reusable_holdout.certainty import THEORY, ConfidenceBound
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import mae

ROWS = 2_000

# cells are 0.02 wide near the prior: 1.1/sqrt(2) of an honest deviation's standard deviation
UNIT = 0.02
PRIOR_ERROR = math.sqrt(2 * (UNIT / 1.1) ** 2 - 0.7 * 0.3 / ROWS)
ASKING = {"prior_error": PRIOR_ERROR, "reveals": 3}

# holdout's value, prior: the cell in units to either side of the prior, its middle, its weight
CELLS = [
    (0.7, 0.7, 5, 0.7, 0.28),  # half a unit to either side
    (0.692, 0.7, 5, 0.7, 0.28),
    (0.708, 0.7, 5, 0.7, 0.28),
    (0.688, 0.7, 4, 0.68, 0.22),  # the holdout is worse: 0.5 to 1.5
    (0.668, 0.7, 3, 0.65, 0.09),  # 1.5 to 3.5
    (0.6, 0.7, 2, 0.575, 0.03),  # 3.5 to 9
    (0.4, 0.7, 1, 0.36, 0.025),  # 9 to 25
    (0.1, 0.7, 0, 0.2, 0.025),  # 25 or more, to the bound
    (0.712, 0.7, 6, 0.72, 0.19),  # the holdout is better: 0.5 to 1.5
    (0.732, 0.7, 7, 0.75, 0.06),  # 1.5 to 3.5
    (0.8, 0.7, 8, 0.835, 0.03),  # 3.5 to 10
    (0.95, 0.7, 9, 0.9, 0.025),  # 10 or more, to the bound
]


def level_of_a_first_question(queries=40, beta=0.05):
    """Log level of one side: half of what a question has that comes first in a plan of 3 charges."""
    length = math.log(queries) + math.log(2) - math.log(0.25)  # K places, no charge (p = 1/2), no final (1/4)
    return math.log(beta / 2) - length


# ---- what is told


@pytest.mark.parametrize(("score", "prior", "place", "middle", "weight"), CELLS)
def test_a_reveal_tells_the_cell_of_the_holdouts_value(
    make_guard, scoring, score, prior, place, middle, weight
):
    guard = make_guard(**ASKING)
    answer = guard.reveal(scoring(score), prior=prior, name="how good?")
    assert (answer.way, answer.told, answer.charged) == ("reveal", f"cell {place}", False)
    assert answer.value == pytest.approx(middle, abs=1e-9)
    assert answer.nats == pytest.approx(-math.log(weight))
    assert (answer.prior, answer.query, answer.charges_left, answer.replayed) == (prior, 1, 3, False)
    assert (answer.threshold, answer.name) == (pytest.approx(UNIT), "how good?")
    assert answer.low < score < answer.high


def test_its_interval_is_that_of_its_cell_at_half_the_level_to_each_side(make_guard, scoring):
    bound, level = (
        ConfidenceBound("binomial", rows=ROWS, sum_of_squares=1 / ROWS),
        level_of_a_first_question(),
    )
    for score, low, high in ((0.7, 0.69, 0.71), (0.668, 0.63, 0.67), (0.95, 0.9, 1.0)):
        answer = make_guard(**ASKING).reveal(scoring(score), prior=0.7)
        assert answer.low == pytest.approx(bound.lower(low, log_level=level), abs=2 / ROWS)
        assert answer.high == pytest.approx(bound.upper(high, log_level=level), abs=2 / ROWS)


def test_a_later_question_is_wider_by_what_a_reveal_told(make_guard, scoring):
    guard, silent = (make_guard(**ASKING) for _ in "12")
    told = guard.reveal(scoring(0.7), prior=0.7).nats
    one, other = (each.evaluate(scoring(0.6), prior=0.62) for each in (guard, silent))
    bound = ConfidenceBound("binomial", rows=ROWS, sum_of_squares=1 / ROWS)
    level = level_of_a_first_question() + math.log(2 * 0.8)  # an agreed side has 0.8
    assert other.low == pytest.approx(bound.lower(0.52, log_level=level), abs=2 / ROWS)
    assert one.low == pytest.approx(bound.lower(0.52, log_level=level - told), abs=2 / ROWS)


def test_a_loss_is_revealed_on_the_side_on_which_it_is_worse(make_guard):
    settings = {**ASKING, "estimate": 0.3, "y": np.zeros(ROWS), "metric": mae(lower=0.0, upper=1.0)}
    for loss, place, middle in ((0.312, 4, 0.32), (0.288, 6, 0.28), (0.3, 5, 0.3)):
        answer = make_guard(**settings).reveal(np.full(ROWS, loss), prior=0.3)
        assert answer.value == pytest.approx(middle)
        assert answer.told.startswith(f"cell {place}, width ")


def test_its_noise_is_that_of_a_charged_value_and_its_interval_knows_it(make_guard, scoring):
    """At a scale of half a cell the told cell moves, and the interval holds in every case."""
    told = set()
    for seed in range(20):
        guard = make_guard(**ASKING, noise=0.05, threshold=0.4, tolerance=None, seed=seed)
        answer = guard.reveal(scoring(0.7), prior=0.7)
        told.add(answer.told)
        assert answer.low < 0.7 < answer.high
        assert guard.reveal(scoring(0.7), prior=0.7).replayed
    assert len(told) > 1


# ---- which question it is


def test_other_ways_to_ask_about_the_same_predictions_are_other_questions(make_guard, scoring):
    guard = make_guard(**ASKING, choices=[1])
    asked = [
        guard.reveal(scoring(0.7), prior=0.7),
        guard.reveal(scoring(0.7), prior=0.71),
        guard.evaluate(scoring(0.7), prior=0.7),
        guard.choose([scoring(0.7)], [0.7]).answer,
        guard.final(scoring(0.7)),
    ]
    assert [answer.replayed for answer in asked] == [False] * 5
    assert [answer.query for answer in asked] == [1, 2, 3, 4, 5]
    assert guard.history()["way"].tolist() == ["reveal", "reveal", "check", "choose", "final"]


# ---- what is refused


def test_as_many_reveals_as_were_set_aside_are_answered_whatever_they_tell(make_guard, scoring):
    """Each of the dearest, between charges of the dearest; and all charges are still answered."""
    guard = make_guard(**ASKING)
    for k in range(3):
        revealed = guard.reveal(scoring(0.05, k), prior=0.99)
        assert revealed.nats == pytest.approx(THEORY.reveal.worst)
        charged = guard.evaluate(scoring(0.05, k), prior=0.99)
        assert (charged.told, charged.charges_left) == ("cell 1", 2 - k)
    assert guard.halt_reason == "charges"


def test_the_refusal_is_the_same_whatever_the_holdout_says(make_guard, labels, scoring):
    metric, words = fragile(), set()
    for changes in ({}, {"y": 1 - labels}, {"metric": metric}, {"y": np.roll(labels, 1)}):
        guard = make_guard(reveals=0, **changes)
        with pytest.raises(InputError) as refused:
            guard.reveal(scoring(0.9, 100), prior=0.2)  # on which the metric fails
        words.add(str(refused.value))
        assert guard.queries_asked == 0
    assert len(words) == 1


def test_what_cheap_reveals_leave_over_can_be_spent_on_more(make_guard, scoring):
    """Ten are set aside at 3.7 nats each; of those that cost 1.3 each there is room for many more."""
    guard, asked = make_guard(reveals=10), 0
    left = 10 * THEORY.reveal.worst + guard.plan.spare_nats
    while guard.price("reveal").allowed:
        assert left - asked * -math.log(0.28) >= THEORY.reveal.worst - 1e-6
        asked += 1
        guard.reveal(scoring(0.7, asked), prior=0.7)
    left -= asked * -math.log(0.28)
    assert asked > 25
    with pytest.raises(InputError, match=f"can cost 3.7 nats, and {left:.1f} are left"):
        guard.reveal(scoring(0.7), prior=0.7)
    for place in range(3):
        assert guard.evaluate(scoring(0.05, place), prior=0.99).charges_left == 2 - place


# ---- what fails


# ---- where it stands
