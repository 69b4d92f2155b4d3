"""What does not fit is refused before anything is asked."""

import numpy as np
import pytest
from attacks import (
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

from reusable_holdout import Metric
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import log_loss, mse

LABELS = np.arange(20) % 2
ERROR = mse(lower=0, upper=1)


class Untouched:
    """Fails the test if it is asked."""

    def evaluate(self, predictions, *, prior):
        raise AssertionError("asked")


@pytest.mark.parametrize(
    ("attack", "changes", "words"),
    [
        (boosting_attack, {"questions": 0}, "questions must be a whole number of at least 1"),
        (boosting_attack, {"questions": 2.5}, "whole number"),
        (boosting_attack, {"questions": True}, "whole number"),
        (boosting_attack, {"rows": 1}, "rows must be a whole number of at least 2"),
        (boosting_attack, {"keep": "best"}, "'better' or 'not worse'"),
        (boosting_attack, {"metric": ERROR}, "real values"),
        (boosting_attack, {"metric": "score"}, "judged"),
        (boosting_attack, {"metric": "accurate"}, "accuracy"),
        (boosting_attack, {"truth": [[0, 1]]}, "labels"),
        (boosting_attack, {"truth": [0, 1]}, "as many as the holdout's rows, 20; got 2"),
        (flip_attack, {"flips": 3}, "flips must be 1 or 2"),
        (flip_attack, {"questions": -1}, "at least 1"),
        (threshold_probing_attack, {"margin": float("nan")}, "finite"),
        (threshold_probing_attack, {"edge": float("inf")}, "finite"),
        (threshold_probing_attack, {"questions": 0}, "at least 1"),
        (budget_burning_attack, {"others": -1}, "others"),
        (freedman_attack, {"features": 0}, "features"),
        (freedman_attack, {"chosen": 0}, "chosen"),
        (freedman_attack, {"train_rows": 3}, "train_rows"),
        (log_loss_attack, {"metric": "brier"}, "must be a log loss"),
        (log_loss_attack, {"precision": 0.0}, "precision"),
        (log_loss_attack, {"questions": 0}, "questions"),
        (log_loss_attack, {"metric": log_loss(clip=0.6)}, "below one half"),
    ],
)
def test_an_attack_names_what_must_hold(attack, changes, words):
    settings = {"rows": 20, "truth": lambda _: 0.5} | changes
    with pytest.raises(InputError, match=words):
        attack(Untouched(), **settings)


@pytest.mark.parametrize("attack", [boosting_attack, flip_attack, log_loss_attack])
def test_what_is_attacked_must_answer(attack):
    with pytest.raises(InputError, match=r"evaluate\(predictions"):
        attack(object(), rows=20, truth=LABELS)


def test_a_plain_holdout_needs_whole_decimals():
    for decimals in (-1, 2.0, "2"):
        with pytest.raises(InputError, match="decimals"):
            PlainHoldout(LABELS, decimals=decimals)


def test_a_plain_holdout_refuses_predictions_of_another_length():
    with pytest.raises(InputError):
        PlainHoldout(LABELS).evaluate([0, 1], prior=0.5)


def test_a_search_needs_a_metric_whose_truth_is_known():
    problem = SearchProblem.draw(rows=200)
    own = Metric(
        name="own",
        lower=0,
        upper=1,
        greater_is_better=True,
        response="labels",
        family="binomial",
        loss=lambda y, p: y == p,
    )
    for metric in ("log_loss", own):
        with pytest.raises(InputError, match="must be one of"):
            hyperparameter_search(Untouched(), problem, metric=metric)
    with pytest.raises(InputError, match="overfitting_every"):
        hyperparameter_search(Untouched(), problem, overfitting_every=-1)


@pytest.mark.parametrize("changes", [{"rows": 0}, {"features": 9}, {"train_rows": 10}, {"noise": -1.0}])
def test_a_problem_needs_numbers_in_their_ranges(changes):
    with pytest.raises(InputError, match=next(iter(changes))):
        SearchProblem.draw(**({"rows": 200} | changes))


def test_coins_have_two_classes():
    with pytest.raises(InputError, match="real values"):
        coin_truth(10, ERROR)
    with pytest.raises(InputError, match="judged"):
        coin_truth(10, "pass@2")
    with pytest.raises(InputError, match="rows"):
        coin_truth(1)
