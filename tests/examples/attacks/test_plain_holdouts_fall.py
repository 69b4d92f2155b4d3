"""Each attack takes from a plain holdout what theory says: means of seeded runs, within six standard errors."""

import math
from statistics import NormalDist

import attacks
import numpy as np
import pytest
from long_tests import QUERIES

from reusable_holdout.metrics import log_loss

PHI = NormalDist().cdf
RUNS = 40
long = pytest.mark.long(*QUERIES, "reusable_holdout/mechanisms", "examples/attacks")


def coins(rows, seed):
    return np.random.default_rng([5, rows, seed]).integers(0, 2, rows)


def allowance(rows):
    """Six standard errors of a mean of RUNS scores, and the normal approximation's 0.002."""
    return 6 * 0.5 / math.sqrt(rows * RUNS) + 0.002


def attacked(attack, labels, *, metric="accuracy", decimals=None, truth=None, **how):
    board, rows = attacks.PlainHoldout(labels, metric, decimals=decimals), len(labels)
    truth = attacks.coin_truth(rows, metric) if truth is None else truth
    return attack(board, rows=rows, truth=truth, metric=metric, **how)


def several(attack, rows, runs=RUNS, **how):
    """Results on boards of other coins."""
    return [attacked(attack, coins(rows, seed), seed=seed, **how) for seed in range(runs)]


def mean_answer(results):
    return np.mean([result.answer for result in results])


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
    results = several(attacks.boosting_attack, 4_000, metric="zero_one_loss", decimals=decimals, **options)
    assert mean_answer(results) == pytest.approx(expected, abs=allowance(4_000))
    assert {result.truth for result in results} == {0.5}
    assert results[0].questions == 401
    assert results[0].overfit == 0.5 - results[0].answer
    assert results[0].covered is None


@long
def test_rounding_helps_an_attacker_who_keeps_lucky_votes_alone():
    rounded, exact = (mean_answer(several(attacks.boosting_attack, 4_000, decimals=one)) for one in (2, None))
    assert 0.002 < rounded - exact < 0.02


@pytest.mark.parametrize("metric", ["brier", "roc_auc", "log_loss", "balanced_accuracy"])
def test_boosting_fools_other_metrics_too(metric):
    overfit = [
        one.overfit for one in several(attacks.boosting_attack, 1_000, 10, metric=metric, questions=100)
    ]
    assert min(overfit) > 0
    assert np.mean(overfit) > 0.03


@long
@pytest.mark.parametrize(("submissions", "expected"), [(1_000, 1 / 4), (4_000, 1 / 10)])
def test_pair_flips_from_all_rows_leave_the_published_loss(submissions, expected):
    how = {"metric": "zero_one_loss", "questions": submissions, "settle": False}
    lost = mean_answer(several(attacks.flip_attack, 1_000, **how))
    assert lost == pytest.approx(expected, abs=allowance(1_000))


def test_pair_flips_of_unsettled_rows_know_the_published_board_by_heart():
    labels = coins(3_600, 0)
    result = attacked(attacks.flip_attack, labels, metric="zero_one_loss", questions=14_400)
    assert result.answer <= 2 / 3_600
    assert np.count_nonzero(result.final != labels) <= 2
    assert result.questions < 2 * 3_600


def test_single_flips_know_every_label_after_as_many_questions():
    labels = coins(500, 1)
    result = attacked(attacks.flip_attack, labels, truth=1 - labels, flips=1, questions=501)
    assert (result.final == labels).all()
    assert (result.answer, result.truth, result.overfit) == (1.0, 0.0, 1.0)
    assert result.details["accepted"] == np.count_nonzero(np.diff(np.maximum.accumulate(result.values)))


def test_probing_knows_every_vote_of_a_plain_holdout():
    expected = PHI(math.sqrt(2 * 100 / (math.pi * 1_000)))
    found = mean_answer(several(attacks.threshold_probing_attack, 1_000, questions=100))
    assert found == pytest.approx(expected, abs=allowance(1_000))


def test_there_is_nothing_to_burn_on_a_plain_holdout():
    result = attacked(attacks.budget_burning_attack, coins(1_000, 0), questions=50, others=7)
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
    result = attacked(attacks.log_loss_attack, labels, metric=metric, decimals=decimals, precision=precision)
    assert ((result.final > 0.5) == labels).all()
    assert result.details == {"batch": batch, "read": 1_000}
    assert result.questions == math.ceil(1_000 / batch) + 1
    assert result.overfit > 2.0


def test_the_log_loss_oracle_stops_after_the_questions_it_was_given():
    labels = coins(1_000, 3)
    result = attacked(attacks.log_loss_attack, labels, metric="log_loss", truth=1 - labels, questions=2)
    known = result.final != 0.5
    assert known.sum() == result.details["read"] == 42
    assert ((result.final > 0.5) == labels)[known].all()


@long
def test_freedman_selection_reports_a_signal_where_there_is_none():
    results = several(attacks.freedman_attack, 1_000)
    expected = np.mean([PHI(math.sqrt(2 * result.details["kept"] / (math.pi * 1_000))) for result in results])
    assert mean_answer(results) == pytest.approx(expected, abs=allowance(1_000))
    chosen = attacked(attacks.freedman_attack, coins(1_000, 0), chosen=20, train_rows=300)
    assert chosen.details["kept"] == 20


@long
@pytest.mark.parametrize("metric", ["accuracy", "zero_one_loss", "brier", "roc_auc"])
def test_the_truth_of_linear_models_is_the_mean_of_fresh_scores(metric):
    """A holdout of the search is as good as fresh rows, for nothing is chosen by its answers here."""
    deviations, how = [], {"metric": metric, "questions": 4, "overfitting_every": 2}
    for seed in range(RUNS):
        problem = attacks.SearchProblem.draw(rows=2_000, seed=seed)
        search = attacks.hyperparameter_search(attacks.PlainHoldout(problem.y, metric), problem, **how)
        deviations.append(np.mean(search.values - search.truths))
        assert search.details == {"overfitting": 2, "overfitting_charged": 0, "honest_charged": 0}
    assert abs(np.mean(deviations)) < 6 * 0.5 / math.sqrt(2_000 * RUNS)


def test_a_search_chooses_the_best_answer():
    problem = attacks.SearchProblem.draw(rows=1_000, seed=1)
    search = attacks.hyperparameter_search(
        attacks.PlainHoldout(problem.y, "brier"), problem, metric="brier", questions=50
    )
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

    def value(labels, *ends):
        told = attacks.PlainHoldout(np.array([*labels, *ends]), metric).evaluate(asked, prior=0.5)
        return told.value

    asked = np.append(predictions, [0, 0])
    found = np.mean([value(labels, *ends) for labels in every for ends in ((0, 1), (1, 0))])
    assert found == pytest.approx(attacks.coin_truth(6, metric)(asked), abs=1e-12)
