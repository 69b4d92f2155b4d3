"""Rows of one user are no independent draws, and still each of them may count, up to a largest size."""

import math
import pickle

import numpy as np
import pytest
from cases import for_each

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.certainty import (
    THEORY,
)
from reusable_holdout.errors import Halted, InputError, LedgerMismatchError
from reusable_holdout.metrics import GRID, accuracy, mae, resolve_metric, rmse
from reusable_holdout.metrics.weights import Groups

LARGEST = 4
SIZES = np.random.default_rng(0).integers(1, 7, 400)  # a third of the groups are larger
USERS = np.repeat(np.arange(400), SIZES)
ROWS = len(USERS)
LABELS = np.random.default_rng(1).integers(0, 2, ROWS)
KEPT = Groups(USERS, ROWS, LARGEST).kept
WORTH = np.minimum(SIZES, LARGEST).sum() / LARGEST
SETTINGS = {"queries": 40, "charges": 3, "estimate": 0.8, "spread": 0.3, "seed": 1, "vacuous": True}


def make(y=LABELS, groups=USERS, **changes):
    return ReusableHoldout(None, y, groups=groups, **{"largest_group": LARGEST, **SETTINGS, **changes})


def guesses(accuracy, seed=0):
    """Right about most of a user's rows, or wrong about most: large users more often right."""
    rng = np.random.default_rng(seed)
    users = (rng.random(400) < accuracy + 0.1 * (SIZES > 4))[USERS]
    return np.where(users ^ (rng.random(ROWS) < 0.05), LABELS, 1 - LABELS)


def mean_over_rows(each):
    return each[KEPT].mean()


# ---- which rows count


def test_of_larger_groups_so_many_rows_count_and_of_others_all():
    assert np.bincount(USERS[KEPT]).tolist() == np.minimum(SIZES, LARGEST).tolist()
    assert len(set(KEPT)) == len(KEPT) < ROWS
    assert Groups(USERS, ROWS, 6).kept.tolist() == list(range(ROWS))


def test_neither_the_names_nor_the_order_in_a_group_choose_the_rows():
    """The first of a group's rows is kept as often as any other: as by lot, whatever the order of the file is."""
    groups = Groups(np.repeat(np.arange(3_000), 6), 18_000, 2)
    places = np.bincount(groups.kept % 6)
    assert places.sum() == 6_000
    assert (abs(places - 1_000) < 6 * math.sqrt(1_000 * 2 / 3)).all()
    renamed = Groups([f"u{7 * name % 3_001}" for name in np.repeat(np.arange(3_000), 6)], 18_000, 2)
    assert renamed.kept.tolist() == groups.kept.tolist()


def test_more_rows_are_kept_of_a_group_if_more_may_count():
    for largest in range(1, 7):
        assert set(Groups(USERS, ROWS, largest).kept) <= set(Groups(USERS, ROWS, largest + 1).kept)


def test_which_rows_count_owes_nothing_to_labels_and_predictions():
    kept = [
        accuracy().bind(y, classes=[0, 1], groups=USERS, largest_group=LARGEST).groups.kept
        for y in (LABELS, 1 - LABELS)
    ]
    assert kept[0].tolist() == kept[1].tolist() == KEPT.tolist()


# ---- what is measured


@for_each("metric", ["accuracy", "brier", "log_loss", "zero_one_loss", "neg_brier_score"])
def test_a_score_is_the_mean_over_the_rows_that_count(metric):
    bound = resolve_metric(metric).bind(LABELS, groups=USERS, largest_group=LARGEST)
    chances = np.random.default_rng(2).random(ROWS)
    asked = chances if bound.metric.response != "labels" else (chances > 0.5).astype(int)
    alone = np.array(
        [resolve_metric(metric).measure(LABELS[[row]], asked[[row]], classes=[0, 1]) for row in range(ROWS)]
    )
    span, lower = bound.metric.upper - bound.metric.lower, bound.metric.lower
    prepared = bound.prepare(asked)
    found = lower + int(bound.score(prepared[None])[0]) / GRID * span
    assert found == pytest.approx(mean_over_rows(alone), abs=1e-6 * span)
    assert bound.statistic.value(prepared) == pytest.approx(mean_over_rows(alone))
    assert bound.score_of_terms(bound.row_terms(prepared)) == int(bound.score(prepared[None])[0])


