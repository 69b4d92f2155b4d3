"""Each attack takes from a plain holdout what theory says: means of seeded runs, within six standard errors."""

import math
from statistics import NormalDist

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

from reusable_holdout.metrics import log_loss

PHI = NormalDist().cdf
RUNS = 40
long = pytest.mark.long(
    "examples/attacks",
    "reusable_holdout/errors.py",
    "reusable_holdout/mechanisms",
    "reusable_holdout/metrics",
)


def coins(rows, seed):
    return np.random.default_rng([5, rows, seed]).integers(0, 2, rows)


def allowance(rows):
    """Six standard errors of a mean of RUNS scores, and the normal approximation's 0.002."""
    return 6 * 0.5 / math.sqrt(rows * RUNS) + 0.002


@long
@pytest.mark.parametrize(
    ("options", "decimals", "expected"),
    [
        ({"keep": "not worse"}, None, 0.427),  # the published figures
        ({"keep": "not worse"}, 2, 0.451),
        ({"keep": "better"}, None, PHI(-math.sqrt(400 / (math.pi * 4_000)))),
        ({"reverse": True}, None, PHI(-math.sqrt(2 * 400 / (math.pi * 4_000)))),
    ],
)
def test_boosting_reaches_the_published_loss(options, decimals, expected):
    results = [
        boosting_attack(
            PlainHoldout(coins(4_000, seed), "zero_one_loss", decimals=decimals),
            rows=4_000,
            truth=coin_truth(4_000),
            metric="zero_one_loss",
            seed=seed,
            **options,
        )
        for seed in range(RUNS)
    ]
    assert np.mean([result.answer for result in results]) == pytest.approx(expected, abs=allowance(4_000))
    assert {result.truth for result in results} == {0.5}
    assert results[0].questions == 401
    assert results[0].overfit == 0.5 - results[0].answer
    assert results[0].covered is None


@long
def test_rounding_helps_an_attacker_who_keeps_lucky_votes_alone():
    def answer(decimals, seed):
        board = PlainHoldout(coins(4_000, seed), decimals=decimals)
        return boosting_attack(board, rows=4_000, truth=coin_truth(4_000), seed=seed).answer

    gain = np.mean([answer(2, seed) - answer(None, seed) for seed in range(RUNS)])
    assert 0.002 < gain < 0.02


@pytest.mark.parametrize("metric", ["brier", "roc_auc", "log_loss", "balanced_accuracy"])
def test_boosting_fools_other_metrics_too(metric):
    results = [
        boosting_attack(
            PlainHoldout(coins(1_000, seed), metric),
            rows=1_000,
            truth=coin_truth(1_000, metric),
            metric=metric,
            questions=100,
            seed=seed,
        )
        for seed in range(10)
    ]
    assert all(result.overfit > 0 for result in results)
    assert np.mean([result.overfit for result in results]) > 0.03


@long
@pytest.mark.parametrize(("submissions", "expected"), [(1_000, 1 / 4), (4_000, 1 / 10)])
def test_pair_flips_from_all_rows_leave_the_published_loss(submissions, expected):
    lost = [
        flip_attack(
            PlainHoldout(coins(1_000, seed), "zero_one_loss"),
            rows=1_000,
            truth=coin_truth(1_000),
            metric="zero_one_loss",
            questions=submissions,
            settle=False,
            seed=seed,
        ).answer
        for seed in range(RUNS)
    ]
    assert np.mean(lost) == pytest.approx(expected, abs=allowance(1_000))


def test_pair_flips_of_unsettled_rows_know_the_published_board_by_heart():
    labels = coins(3_600, 0)
    result = flip_attack(
        PlainHoldout(labels, "zero_one_loss"),
        rows=3_600,
        truth=coin_truth(3_600),
        metric="zero_one_loss",
        questions=14_400,
    )
    assert result.answer <= 2 / 3_600
    assert np.count_nonzero(result.final != labels) <= 2
    assert result.questions < 2 * 3_600


def test_single_flips_know_every_label_after_as_many_questions():
    labels = coins(500, 1)
    result = flip_attack(PlainHoldout(labels), rows=500, truth=1 - labels, flips=1, questions=501)
    assert (result.final == labels).all()
    assert (result.answer, result.truth, result.overfit) == (1.0, 0.0, 1.0)
    assert result.details["accepted"] == np.count_nonzero(np.diff(np.maximum.accumulate(result.values)))


def test_probing_knows_every_vote_of_a_plain_holdout():
    results = [
        threshold_probing_attack(
            PlainHoldout(coins(1_000, seed)),
            rows=1_000,
            truth=coin_truth(1_000),
            questions=100,
            seed=seed,
        )
        for seed in range(RUNS)
    ]
    expected = PHI(math.sqrt(2 * 100 / (math.pi * 1_000)))
    assert np.mean([result.answer for result in results]) == pytest.approx(expected, abs=allowance(1_000))


