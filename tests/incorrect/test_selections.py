"""Each wrong selection is caught by the audit that passes the correct one."""

import math

import pytest
from cases import for_each
from incorrect.selections import (
    best_of_a_fixed_number,
    bottom_at_the_next_score,
    domain_without_a_bottom,
)
from mechanisms.accounting.repeated import best_of, border
from mechanisms.selection.selection_laws import delta_at, unknown_domain_law

from reusable_holdout.mechanisms import unknown_domain_margin
from reusable_holdout.mechanisms.accounting import Repetitions, bounded_range_epsilon_each


def test_a_choice_among_the_items_that_occur_is_rejected():
    epsilon, delta = 1.0, 1e-3
    rate = bounded_range_epsilon_each(epsilon=epsilon, count=1, delta=delta / 2)
    before, after = {"a": 5, "b": 0}, {"a": 5, "b": 1}
    laws = [domain_without_a_bottom(scores, 1, known=2, rate=rate) for scores in (before, after)]
    assert delta_at(epsilon, *laws) > 10 * delta
    # Where the row's item is the only one, it betrays it for certain.
    laws = [domain_without_a_bottom(scores, 1, known=2, rate=rate) for scores in ({"b": 0}, {"b": 1})]
    assert delta_at(epsilon, *laws) == pytest.approx(1.0)


def test_a_bottom_without_a_margin_is_rejected():
    epsilon, delta = 1.0, 1e-3
    rate = bounded_range_epsilon_each(epsilon=epsilon, count=1, delta=delta / 2)
    margin = math.ceil(unknown_domain_margin(count=1, epsilon=epsilon, delta=delta, known=1, items_per_row=1))
    before, after = {"a": 3, "b": 3}, {"a": 3, "b": 4}
    wrong = [bottom_at_the_next_score(scores, 1, known=1, rate=rate) for scores in (before, after)]
    right = [unknown_domain_law(scores, rate, 1, known=1, margin=margin) for scores in (before, after)]
    assert delta_at(epsilon, *wrong) > 100 * delta
    assert delta_at(epsilon, *right) <= delta


@for_each("epsilon", [0.1, 1.0])
def test_a_fixed_number_of_runs_is_rejected_at_the_price_of_a_random_one(epsilon):
    """The best of twenty loses six times as much as the best of twenty on average."""
    law = Repetitions(mean=20.0, shape=1.0)
    one, other = border(epsilon, rare=1e-3)
    pairs = zip(best_of_a_fixed_number(one, 20), best_of_a_fixed_number(other, 20), strict=True)
    assert max(abs(math.log(p / q)) for p, q in pairs) > 6 * law.epsilon(epsilon)
    random = zip(best_of(law, one), best_of(law, other), strict=True)
    assert max(abs(math.log(p / q)) for p, q in random) <= law.epsilon(epsilon)
