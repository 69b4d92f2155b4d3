"""Final standings with several metrics: one ranks, the others are shown, and all intervals hold together."""

import csv
import io
import itertools
import math

import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import GUARD
from reusable_holdout_leaderboard import ClosedError, Rules
from reusable_holdout_leaderboard.competition.final import check_also, final_of
from reusable_holdout_leaderboard.files.forms import Expected, packed_fresh
from reusable_holdout_leaderboard.files.labels import Labels
from reusable_holdout_leaderboard.store.lists import Finalist
from reusable_holdout_leaderboard.web.tables import final_csv

from reusable_holdout.metrics import resolve_metric

ALSO = ("f1", "balanced_accuracy")


def standings(fresh, sent, *, classes=(0, 1), **changes):
    """Return the final standings of one submission of each team."""
    rules = Rules(slug="a", title="A", classes=classes, **changes)
    expected = Expected(
        ids=None,
        rows=len(fresh),
        id_column=None,
        columns=("prediction",),
        response=rules.made_metric().response,
        classes=classes,
    )
    entered = [Finalist(number, f"T{number}", number, 0.5, 0.0) for number in range(len(sent))]
    return final_of(
        entered,
        {number: packed_fresh(expected.canonical(one)) for number, one in enumerate(sent)},
        fresh=Labels(None, np.asarray(fresh)),
        metrics=[rules.made_metric(), *rules.made_also()],
        rules=rules,
        expected=expected,
    )


# ---- rules


def test_rules_name_other_metrics_of_the_same_predictions():
    rules = Rules(slug="a", title="A", also=ALSO).check()
    assert [metric.name for metric in rules.made_also()] == list(ALSO)
    assert Rules.from_json(rules.to_json()) == rules
    bounded = {"metric": "rmse", "metric_parameters": {"lower": 0.0, "upper": 9.0}, "also": ("mae", "mse")}
    assert [one.name for one in Rules(slug="a", title="A", **bounded).made_also()] == ["mae", "mse"]


# ---- a competition


def test_the_final_shows_all_metrics_of_the_submissions_that_one_ranks(
    make_competition, send_whole, fresh_labels_file
):
    competition = make_competition(also=ALSO, fresh=fresh_labels_file)
    for number, accuracy in enumerate((0.9, 0.7)):
        send_whole(competition, f"Team {number}", accuracy, accuracy)
    competition.freeze()
    first, second = competition.final_standings()
    assert (first.team, second.team) == ("Team 0", "Team 1")
    for one in (first, second):
        assert list(one.also) == list(ALSO)
        for found in one.also.values():
            assert found["low"] < found["value"] < found["high"]
    assert competition.final_standings() == [first, second]
    table = list(csv.DictReader(io.StringIO(final_csv(competition).decode())))
    assert float(table[1]["f1_low"]) == second.also["f1"]["low"]
    assert table[0]["balanced_accuracy"] == str(first.also["balanced_accuracy"]["value"])
    refuses(ClosedError, "only description and title", competition.change_rules, {"also": []})


def test_what_is_said_of_other_metrics_does_not_depend_on_the_fresh_labels():
    """Whether each class has a fresh row is told by no refusal: the metric is left out of the final."""
    sent = [np.arange(40) % 2]
    for fresh in (np.arange(40) % 2, np.zeros(40, int), np.ones(40, int)):
        check_also(Rules(slug="a", title="A", classes=(0, 1), also=ALSO), Labels(None, fresh))
    (both,) = standings(np.arange(40) % 2, sent, also=ALSO)
    (one,) = standings(np.zeros(40, int), sent, also=ALSO)
    assert list(both.also) == list(ALSO)
    assert "balanced_accuracy" not in one.also
    assert one.value == 0.5


# ---- the promise


def test_another_metric_makes_all_intervals_a_little_wider():
    rng = np.random.default_rng(0)
    fresh = rng.integers(0, 2, 4_000)
    sent = [np.where(rng.random(4_000) < 0.8, fresh, 1 - fresh) for _ in range(5)]
    alone, beside = standings(fresh, sent), standings(fresh, sent, also=ALSO)
    for one, other in zip(alone, beside, strict=True):
        assert one.value == other.value
        assert other.low < one.low < one.high < other.high
        assert other.high - other.low < 1.15 * (one.high - one.low)