def test_there_is_nothing_to_burn_on_a_plain_holdout():
    result = budget_burning_attack(
        PlainHoldout(coins(1_000, 0)), rows=1_000, truth=coin_truth(1_000), questions=50, others=7
    )
    assert result.details == {"burnt": 50.0, "others_answered": 7.0}
    assert (result.questions, result.charges, result.halted) == (58, 0, None)
    assert result.overfit > 0.03


@pytest.mark.parametrize(
    ("metric", "decimals", "precision", "batch"),
    [
        ("log_loss", None, 1e-9, 21),
        (log_loss(clip=1e-15), None, 1e-13, 37),
        (log_loss(clip=1e-15), 2, 0.005, 1),  # one row at a time, through two decimals
    ],
)
def test_the_log_loss_oracle_reads_every_label(metric, decimals, precision, batch):
    labels = coins(1_000, 3)
    board = PlainHoldout(labels, metric, decimals=decimals)
    result = log_loss_attack(
        board, rows=1_000, truth=coin_truth(1_000, metric), metric=metric, precision=precision
    )
    assert ((result.final > 0.5) == labels).all()
    assert result.details == {"batch": batch, "read": 1_000}
    assert result.questions == math.ceil(1_000 / batch) + 1
    assert result.overfit > 2.0


def test_the_log_loss_oracle_stops_after_the_questions_it_was_given():
    labels = coins(1_000, 3)
    result = log_loss_attack(PlainHoldout(labels, "log_loss"), rows=1_000, truth=1 - labels, questions=2)
    known = result.final != 0.5
    assert known.sum() == result.details["read"] == 42
    assert ((result.final > 0.5) == labels)[known].all()


@long
def test_freedman_selection_reports_a_signal_where_there_is_none():
    results = [
        freedman_attack(PlainHoldout(coins(1_000, seed)), rows=1_000, truth=coin_truth(1_000), seed=seed)
        for seed in range(RUNS)
    ]
    expected = np.mean([PHI(math.sqrt(2 * result.details["kept"] / (math.pi * 1_000))) for result in results])
    assert np.mean([result.answer for result in results]) == pytest.approx(expected, abs=allowance(1_000))
    chosen = freedman_attack(
        PlainHoldout(coins(1_000, 0)), rows=1_000, truth=coin_truth(1_000), chosen=20, train_rows=300
    )
    assert chosen.details["kept"] == 20


@long
@pytest.mark.parametrize("metric", ["accuracy", "zero_one_loss", "brier", "roc_auc"])
def test_the_truth_of_linear_models_is_the_mean_of_fresh_scores(metric):
    """A holdout of the search is as good as fresh rows, for nothing is chosen by its answers here."""
    deviations = []
    for seed in range(RUNS):
        problem = SearchProblem.draw(rows=2_000, seed=seed)
        search = hyperparameter_search(
            PlainHoldout(problem.y, metric), problem, metric=metric, questions=4, overfitting_every=2
        )
        deviations.append(np.mean(search.values - search.truths))
        assert search.details == {"overfitting": 2, "overfitting_charged": 0, "honest_charged": 0}
    assert abs(np.mean(deviations)) < 6 * 0.5 / math.sqrt(2_000 * RUNS)


def test_a_search_chooses_the_best_answer():
    problem = SearchProblem.draw(rows=1_000, seed=1)
    search = hyperparameter_search(PlainHoldout(problem.y, "brier"), problem, metric="brier", questions=50)
    place = int(np.argmin(search.values))
    assert (search.answer, search.truth) == (search.values[place], search.truths[place])


@pytest.mark.parametrize("metric", ["accuracy", "brier", "log_loss", "roc_auc", "balanced_accuracy"])
def test_the_truth_of_coins_is_the_mean_over_all_labels(metric):
    """Exact: all labels of four rows, but those of one class."""
    rng = np.random.default_rng(8)
    predictions = rng.integers(0, 2, 4) if "accuracy" in metric else rng.choice([0.25, 0.75, 0.4], 4)
    every = [[code >> place & 1 for place in range(4)] for code in range(16)]
    if metric in {"roc_auc", "balanced_accuracy"}:
        every = [labels for labels in every if len(set(labels)) == 2]
    values = [
        PlainHoldout(np.array([*labels, 0, 1]), metric)
        .evaluate(np.append(predictions, [0, 0]), prior=0.5)
        .value
        for labels in every
    ]
    fresh = coin_truth(6, metric)(np.append(predictions, [0, 0]))
    whole = [
        PlainHoldout(np.array([*labels, 1, 0]), metric)
        .evaluate(np.append(predictions, [0, 0]), prior=0.5)
        .value
        for labels in every
    ]
    assert (np.mean(values) + np.mean(whole)) / 2 == pytest.approx(fresh, abs=1e-12)
