"""Rows of one user are one draw: each group counts once, and intervals are about groups."""

import math
import pickle

import numpy as np
import pytest
from cases import for_each, refuses
from made_guards import made_guard

from reusable_holdout import Metric, ReusableHoldout, Rows, verify
from reusable_holdout.certainty import ConfidenceBound
from reusable_holdout.errors import InputError, LedgerMismatchError
from reusable_holdout.metrics import GRID, accuracy, mae, resolve_metric, rmse
from reusable_holdout.metrics.weights import Groups

ROWS = 600
LABELS = np.random.default_rng(0).integers(0, 2, ROWS)
USERS = np.random.default_rng(1).integers(0, 150, ROWS)
COUNT = len(np.unique(USERS))
SETTINGS = {
    "queries": 40,
    "charges": 3,
    "threshold": 0.3,
    "noise": 0.0,
    "estimate": 0.7,
    "seed": 1,
    "vacuous": True,
}


def make(y=LABELS, groups=USERS, **changes):
    return made_guard(None, y, groups=groups, **{**SETTINGS, **changes})


def guesses(accuracy, seed=0):
    return np.where(np.random.default_rng(seed).random(ROWS) < accuracy, LABELS, 1 - LABELS)


def mean_of_groups(each, users=USERS):
    return np.mean([each[users == user].mean() for user in np.unique(users)])


# ---- what is estimated


@for_each("metric", ["accuracy", "brier", "log_loss", "zero_one_loss"])
def test_a_score_is_the_mean_of_the_groups_means(metric):
    bound, chances = resolve_metric(metric).bind(LABELS, groups=USERS), np.random.default_rng(2).random(ROWS)
    asked = chances if bound.metric.response != "labels" else (chances > 0.5).astype(int)
    alone = [
        resolve_metric(metric).measure(LABELS[[row]], asked[[row]], classes=[0, 1]) for row in range(ROWS)
    ]
    span, lower = bound.metric.upper - bound.metric.lower, bound.metric.lower
    found = lower + int(bound.score(bound.prepare(asked)[None])[0]) / GRID * span
    assert found == pytest.approx(mean_of_groups(np.array(alone)), abs=1e-6 * span)
    assert bound.statistic.value(bound.prepare(asked)) == pytest.approx(mean_of_groups(np.array(alone)))


def test_the_root_of_a_mean_is_that_of_the_groups_means():
    targets, told = np.linspace(0, 1, ROWS), np.zeros(ROWS)
    bound = rmse(lower=0.0, upper=1.0).bind(targets, groups=USERS)
    assert bound.statistic.value(bound.prepare(told)) == pytest.approx(math.sqrt(mean_of_groups(targets**2)))


def test_groups_of_one_row_are_the_rows():
    one_by_one = accuracy().bind(LABELS, groups=np.arange(ROWS))
    plain = accuracy().bind(LABELS)
    prepared = plain.prepare_many([guesses(0.7), guesses(0.2)])
    assert one_by_one.score(prepared).tolist() == plain.score(prepared).tolist()
    assert (one_by_one.effective_rows, one_by_one.sensitivity) == (ROWS, plain.sensitivity)


def test_names_and_order_of_groups_do_not_matter():
    assert Groups(["b", "a", "b"], 3).digest == Groups([1, 7, 1], 3).digest
    assert Groups(["b", "a", "a"], 3).digest != Groups(["b", "a", "b"], 3).digest
    assert Groups(np.array([5, 5, 2, 9]), 4).part(np.array([2, 3])).codes.tolist() == [0, 1]


def test_no_group_changes_a_score_by_more_than_is_declared():
    """Every group's rows turned round, in every small holdout: the sensitivity that noise is scaled by."""
    users = np.array([0, 0, 0, 1, 2, 2])
    for metric in (accuracy(), mae(lower=0.0, upper=1.0)):
        labels = np.array([0, 1, 1, 0, 1, 0])
        bound = metric.bind(labels, groups=users)
        most = math.ceil(bound.sensitivity * GRID)
        assert most == math.ceil(GRID / 3)
        changes = []
        for asked in np.ndindex((2,) * 6):
            before = int(bound.score(bound.prepare(np.array(asked))[None])[0])
            for user in range(3):
                other = np.where(users == user, 1 - np.array(asked), asked)
                changes.append(abs(int(bound.score(bound.prepare(other)[None])[0]) - before))
        assert most - 2 <= max(changes) <= most


# ---- the promise


def test_groups_of_equal_rows_are_as_many_draws_as_groups_and_rows_would_say_more():
    """Exact: 8 groups of 5 equal rows; the bound of groups misses at most as often as it says, that of rows more."""
    groups, size, level = 8, 5, 0.05
    users = np.repeat(np.arange(groups), size)
    bound = accuracy().bind(np.ones(groups * size, int), classes=[0, 1], groups=users)
    ours = ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)
    theirs = ConfidenceBound("binomial", rows=groups * size, sum_of_squares=1 / (groups * size))
    assert (bound.family, bound.effective_rows) == ("bounded", groups)
    for truth in (0.1, 0.5, 0.7, 0.95):
        missed = {}
        for name, confidence in (("groups", ours), ("rows", theirs)):
            missed[name] = math.fsum(
                math.comb(groups, right) * truth**right * (1 - truth) ** (groups - right)
                for right in range(groups + 1)
                if confidence.lower(right / groups, log_level=math.log(level)) > truth
            )
        assert missed["groups"] <= level < missed["rows"] or truth > 0.9
        assert missed["groups"] <= level