def test_f1_is_certified_by_its_rows_not_by_class_counts():
    rng = np.random.default_rng(1)
    fresh = (rng.random(5_000) < 0.2).astype(int)
    (one,) = standings(fresh, [np.where(rng.random(5_000) < 0.9, fresh, 1 - fresh)], also=("f1",))
    bound = resolve_metric("f1").bind(fresh)
    level = math.log(0.05 / 4)
    by_counts = math.sqrt(-0.5 * level * bound.sum_of_squares)
    assert one.also["f1"]["high"] - one.also["f1"]["low"] < 2 * by_counts


def test_fresh_targets_beyond_the_bounds_are_clipped_at_the_final_too():
    """It would fail on the last day else; and what the rules say of them would tell the largest target."""
    rng = np.random.default_rng(6)
    fresh, bounds = rng.normal(0.5, 0.4, 1_000), {"lower": 0.0, "upper": 1.0}
    assert fresh.min() < 0.0 and fresh.max() > 1.0  # noqa: PT018
    sent = [fresh + 0.1, np.full(1_000, 0.5)]
    for metric, also in (("mae", ("rmse", "mse")), ("rmse", ("mae",)), ("quantile_loss", ())):
        given = {"metric": metric, "metric_parameters": bounds, "also": also, "classes": None}
        assert standings(fresh, sent, **given) == standings(np.clip(fresh, 0.0, 1.0), sent, **given)


def test_a_final_of_many_graded_losses_is_bounded_without_their_spread(monkeypatch):
    rng = np.random.default_rng(4)
    fresh = rng.integers(0, 2, 2_000)
    sent = [np.clip(0.9 * fresh + 0.1 * rng.random(2_000), 0.0, 1.0)]
    (narrow,) = standings(fresh, sent, metric="brier")
    monkeypatch.setattr("reusable_holdout_leaderboard.competition.final._MOST_TERMS", 1_999)
    (wide,) = standings(fresh, sent, metric="brier")
    assert wide.value == narrow.value
    assert wide.low < narrow.low < narrow.high < wide.high


@for_each(("loss", "gain"), [("brier", "neg_brier_score"), ("log_loss", "neg_log_loss")])
def test_the_interval_of_a_loss_is_the_mirror_image_of_its_gains(loss, gain, monkeypatch):
    rng = np.random.default_rng(5)
    fresh = rng.integers(0, 2, 1_000)
    sent = [np.clip(0.9 * fresh + 0.1 * rng.random(1_000), 0.01, 0.99), np.full(1_000, 0.4)]
    for most_terms in (20_000_000, 999):
        monkeypatch.setattr("reusable_holdout_leaderboard.competition.final._MOST_TERMS", most_terms)
        lost, gained = (standings(fresh, sent, metric=name) for name in (loss, gain))
        for one, other in zip(lost, gained, strict=True):
            assert one.low < one.value < one.high
            assert (one.team, one.rank) == (other.team, other.rank)
            assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))


@pytest.mark.long(*GUARD, "integrations/reusable_holdout_leaderboard/competition")
@for_each(("rows", "positive", "confidence"), [(5, 0.5, 0.5), (6, 0.3, 0.5), (7, 0.4, 0.7)])
def test_all_intervals_of_all_metrics_hold_together(rows, positive, confidence):
    """Enumerate every holdout of a few rows; each row is positive with some probability."""
    sent = [np.arange(rows) % 2, (np.arange(rows) < rows // 2).astype(int)]
    truths = [_truths(one, positive) for one in sent]
    missed = 0.0
    for drawn in itertools.product((0, 1), repeat=rows):
        if len(set(drawn)) < 2:
            continue  # without rows of one class there is no balanced accuracy, and no final
        found = sorted(
            standings(np.array(drawn), sent, also=ALSO, confidence=confidence), key=lambda one: one.team
        )
        inside = all(
            low - 1e-12 <= truth <= high + 1e-12
            for one, true in zip(found, truths, strict=True)
            for truth, (low, high) in zip(true, _ends(one), strict=True)
        )
        chance = math.prod(positive if label else 1.0 - positive for label in drawn)
        missed += 0.0 if inside else chance
    assert missed <= 1.0 - confidence


def _ends(one):
    return [(one.low, one.high), *((found["low"], found["high"]) for found in one.also.values())]


def _truths(predicted, positive):
    """Return accuracy, F1 and balanced accuracy if label and features are independent."""
    said = predicted.mean()
    accuracy = said * positive + (1.0 - said) * (1.0 - positive)
    return accuracy, 2.0 * said * positive / (said + positive), 0.5