def test_no_group_changes_a_score_by_more_than_is_declared():
    users, labels = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 1, 0])
    for metric in (accuracy(), mae(lower=0.0, upper=1.0)):
        bound = metric.bind(labels, groups=users, largest_group=3)
        most, changes = math.ceil(bound.sensitivity * GRID), []
        assert bound.sensitivity == pytest.approx(3 / 6)
        for asked in np.ndindex((2,) * 6):
            before = int(bound.score(bound.prepare(np.array(asked))[None])[0])
            for user in range(3):
                other = np.where(users == user, 1 - np.array(asked), asked)
                changes.append(abs(int(bound.score(bound.prepare(other)[None])[0]) - before))
        assert most - 2 <= max(changes) <= most


def test_groups_of_one_size_count_as_they_do_once_each():
    users = np.repeat(np.arange(200), 3)
    y = LABELS[:600]
    rows, once = (accuracy().bind(y, groups=users, largest_group=largest) for largest in (3, None))
    prepared = once.prepare_many([guesses(0.8)[:600], guesses(0.3)[:600]])
    assert rows.score(prepared).tolist() == once.score(prepared).tolist()
    assert (rows.effective_rows, rows.sensitivity) == (200, once.sensitivity)
    assert set(rows.relative_weights) == {1.0}


# ---- the guard


def test_what_the_rows_are_worth_is_told_rounded_down_and_priced():
    with make() as guard:
        counts = guard._view.counts
        assert guard.plan.rows == guard._holdout.bound.effective_rows <= WORTH
        assert guard.plan.shared.told_before == THEORY.counts.nats(counts.place) > 0.0
        assert counts.prevalence == []
    with make(sample_weight=SIZES[USERS] == 1, largest_group=1) as alone:
        assert (alone._view.counts, alone.plan.rows) == (None, (SIZES == 1).sum())


def test_sizes_in_the_same_cell_have_the_same_public_numbers():
    other = SIZES.copy()
    other[[0, 1]] = 1, 5
    users = np.repeat(np.arange(400), other)
    with make() as one, make(np.zeros(len(users), int), users, classes=[0, 1]) as two:
        assert one._view.counts == two._view.counts
        assert one.plan == two.plan


def test_a_final_shows_what_the_rows_leave():
    with make() as guard:
        told = guesses(0.8)
        answer = guard.final_predictions(told)
    assert answer.value == pytest.approx(mean_over_rows(told == LABELS), abs=1e-8)
    assert answer.low < answer.value < answer.high
    by_size = ReusableHoldout(None, LABELS, groups=USERS, **SETTINGS).final_predictions(told)
    assert abs(by_size.value - answer.value) > 0.002  # each user counts once there: another number


def test_charged_answers_and_reveals_have_the_bound_of_the_rows_that_were_told():
    with make(reveals=2) as guard:
        off = guard.evaluate_predictions(guesses(0.3), prior=0.8)
        assert off.charged
        bound = guard._ways.policy.certificate.bound
        assert (bound.family, bound.rows) == ("bounded", guard.plan.rows)
        assert bound.sum_of_squares == pytest.approx(1 / guard.plan.rows)
        assert off.low < mean_over_rows(guesses(0.3) == LABELS) < off.high
        near = guard.evaluate_predictions(guesses(0.8), prior=0.82)
        assert not near.charged
        told = guard.reveal_predictions(guesses(0.7), prior=0.72)
        assert told.low < mean_over_rows(guesses(0.7) == LABELS) < told.high
        compared = guard.compare_predictions(guesses(0.8), guesses(0.5, 1), prior=0.3)
        assert compared.low <= 0.3 <= compared.high or compared.charged


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"threshold": 0.2, "spread": None},
        {"policy": "ladder", "spread": None},
        {"policy": "gate"},
        {"policy": "guess-and-check"},
        {"mechanism": "target-charging", "noise_scale": 1e-3},
        {"final_noise": 1e-3},
        {"metric": "brier"},
    ],
    ids=str,
)
def test_every_way_to_ask_is_answered_and_its_ledger_is_sound(settings, tmp_path):
    with make(ledger=tmp_path / "guard.db", reveals=1, choices=[2], **settings) as guard:
        told = [
            guesses(0.8, seed) * 1.0 if guard.metric.name == "brier" else guesses(0.8, seed)
            for seed in range(5)
        ]
        prior = None if guard.policy == "ladder" else 0.75
        try:
            guard.evaluate_predictions(told[0], prior=prior)
            guard.evaluate_many(told[:3], None if prior is None else [0.7, 0.8, 0.2])
            guard.reveal_predictions(told[3], prior=0.8)
            guard.choose_predictions(told[:2], [0.8, 0.7])
        except Halted:
            pass
        last = guard.final_predictions(told[4])
        assert last.low <= mean_over_rows((told[4] == LABELS) ^ (guard.metric.name == "brier")) <= last.high
    verify(tmp_path / "guard.db").check()


