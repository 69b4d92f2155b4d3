"""A guard whose plan says nothing is refused, unless its owner insists."""

import numpy as np
import pytest
from cases import for_each, refuses
from made_guards import made_guard

from reusable_holdout import KeptLessWarning, ReusableHoldout
from reusable_holdout.errors import PlanError
from reusable_holdout.metrics import mae

ROWS = 5_000
LABELS = (np.random.default_rng(0).random(ROWS) < 0.22).astype(int)
FEW, SOME = LABELS[:60], LABELS[:1_500]
SAYS = {"queries": 50, "charges": 3, "seed": 1}
REFUSED = "a quarter of the metric's range"


def files(folder):
    return sorted(path.name for path in folder.iterdir())


# ---- a guard


def test_a_guard_that_says_nothing_is_refused_before_anything_is_written(tmp_path):
    plan = {"queries": 50, "charges": 3, "ledger": tmp_path / "guard.db"}
    with pytest.raises(
        PlanError, match=rf"{REFUSED}, 1, to say anything; it would be 0\.\d+; it needs \d+ rows"
    ) as refused:
        made_guard(None, FEW, **plan)
    assert files(tmp_path) == []
    enough = refused.value.nearest["rows"]
    made_guard(None, LABELS[:enough], **plan).close()
    assert files(tmp_path) == ["guard.db", "guard.db.key"]


def test_an_owner_who_insists_has_one():
    with made_guard(None, FEW, vacuous=True, estimate=0.99, **SAYS) as guard:
        assert guard.plan.vacuous
        assert 0.99 - guard.plan.tolerance < guard.evaluate(FEW, prior=0.99).low < 0.8


def test_the_range_is_that_of_the_metric():
    targets = np.linspace(0.0, 10.0, 400)
    plan = {
        "metric": mae(lower=0, upper=10),
        "queries": 20,
        **SAYS,
        "spread": 1.0,
        "estimate": 1.0,
        "charges": None,
    }
    made_guard(None, targets, tolerance=2.5, **plan).close()
    with pytest.raises(
        PlanError, match=r"range, 10, to say anything; it would be 2\.51; it needs a tolerance of 2\.5"
    ):
        made_guard(None, targets, tolerance=2.51, **plan)


@for_each("gates", [False, True])
def test_plans_for_gates_are_refused_too(gates):
    refuses(PlanError, REFUSED, made_guard, None, FEW, gates=gates, **SAYS)
    made_guard(None, FEW, gates=gates, vacuous=True, **SAYS).close()


# ---- resumed


def test_a_guard_that_is_resumed_is_not_refused_and_its_ledger_says_that_its_owner_insisted(tmp_path):
    ledgers = [tmp_path / name for name in ("insisted.db", "said.db")]
    with made_guard(None, FEW, ledger=ledgers[0], vacuous=True, **SAYS) as made:
        made.on("brier", allow={"vacuous"})
        assert "vacuous" not in made.plan.record()
        assert made._view.ledger.configuration().count('"allow":["vacuous"]') == 1
    with ReusableHoldout.open(ledgers[0], None, FEW, seed=1) as opened:
        assert opened.plan.vacuous
        assert opened.on("brier").plan.vacuous
    with made_guard(None, LABELS, ledger=ledgers[1], vacuous=True, **SAYS) as insisted:
        plan = insisted.plan
    with made_guard(None, LABELS, ledger=ledgers[1], **SAYS) as resumed:
        assert resumed.plan == plan


# ---- rotated


def test_a_rotation_that_says_nothing_is_refused_and_releases_nothing(tmp_path):
    fresh = 1 - FEW
    with made_guard(None, SOME, ledger=tmp_path / "guard.db", **SAYS) as guard:
        refuses(PlanError, REFUSED, guard.rotate, None, fresh, charges=3, early=True)
        assert guard.epoch == 1
        assert not guard.evaluate(SOME, prior=1.0).charged
        rotated = guard.rotate(None, fresh, charges=3, early=True, allow={"vacuous"}).guard
        assert (rotated.epoch, rotated.plan.vacuous) == (2, True)
        rotated.close()


# ---- another metric or slice


def test_a_slice_that_says_nothing_is_refused_and_nothing_is_written():
    few = np.arange(ROWS) < 60
    with made_guard(None, LABELS, **SAYS) as guard:
        with pytest.raises(
            PlanError, match=f"{REFUSED}.*take more rows, fewer queries or charges, or another metric"
        ):
            guard.on(sample_weight=few)
        assert len(guard.history()) == 0
        women = guard.on(sample_weight=few, allow={"vacuous"})
        assert women.plan.vacuous
        assert guard.on(sample_weight=few).view == women.view  # opened before


ASKED = {"queries": 100, "charges": 4, "reveals": 3, "estimate": 0.87, "seed": 0}


def labels_of(positives):
    return (np.random.default_rng(5).permutation(ROWS) < positives).astype(int)


@for_each(
    "asked",
    [
        {"metric": "roc_auc", "tolerance": 0.001},
        {"metric": "f1", "tolerance": 0.01, "prevalence": 0.3},
        {"metric": "average_precision", "prevalence": 0.001},
        {"metric": "roc_auc", "prevalence": 0.002},
        {"metric": "roc_auc", "sample_weight": np.arange(ROWS) < 200, "tolerance": 0.02},
    ],
)
def test_what_refuses_another_metric_owes_nothing_to_the_class_counts(asked):
    def words(positives):
        with made_guard(None, labels_of(positives), **ASKED) as guard:
            refused = refuses(PlanError, "", guard.on, **asked)
            assert len(guard.history()) == 0
            return str(refused), refused.nearest

    assert words(1_100) == words(2_500) == words(150)


def test_counts_that_keep_no_tolerance_as_expected_are_told_before_that_is_said():
    with made_guard(None, labels_of(150), **ASKED) as guard:
        with pytest.warns(
            KeptLessWarning, match=r"cost 4\.8 nats, allow less than was wished: no plan keeps"
        ):
            auc = guard.on("recall", tolerance=0.12)
        assert guard.history()["way"].tolist() == ["view"]
        assert guard.on("recall", tolerance=0.12).view == auc.view
        assert auc.plan.tolerance > 0.12
        assert guard._state().nats == auc._view.facts.counts.nats  # paid once


def test_counts_may_leave_a_plan_that_says_nothing_and_it_says_so():
    with made_guard(None, labels_of(25), **ASKED) as guard:
        with pytest.warns(KeptLessWarning, match="which says nothing"):
            auc = guard.on("recall", prevalence=0.5)
        assert auc.plan.vacuous
