"""The same attacks on guards: nothing is gained, halts end them cleanly, and every interval holds."""

import math

import numpy as np
import pytest
from attacks import (
    PlainAnswer,
    PlainHoldout,
    SearchProblem,
    boosting_attack,
    budget_burning_attack,
    coin_truth,
    flip_attack,
    freedman_attack,
    hyperparameter_search,
    log_loss_attack,
    threshold_probing_attack,
)
from cases import refuses
from long_tests import GUARD
from made_guards import made_guard

from reusable_holdout.errors import Halted

ROWS = 1_000
ON_VOTES = [boosting_attack, flip_attack, threshold_probing_attack, budget_burning_attack, freedman_attack]


long = pytest.mark.long(*GUARD, "reusable_holdout/mechanisms", "examples/attacks")


def coins(rows, seed):
    return np.random.default_rng([6, rows, seed]).integers(0, 2, rows)


def careful(labels, **settings):
    """A threshold that no honest prior passes by chance: 4.5 standard deviations."""
    threshold = 4.5 * 0.5 / math.sqrt(len(labels))
    wish = {"threshold": threshold, "charges": 2, "seed": 0, "classes": [0, 1]}
    return made_guard(None, labels, **wish | settings)


@long
def test_the_published_boosting_attack_gains_nothing():
    for seed in range(5):
        guard = careful(coins(4_000, seed), metric="zero_one_loss", queries=401)
        result = boosting_attack(
            guard, rows=4_000, truth=coin_truth(4_000), metric="zero_one_loss", keep="not worse", seed=seed
        )
        assert abs(result.answer - 0.5) <= 0.005
        assert result.covered
        assert result.questions == guard.queries_asked == 401


@long
def test_the_published_pair_flip_gains_nothing():
    guard = careful(coins(3_600, 0), metric="zero_one_loss", queries=14_400)
    result = flip_attack(guard, rows=3_600, truth=coin_truth(3_600), metric="zero_one_loss", questions=14_400)
    assert result.values.min() >= 0.48
    assert result.covered


def test_the_log_loss_oracle_reads_nothing():
    """Labels read right are as many as a coin would guess: off by six standard deviations at most."""
    labels = coins(ROWS, 1)
    guard = made_guard(None, labels, metric="log_loss", queries=60, threshold=0.1, charges=10, seed=1)
    result = log_loss_attack(guard, rows=ROWS, truth=coin_truth(ROWS, "log_loss"))
    assert result.details["read"] == ROWS
    right = np.count_nonzero((result.final > 0.5) == labels)
    assert abs(right - ROWS / 2) < 6 * math.sqrt(ROWS) / 2
    assert result.answer > 0.69  # no better than a coin's, though what is told of a far one is a bound alone
    assert result.covered


def test_freedman_selection_reports_no_signal():
    guard = careful(coins(4_000, 2), queries=401)
    result = freedman_attack(guard, rows=4_000, truth=coin_truth(4_000), features=400)
    plain = freedman_attack(PlainHoldout(coins(4_000, 2)), rows=4_000, truth=coin_truth(4_000), features=400)
    assert plain.overfit > 0.05
    assert result.charges >= 1  # the prior of the majority is its training score
    assert abs(result.overfit) < 0.03
    assert result.covered


def test_probing_overclaims_by_a_threshold_at_most():
    guard = careful(coins(ROWS, 3), queries=201, charges=6)
    result = threshold_probing_attack(guard, rows=ROWS, truth=coin_truth(ROWS), questions=200, spare=2)
    assert result.covered
    assert result.halted is None
    assert result.charges >= 3
    assert result.overfit <= guard.plan.tolerance


def test_others_are_told_that_a_burnt_guard_has_halted():
    guard = careful(coins(ROWS, 4), queries=100)
    result = budget_burning_attack(guard, rows=ROWS, truth=coin_truth(ROWS), others=5)
    assert result.halted is not None
    assert guard.halted
    assert result.details["others_answered"] == 0
    assert result.charges == result.questions == result.details["burnt"]
    assert result.covered


def test_a_search_with_one_overfitting_prior_in_fifty_pays_for_those_alone():
    problem = SearchProblem.draw(rows=10_000, seed=2)
    guard = made_guard(None, problem.y, queries=500, tolerance=0.06, estimate=0.75, seed=2)
    result = hyperparameter_search(guard, problem, questions=150)
    assert result.details == {"overfitting": 3, "overfitting_charged": 3, "honest_charged": 0}
    assert result.halted is None
    assert result.covered


class HaltsAfter:
    """Answers so many questions, then halts, as a guard does."""

    def __init__(self, labels, questions):
        self.plain, self.left = PlainHoldout(labels), questions

    def evaluate(self, subject, *, prior):
        if isinstance(subject, list):
            return self.together(subject, prior)
        if not self.left:
            raise Halted("spent", reason="queries", history=None)
        self.left -= 1
        return self.plain.evaluate(subject, prior=prior)

    def together(self, predictions, priors):
        answers = []
        for each, prior in zip(predictions, priors, strict=True):
            try:
                answers.append(self.evaluate(each, prior=prior))
            except Halted:
                raise Halted("spent", reason="queries", history=None, answers=answers) from None
        return answers


@pytest.mark.parametrize("attack", ON_VOTES)
def test_a_halt_ends_an_attack_and_what_was_learnt_is_kept(attack):
    for questions in (0, 1, 7):
        result = attack(HaltsAfter(coins(ROWS, 0), questions), rows=ROWS, truth=coin_truth(ROWS))
        assert result.halted == "queries", questions
        assert result.questions == len(result.truths) == len(result.values) == questions, questions
        if attack is flip_attack and questions:
            assert result.answer == result.values.max(), questions
            assert result.final.shape == (ROWS,), questions
        else:
            assert math.isnan(result.answer), questions
            assert math.isnan(result.overfit), questions
        assert "halted (queries)" in str(result), questions


@pytest.mark.parametrize("questions", [0, 3])
def test_a_halt_ends_oracle_and_search(questions):
    class LogLoss(HaltsAfter):
        def __init__(self, labels, left):
            self.plain, self.left = PlainHoldout(labels, "log_loss"), left

    oracle = log_loss_attack(
        LogLoss(coins(ROWS, 0), questions), rows=ROWS, truth=coin_truth(ROWS, "log_loss")
    )
    assert (oracle.halted, oracle.questions) == ("queries", questions)
    assert oracle.details["read"] == 21 * questions
    problem = SearchProblem.draw(rows=ROWS)
    search = hyperparameter_search(HaltsAfter(problem.y, questions), problem)
    assert (search.halted, search.questions) == ("queries", questions)
    assert math.isnan(search.answer) == (questions == 0)


def test_other_errors_are_not_swallowed():
    class Broken:
        def evaluate(self, predictions, *, prior):
            raise KeyboardInterrupt

    refuses(KeyboardInterrupt, "", flip_attack, Broken(), rows=10, truth=coin_truth(10))


def test_an_interval_that_misses_is_found():
    class Narrow(PlainHoldout):
        def evaluate(self, predictions, *, prior):
            if isinstance(predictions, list):
                return [self.evaluate(each, prior=prior) for each in predictions]
            value = super().evaluate(predictions, prior=prior).value
            return PlainAnswer(value, value - 1e-6, value + 1e-6)

    result = boosting_attack(Narrow(coins(ROWS, 0)), rows=ROWS, truth=coin_truth(ROWS), questions=50)
    assert result.covered is False
    assert result.misses == np.count_nonzero(np.abs(result.values - 0.5) > 1e-6) > 40
    assert "intervals miss" in str(result)
