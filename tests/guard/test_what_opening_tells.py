"""Views are opened with metrics, slices and bounds of anybody's choice: what that tells of the labels is paid for."""

import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import GUARD
from made_guards import made_guard

from reusable_holdout import KeptLessWarning, verify
from reusable_holdout.errors import InputError, ModelError, PlanError
from reusable_holdout.metrics import mae, mse, negated, quantile_loss, r2, rmse

ROWS = 1_200
LABELS = (np.random.default_rng(5).random(ROWS) < 0.3).astype(int)
LABELS[:300] = 0  # a slice of one class
EVEN = np.where(np.arange(ROWS) < 300, np.arange(ROWS) % 2, LABELS)  # the same, of two
OF_ONE = np.arange(ROWS) < 300
PLAN = {
    "queries": 40,
    "charges": 3,
    "estimate": 0.7,
    "seed": 1,
    "reveals": 2,
    "classes": [0, 1],
    "vacuous": True,
}
BY_EVIDENCE = ["f1", "precision", "jaccard", "balanced_accuracy", "average_precision"]
BY_COUNTS = ["recall", "roc_auc", "f1_macro", "matthews_corrcoef"]


def make(y=LABELS, ledger=None, **changes):
    return made_guard(None, y, ledger=ledger, **(PLAN | changes))


def opened(guard, metric, chosen, **more):
    """All that is visible of an attempt to open a view."""
    try:
        view = guard.on(metric, sample_weight=chosen, **more, allow={"vacuous"})
    except (InputError, PlanError) as error:
        return type(error), str(error), len(guard.history())
    prices = [view.price(kind) for kind in ("evaluate", "reveal", "choose", "final")]
    return repr(view), view.plan.record(), str(view.plan), prices, view.final_width, len(guard.history())


@for_each("metric", [*BY_EVIDENCE, *BY_COUNTS])
def test_no_pair_of_rows_says_whether_its_labels_are_alike(metric):
    """A slice of two rows that is refused if they are alike would tell all labels, pair by pair."""
    ones, zeros = np.flatnonzero(LABELS == 1), np.flatnonzero(LABELS == 0)
    pairs = [ones[:2], zeros[:2], [zeros[0], ones[0]]]
    found = [opened(make(), metric, np.isin(np.arange(ROWS), pair)) for pair in pairs]
    assert found[0] == found[1] == found[2]


@pytest.mark.long(*GUARD)
@for_each("changes", [{}, {"tolerance": 1e-3}])
@for_each("metric", BY_EVIDENCE)
def test_a_view_by_evidence_looks_the_same_whatever_the_labels_are(metric, changes):
    assert opened(make(LABELS), metric, OF_ONE, prevalence=0.2, **changes) == opened(
        make(EVEN), metric, OF_ONE, prevalence=0.2, **changes
    )


def test_a_guard_of_a_ratio_looks_the_same_whatever_the_labels_are():
    rare = np.where(np.arange(ROWS) % 40, 0, 1)
    for metric in BY_EVIDENCE:
        seen = []
        for y in (LABELS, rare, 1 - rare):
            guard = make(y, metric=metric)
            prices = [guard.price(kind) for kind in ("evaluate", "reveal", "choose", "final")]
            seen.append((repr(guard), guard.plan.record(), str(guard.plan), prices, guard.final_width))
        assert seen[0] == seen[1] == seen[2]


@for_each("metric", [*BY_EVIDENCE, *BY_COUNTS])
def test_a_metric_that_is_not_defined_on_a_slice_fails_when_it_is_asked(metric, tmp_path):
    predictions = np.random.default_rng(2).integers(0, 2, ROWS)
    with make(ledger=tmp_path / f"{metric}.db") as guard:
        part = guard.on(metric, sample_weight=OF_ONE, tolerance=1.0, allow={"vacuous"})
        left = part.charges_left
        for ask in (
            lambda: part.evaluate(predictions, prior=0.6),
            lambda: part.evaluate([1 - predictions], prior=[0.4]),
        ):
            refuses(ModelError, r"took (one|a) charge", ask)
        assert part.charges_left == left - 2
        refuses(ModelError, "nats", part.reveal, predictions, prior=0.6)
        refuses(ModelError, "1 of 2", part.final, predictions, also=[guard])
    assert verify(tmp_path / f"{metric}.db").sound


@for_each(
    "bounded",
    [
        *(mae, mse, rmse, lambda **given: r2(variance=4, **given)),
        *(lambda **given: quantile_loss(quantile=0.5, **given), lambda **given: negated(mae(**given))),
    ],
)
def test_bounds_that_targets_do_not_keep_say_nothing_of_them(bounded):
    """Bisection of the bound at which one row is refused would tell its target to the last digit."""
    targets = np.linspace(0, 10, ROWS)
    metric, low, high = bounded(lower=0, upper=5), np.arange(ROWS) < 300, np.arange(ROWS) >= 900
    span = metric.upper - metric.lower
    made = [make(targets, metric=mae(lower=0, upper=10), estimate=2, classes=None) for _ in range(2)]
    found = [
        opened(one, metric, chosen, tolerance=span) for one, chosen in zip(made, (low, high), strict=True)
    ]
    assert found[0] == found[1]
    guesses = 5 - targets / 2
    for chosen in (low, high):
        truth = metric.measure(np.clip(targets, 0, 5), guesses, sample_weight=chosen)
        guard = make(targets, metric=mae(lower=0, upper=10), estimate=2, classes=None)
        part = guard.on(metric, sample_weight=chosen, tolerance=span, allow={"vacuous"})
        answer = part.reveal(guesses, prior=truth)
        assert answer.low <= truth <= answer.high


def test_classes_are_not_made_of_real_targets():
    """They would be all the values that there are."""
    guard = make(np.arange(ROWS), metric=mae(lower=0, upper=ROWS), estimate=2, classes=None)
    refuses(InputError, "must have labels of the rows", guard.on, "accuracy")


def test_class_counts_that_do_not_keep_a_tolerance_are_told_and_paid_for_and_the_metric_is_opened(tmp_path):
    few = (np.arange(ROWS) < 500) | (np.cumsum(LABELS) < 40)
    few &= (LABELS == 0) | (np.cumsum(LABELS) < 40)
    wish = {"sample_weight": few, "tolerance": 0.3, "prevalence": 0.5, "allow": {"vacuous"}}
    with make(ledger=tmp_path / "guard.db") as guard:
        with pytest.warns(
            KeptLessWarning, match=r"cost \d\.\d nats, allow less.*a tolerance of 0\.3"
        ) as caught:
            part = guard.on("recall", **wish)
        assert [warning.filename for warning in caught] == [__file__]
        told = guard.history()
        assert told["way"].tolist() == ["view"]
        assert told["nats"].sum() > 1
        assert part.plan.tolerance > 0.3
        again = guard.on("recall", **wish)
        assert (again.view, again.plan) == (part.view, part.plan)
        assert len(guard.history()) == 1
        guard.evaluate(LABELS, prior=1.0)
        again.evaluate(LABELS, prior=1.0)
    assert verify(tmp_path / "guard.db").sound


def test_what_is_guessed_of_the_classes_refuses_without_telling_anything():
    found = [opened(make(y), "recall", OF_ONE, tolerance=1e-4, prevalence=0.4) for y in (LABELS, EVEN)]
    assert found[0] == found[1]
    assert found[0][0] is PlanError
    assert found[0][2] == 0
