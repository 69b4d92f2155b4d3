"""What does not fit is refused before anything is asked."""

from functools import partial

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
from cases import refuses

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import log_loss, mse

LABELS = np.arange(20) % 2
ERROR = mse(lower=0, upper=1)


class Untouched:
    """Fails the test if it is asked."""

    def evaluate(self, predictions, *, prior):
        raise AssertionError("asked")


UNTOUCHED = Untouched()


def by(attack, holdout=UNTOUCHED, **changes):
    return partial(attack, holdout, **{"rows": 20, "truth": lambda _: 0.5} | changes)


def search(**changes):
    return lambda: hyperparameter_search(UNTOUCHED, SearchProblem.draw(rows=200), **changes)


def problem(**changes):
    return partial(SearchProblem.draw, **{"rows": 200} | changes)


REFUSED = [  # the words of the refusal, and what is refused
    *(("questions must be a whole number of at least 1", by(boosting_attack, questions=one)) for one in (0, 2.5, True)),
    ("rows must be a whole number of at least 2", by(boosting_attack, rows=1)),
    ("'better' or 'not worse'", by(boosting_attack, keep="best")),
    ("real values", by(boosting_attack, metric=ERROR)),
    ("judged", by(boosting_attack, metric="score")),
    ("accuracy", by(boosting_attack, metric="accurate")),
    ("labels", by(boosting_attack, truth=[[0, 1]])),
    ("as many as the holdout's rows, 20; got 2", by(boosting_attack, truth=[0, 1])),
    ("flips must be 1 or 2", by(flip_attack, flips=3)),
    ("at least 1", by(flip_attack, questions=-1)),
    ("finite", by(threshold_probing_attack, margin=float("nan"))),
    ("finite", by(threshold_probing_attack, edge=float("inf"))),
    ("at least 1", by(threshold_probing_attack, questions=0)),
    ("others", by(budget_burning_attack, others=-1)),
    ("features", by(freedman_attack, features=0)),
    ("chosen", by(freedman_attack, chosen=0)),
    ("train_rows", by(freedman_attack, train_rows=3)),
    ("must be a log loss", by(log_loss_attack, metric="brier")),
    ("precision", by(log_loss_attack, precision=0.0)),
    ("questions", by(log_loss_attack, questions=0)),
    ("below one half", by(log_loss_attack, metric=log_loss(clip=0.6))),
    *((r"evaluate\(predictions", by(one, object())) for one in (boosting_attack, flip_attack, log_loss_attack)),
    *(("decimals", partial(PlainHoldout, LABELS, decimals=one)) for one in (-1, 2.0, "2")),
    ("", partial(PlainHoldout(LABELS).evaluate, [0, 1], prior=0.5)),
    *(("must be one of", search(metric=one)) for one in ("log_loss", "hamming_loss")),
    ("overfitting_every", search(overfitting_every=-1)),
    ("rows", problem(rows=0)),
    ("features", problem(features=9)),
    ("train_rows", problem(train_rows=10)),
    ("noise", problem(noise=-1.0)),
    ("real values", partial(coin_truth, 10, ERROR)),
    ("judged", partial(coin_truth, 10, "pass@2")),
    ("rows", partial(coin_truth, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "call"), REFUSED, ids=[words[:60] for words, _ in REFUSED])
def test_what_does_not_fit_is_refused_in_words(words, call):
    refuses(InputError, words, call)