def test_a_guard_is_resumed_pickled_and_rotated_with_its_largest_size(tmp_path):
    with make(ledger=tmp_path / "guard.db") as guard:
        first = guard.evaluate_predictions(guesses(0.8), prior=0.8)
    with ReusableHoldout.open(tmp_path / "guard.db", None, LABELS, groups=USERS, seed=1) as again:
        assert again.evaluate_predictions(guesses(0.8), prior=0.8) == first._replace(replayed=True)
        fresh = again.rotate(None, 1 - LABELS, groups=USERS, early=True, vacuous=True).guard
        assert fresh._holdout.bound.groups.largest == LARGEST
        other = fresh.rotate(
            None, LABELS[::-1], groups=USERS, largest_group=2, early=True, vacuous=True
        ).guard
        assert other._holdout.bound.groups.largest == 2
        other.close()
    with make(ledger=tmp_path / "pickled.db", seed=None) as guard:
        assert pickle.loads(pickle.dumps(guard)).plan == guard.plan


def test_a_ledger_belongs_to_its_largest_size_and_groups(tmp_path):
    make(ledger=tmp_path / "guard.db").close()
    with pytest.raises(LedgerMismatchError, match="largest_group is 4 in the ledger, and 3 was asked for"):
        make(ledger=tmp_path / "guard.db", largest_group=3)
    with pytest.raises(LedgerMismatchError, match="largest_group is 4 in the ledger, and None was asked for"):
        make(ledger=tmp_path / "guard.db", largest_group=None)
    for other in (None, np.arange(ROWS), np.sort(USERS % 300)):
        with pytest.raises(LedgerMismatchError, match="groups is"):
            ReusableHoldout.open(tmp_path / "guard.db", None, LABELS, groups=other, seed=1)


def test_other_metrics_of_the_same_rows_pay_for_their_sizes_once_and_slices_for_their_own(tmp_path):
    half = np.arange(ROWS) < ROWS // 2
    with make(reveals=3, ledger=tmp_path / "guard.db") as guard:
        brier = guard.on("brier", vacuous=True)
        assert (brier.plan.rows, brier._view.tells) == (guard.plan.rows, False)
        assert guard._state().nats == 0.0
        part = guard.on(sample_weight=half, vacuous=True)
        again = guard.on("brier", sample_weight=half, vacuous=True)
        assert (part._view.tells, again._view.tells) == (True, False)
        assert part.plan.rows == again.plan.rows < guard.plan.rows
        assert guard._state().nats == THEORY.counts.nats(part._view.counts.place)
        kept = np.intersect1d(np.flatnonzero(half), KEPT)
        answer = part.final_predictions(guesses(0.8))
        assert answer.value == pytest.approx((guesses(0.8) == LABELS)[kept].mean(), abs=0.02)
    verify(tmp_path / "guard.db").check()


def test_a_slice_without_room_to_tell_its_sizes_is_refused():
    with (
        make(reveals=0, choices=(), charges=5) as guard,
        pytest.raises(InputError, match="telling group sizes can cost"),
    ):
        guard.on(sample_weight=np.arange(ROWS) < ROWS // 2, vacuous=True)


# ---- refusals


@for_each("largest", [0, -1, 2.5, True, "20", math.nan])
def test_a_largest_size_that_is_none_is_refused_in_words(largest):
    with pytest.raises(InputError, match="largest_group must be a whole number of rows"):
        make(largest_group=largest)


@for_each(
    ("changes", "words"),
    [
        ({"groups": None}, "largest_group is of groups; got no groups="),
        (
            {"metric": rmse(lower=0.0, upper=1.0), "spread": None},
            "with largest_group a metric must be a plain mean",
        ),
        ({"metric": "roc_auc", "spread": None}, "with largest_group a metric must be a plain mean"),
        ({"sample_weight": np.arange(ROWS) % 3}, "each of its rows; got several numbers"),
        ({"largest_group": ROWS + 1}, "there must be at least largest_group rows"),
        ({"policy": "parameter-free-ladder", "spread": None}, "plain mean over all rows"),
    ],
)
def test_what_does_not_go_with_it_is_refused_in_words(changes, words):
    with pytest.raises(InputError, match=words):
        make(**changes)