def test_a_final_of_groups_is_narrower_than_as_many_rows_of_the_largest_spread_would_have_it():
    with make() as guard:
        assert guard.plan.rows == COUNT
        assert f"accuracy, {COUNT} groups, 0 of 40 queries" in repr(
            guard
        )  # how many rows is a fact about them
        answer = guard.final(guesses(0.7))
    assert answer.value == pytest.approx(mean_of_groups(guesses(0.7) == LABELS), abs=1e-8)
    bound = ConfidenceBound("bounded", rows=COUNT, sum_of_squares=1 / COUNT)
    level = math.log(0.05 / 2) - math.log(2) - math.log(4)
    assert bound.lower(answer.value, log_level=level) < answer.low < answer.value
    assert answer.value < answer.high < bound.upper(answer.value, log_level=level)


def test_a_slice_counts_each_group_with_its_rows_in_it():
    with make(reveals=3) as guard:
        half = np.arange(ROWS) < ROWS // 2
        part = guard.on(sample_weight=half, allow={"vacuous"})
        assert part.plan.rows == len(np.unique(USERS[half]))
        last = part.final(guesses(0.7))
    assert last.value == pytest.approx(mean_of_groups((guesses(0.7) == LABELS)[half], USERS[half]), abs=1e-8)


def test_two_models_are_compared_group_by_group():
    with make(tolerance=0.5, charges=None) as guard:
        answer = guard.compare(guesses(0.9), guesses(0.6, 1), prior=0.3)
    assert (answer.charged, answer.low < 0.3 < answer.high) == (False, True)


# ---- ledgers and refusals


def test_a_ledger_belongs_to_its_groups(tmp_path):
    with make(ledger=tmp_path / "guard.db") as guard:
        first = guard.evaluate(guesses(0.7), prior=0.7)
        assert (
            pickle.loads(pickle.dumps(guard)) is guard or pickle.loads(pickle.dumps(guard)).plan == guard.plan
        )
    verify(tmp_path / "guard.db").check()
    with ReusableHoldout.open(tmp_path / "guard.db", Rows(None, LABELS, groups=USERS), seed=1) as again:
        assert again.evaluate(guesses(0.7), prior=0.7) == first._replace(replayed=True)
    for other in (None, np.arange(ROWS)):
        with pytest.raises(LedgerMismatchError, match="groups"):
            ReusableHoldout.open(tmp_path / "guard.db", Rows(None, LABELS, groups=other), seed=1)


def test_a_process_that_never_saw_the_guard_knows_its_groups(tmp_path):
    from concurrent.futures import ProcessPoolExecutor

    with make(ledger=tmp_path / "guard.db") as guard, ProcessPoolExecutor(1) as pool:
        told = pool.submit(guard.evaluate, guesses(0.7), prior=0.7).result()
        assert guard.evaluate(guesses(0.7), prior=0.7) == told._replace(replayed=True)


def test_the_next_rows_need_groups_too(tmp_path):
    with make(ledger=tmp_path / "guard.db") as guard:
        refuses(InputError, r"pass Rows\(X, y, groups=", guard.rotate, None, 1 - LABELS, early=True)
        fresh = guard.rotate(Rows(None, 1 - LABELS, groups=USERS // 2), early=True, allow={"vacuous"}).guard
        assert fresh.plan.rows == len(np.unique(USERS // 2))
        fresh.close()


@for_each(
    ("groups", "words"),
    [
        (USERS[:-1], "must have shape"),
        (np.where(USERS == 3, np.nan, USERS), "some are missing"),
        ([None, *USERS[1:]], "some are missing"),
        (USERS[:, None] * np.ones(2), "must have shape"),
    ],
)
def test_groups_that_are_none_are_refused_in_words(groups, words):
    refuses(InputError, words, make, groups=groups)


def test_metrics_and_weights_that_do_not_go_with_groups_are_refused():
    for metric in ("roc_auc", "f1", "balanced_accuracy", "recall"):
        refuses(InputError, "must be a mean over rows", make, metric=metric, threshold=None)
    refuses(InputError, "leave one of them out", make, sample_weight=np.arange(ROWS) % 3)


def test_a_loss_of_ones_own_is_averaged_by_groups():
    own = Metric(
        name="own",
        lower=0,
        upper=2,
        greater_is_better=False,
        loss=lambda y, p: np.minimum(np.abs(p - y), 2.0),
    )
    with made_guard(
        None, np.zeros(ROWS), metric=own, groups=USERS, queries=5, charges=1, seed=1, vacuous=True
    ) as guard:
        told = np.linspace(0, 2, ROWS)
        assert guard.final(told).value == pytest.approx(mean_of_groups(told), abs=1e-6)
