"""Rows that are kept for the final: nothing before it reads them, and no charge widens what it says of them."""

import math
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from cases import for_each
from guard.forging import rewrite
from sklearn.linear_model import LogisticRegression

from reusable_holdout import (
    InputError,
    LedgerMismatchError,
    Metric,
    ParquetRows,
    Plan,
    ReusableHoldout,
    verify,
)
from reusable_holdout.guard.inputs import kept_rows
from reusable_holdout.validity import ConfidenceBound, EvidenceRows

ROWS, EXAM = 2_000, 400
LABELS = np.random.default_rng(0).integers(0, 2, ROWS)
KEPT = kept_rows(ROWS, EXAM)
SETTINGS = {"queries": 40, "charges": 3, "threshold": 0.1, "noise_scale": 0.0, "estimate": 0.7, "seed": 1}


def predictions(asked, exam):
    """Predictions of exactly these accuracies on the rows that are asked and on those that are kept."""
    right = np.empty(ROWS, dtype=bool)
    for rows, accuracy in ((~KEPT, asked), (KEPT, exam)):
        right[rows] = np.arange(rows.sum()) < round(accuracy * rows.sum())
    return np.where(right, LABELS, 1 - LABELS)


def make(y=LABELS, X=None, **changes):
    return ReusableHoldout(X, y, **{"exam": 0.2, "vacuous": True, **SETTINGS, **changes})


def ends(value, rows, *, length):
    bound = ConfidenceBound("binomial", rows=rows, sum_of_squares=1 / rows)
    level = math.log(0.05 / 2) - length
    return bound.lower(value, log_level=level), bound.upper(value, log_level=level)


# ---- which rows


@for_each("rows", [2, 10, 1_000])
def test_as_many_rows_are_kept_as_are_asked_for_and_always_the_same(rows):
    for count in (1, rows // 2):
        kept = kept_rows(rows, count)
        assert kept.sum() == count
        assert np.array_equal(kept, kept_rows(rows, count))


def test_they_are_spread_over_all_rows():
    each = kept_rows(100_000, 10_000).reshape(10, -1).sum(axis=1)
    assert abs(each - 1_000).max() < 5 * math.sqrt(900)


def test_they_are_those_they_were_when_the_ledger_was_made():
    assert np.flatnonzero(kept_rows(20, 5)).tolist() == [0, 4, 5, 7, 12]


# ---- nothing before the final reads them


@pytest.fixture
def other():
    """The same rows with the labels of the exam's turned round."""
    return np.where(KEPT, 1 - LABELS, LABELS)


@for_each("policy", ["thresholdout", "ladder", "gate", "guess-and-check"])
def test_every_answer_before_the_final_is_the_same_whatever_their_labels_are(policy, other):
    def released(y):
        threshold = None if policy == "gate" else 0.1
        with make(y, policy=policy, threshold=threshold, charges=12, reveals=4, choices=[2]) as guard:
            told = predictions(0.7, 0.7)
            prior = {} if policy == "ladder" else {"prior": 0.68}
            guard.evaluate_predictions(told, **prior)
            guard.evaluate_many([predictions(0.9, 0.1), told], [0.6, 0.7] if prior else None)
            guard.reveal_predictions(told, prior=0.65)
            guard.choose_predictions([told, predictions(0.8, 0.0)], [0.7, 0.7])
            if policy != "ladder":  # whose charges cost less than those of its slices
                guard.on("balanced_accuracy").reveal_predictions(told, prior=0.7)
                guard.on(sample_weight=np.arange(ROWS) < 1_000).reveal_predictions(told, prior=0.7)
            if prior:
                guard.compare_predictions(told, predictions(0.6, 0.9), prior=0.1)
            return guard.history().drop(columns="asked_at")

    first, second = released(LABELS), released(other)
    assert first.equals(second)
    assert len(first) >= 4


def test_what_is_asked_is_asked_of_the_other_rows():
    with make(reveals=1) as guard:
        answer = guard.reveal_predictions(predictions(0.75, 0.1), prior=0.75)
        assert abs(answer.value - 0.75) <= answer.threshold


# ---- what the final says


def test_a_final_has_half_of_its_share_for_all_rows_and_half_for_the_exam():
    with make() as guard:
        answer = guard.final_predictions(predictions(0.7, 0.75))
    every = ends(0.71, ROWS, length=math.log(2) + math.log(4) + math.log(2))
    exam = ends(0.75, EXAM, length=math.log(4) + math.log(2))
    assert answer.value == pytest.approx(0.71)
    assert (answer.low, answer.high) == pytest.approx(
        (max(every[0], exam[0]), min(every[1], exam[1])), abs=1e-3
    )
    assert answer.told.startswith("value 0.71 of 1; all 0.71 binomial 2000 ")


def test_charges_do_not_widen_what_the_exam_says():
    told = []
    for charges in (0, 3):
        with make(queries=1_000, charges=3) as guard:
            for place in range(charges):
                guard.evaluate_predictions(predictions(0.7 + place / 100, 0.5), prior=0.1)
            told.append(guard.final_predictions(predictions(0.75, 0.7)))
            assert guard.charges_left == 3 - charges
    free, spent = told
    exam = ends(0.7, EXAM, length=math.log(4) + math.log(2))
    assert spent.high == pytest.approx(exam[1], abs=1e-3)
    assert free.high - free.low <= spent.high - spent.low + 1e-9 or free.told.endswith("; apart")


def test_an_overfitted_value_is_moved_into_the_interval_that_the_exam_leaves():
    with make(queries=100_000, charges=3) as guard:
        for place in range(3):
            guard.evaluate_predictions(predictions(0.6 + place / 100, 0.5), prior=0.1)
        answer = guard.final_predictions(predictions(0.75, 0.6))
    assert answer.low <= answer.value <= answer.high
    assert " all 0.72 binomial" in answer.told
    assert " exam 0.6 binomial 400 " in answer.told


def test_rows_that_contradict_each_other_are_said_to():
    with make() as guard:
        with pytest.warns(RuntimeWarning, match="the exam's rows contradict the others about 'tuned'"):
            answer = guard.final_predictions(predictions(1.0, 0.2), name="tuned")
        assert answer.told.endswith("; apart")
        every = ends(0.84, ROWS, length=math.log(16))
        exam = ends(0.2, EXAM, length=math.log(8))
        assert (answer.low, answer.high) == pytest.approx((exam[0], every[1]), abs=1e-3)
        with pytest.warns(RuntimeWarning, match="contradict"):
            assert guard.final_predictions(predictions(1.0, 0.2)).replayed


def test_finals_of_several_models_and_metrics_share_both_halves():
    with make(reveals=4) as guard:
        brier = guard.on("brier")
        told = guard.final_predictions(
            [predictions(0.7, 0.75), predictions(0.6, 0.6)],
            also=[(brier, [np.full(ROWS, 0.5), np.full(ROWS, 0.4)])],
        )
    assert [" of 4;" in answer.told for answer in told[::2]] == [True] * 2
    certificate = brier.plan.certificate()
    left = [
        certificate.of_rows(rows).final_set(length)
        for rows, length in [(ROWS, math.log(64)), (EXAM, certificate.exam_length(4))]
    ]
    alike = [one.of(EvidenceRows(np.array([0.25]), np.array([float(one.rows)]))) for one in left]
    assert told[1].low == pytest.approx(max(low for low, _ in alike), abs=1e-3)
    exam = ends(0.75, EXAM, length=math.log(4) + math.log(2) + math.log(4))
    assert told[0].low == pytest.approx(max(exam[0], ends(0.71, ROWS, length=math.log(64))[0]), abs=1e-3)


@for_each("metric", ["recall", "specificity", "roc_auc", "balanced_accuracy", "f1", "average_precision"])
def test_before_the_final_nothing_public_depends_on_the_labels_of_the_exam(metric):
    half, few = np.arange(ROWS) % 2, (np.arange(ROWS) % 7 == 0).astype(int)
    public = set()
    for exam in (half, few, 1 - few, np.zeros(ROWS, int), np.ones(ROWS, int)):
        with make(
            np.where(KEPT, exam, half), metric=metric, threshold=None, charges=1, classes=[0, 1]
        ) as guard:
            slices = guard.on(sample_weight=np.arange(ROWS) < 1_000, metric="accuracy", vacuous=True)
            public.add(
                (str(guard.plan), str(slices.plan), repr(guard), guard.final_width, str(guard.plan.record()))
            )
    assert len(public) == 1


def test_class_counts_of_the_exam_are_not_told_before_the_final():
    rare = (np.arange(ROWS) % 20 == 0).astype(int)
    without = np.where(KEPT, 0, rare)
    for y in (rare, without):  # the exam lacks a class, or not
        with make(y, metric="recall", threshold=None, charges=1) as guard:
            plan, answer = guard.plan, guard.final_predictions(y)
            assert plan.exam_rows == round(plan.asked_rows * EXAM / (ROWS - EXAM))
            assert answer.told.endswith("exam none") == (y is without)
            assert answer.low <= answer.value <= answer.high


def test_a_metric_that_fails_on_the_exam_alone_says_nothing_of_it():
    def loss(y_true, y_pred):
        if len(y_true) == EXAM:
            raise ValueError("no such rows")
        return (np.asarray(y_true) != np.asarray(y_pred)).astype(float)

    own = Metric(
        name="own", lower=0, upper=1, greater_is_better=False, family="binomial", response="labels", loss=loss
    )
    with make(metric=own, estimate=0.3) as guard:
        assert guard.final_predictions(predictions(0.7, 0.7)).told.endswith("exam none")


# ---- ledgers, processes, containers


def test_a_ledger_knows_its_exam_and_verifies(tmp_path):
    with make(ledger=tmp_path / "guard.db") as guard:
        guard.evaluate_predictions(predictions(0.9, 0.1), prior=0.6)
        answer = guard.final_predictions(predictions(0.7, 0.75))
    verify(tmp_path / "guard.db").check()
    with ReusableHoldout.open(tmp_path / "guard.db", None, LABELS, seed=1) as again:
        assert again.plan.exam_rows == EXAM
        assert again.final_predictions(predictions(0.7, 0.75)) == answer._replace(replayed=True)
    with pytest.raises(LedgerMismatchError, match="exam"):
        make(ledger=tmp_path / "guard.db", exam=0.1)
    with pytest.raises(LedgerMismatchError, match="exam"):
        make(ledger=tmp_path / "guard.db", exam=None)


@for_each(
    "change",
    [
        ("told", lambda told: told.replace("exam 0.75 binomial 400", "exam 0.75 binomial 4000")),
        ("told", lambda told: told.replace("exam 0.75", "exam 0.7")),
        ("told", lambda told: told.replace("of 1;", "of 2;")),
        ("told", lambda told: told + "; apart"),
        ("told", lambda told: told.replace("value 0.71", "value 0.715")),
        ("told", lambda told: told.replace("0.71 binomial", "7.1 binomial")),
        ("told", lambda told: "value 0.71"),
    ],
)
def test_a_final_that_was_changed_is_found(tmp_path_factory, change):
    ledger = tmp_path_factory.mktemp("changed") / "guard.db"
    with make(ledger=ledger) as guard:
        guard.final_predictions(predictions(0.7, 0.75))
    column, how = change
    rewrite(ledger, lambda rows: [row._replace(**{column: how(getattr(row, column))}) for row in rows])
    assert not verify(ledger).sound


def test_a_guard_with_an_exam_goes_to_other_processes(tmp_path):
    with make(ledger=tmp_path / "guard.db") as guard:
        assert pickle.loads(pickle.dumps(guard)).plan.exam_rows == EXAM
        with ProcessPoolExecutor(1) as pool:
            told = pool.submit(guard.final_predictions, predictions(0.7, 0.75)).result()
        assert guard.final_predictions(predictions(0.7, 0.75)) == told._replace(replayed=True)


def test_models_predict_parquet_rows_of_an_exam_as_those_in_memory(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(2)
    X = rng.normal(size=(ROWS, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(target=LABELS)
    frame.to_parquet(tmp_path / "rows.parquet")
    model = LogisticRegression().fit(frame[["a", "b", "c"]], LABELS)
    answers = []
    for features, labels in (
        (frame[["a", "b", "c"]], LABELS),
        (ParquetRows(tmp_path / "rows.parquet"), "target"),
    ):
        with make(labels, features) as guard:
            answers.append(guard.final(model))
    assert answers[0] == answers[1]


def test_the_next_holdout_has_as_large_a_share(tmp_path):
    with make(ledger=tmp_path / "guard.db") as guard:
        fresh = guard.rotate(None, np.tile(LABELS, 2), early=True).guard
        assert (fresh.plan.exam_rows, fresh.plan.rows) == (2 * EXAM, 2 * ROWS)
        fresh.close()
    verify(tmp_path / "guard.db").check()


# ---- plans and refusals


def test_a_plan_reckons_with_the_rows_that_are_left():
    plan, less = Plan(rows=5_000, queries=100, tolerance=0.05, estimate=0.9, exam=500), None
    less = Plan(rows=4_500, queries=100, tolerance=0.05, estimate=0.9)
    assert (plan.asked_rows, plan.exam_rows, plan.charges) == (4_500, 500, less.charges)
    assert plan.threshold == less.threshold
    assert plan.epsilon_each == pytest.approx(less.epsilon_each)
    assert Plan.from_record(plan.record()) == plan
    assert Plan(rows=5_000, queries=100, tolerance=0.05, estimate=0.9, exam=0.1).record() == plan.record()
    assert "500 rows" in str(plan)


def test_rows_are_derived_with_the_exam_among_them():
    plan = Plan(queries=100, charges=3, tolerance=0.05, estimate=0.9, exam=0.1)
    least = Plan(queries=100, charges=3, tolerance=0.05, estimate=0.9).rows
    assert plan.asked_rows == least
    assert plan.exam_rows == math.ceil(0.1 * plan.rows)


def test_no_number_of_charges_widens_a_final_beyond_the_exam():
    plan = Plan(rows=20_000, queries=10_000, charges=200, estimate=0.87, exam=0.1)
    widths = [plan.final_half_width(charges=charges) for charges in (0, 1, 10, 50, 200)]
    assert widths == sorted(widths)
    assert widths[-1] == pytest.approx(plan.exam_half_width)
    assert plan.exam_half_width <= 4.5 * plan.one_look
    assert (
        Plan(rows=20_000, queries=10_000, charges=200, estimate=0.87).final_half_width(charges=200)
        > widths[-1]
    )


def test_the_width_that_a_guard_names_is_what_its_final_has():
    with make(estimate=0.7) as guard:
        for place in range(2):
            guard.evaluate_predictions(predictions(0.8 + place / 100, 0.5), prior=0.2)
        named = guard.final_width
        answer = guard.final_predictions(predictions(0.7, 0.7))
    assert (answer.high - answer.low) / 2 == pytest.approx(named, rel=1e-6)


@for_each("exam", [0.0, -0.1, 0.51, 1.0, True, "a tenth", 0, -5, math.nan])
def test_an_exam_that_is_none_is_refused_in_words(exam):
    for act in (lambda: make(exam=exam), lambda: Plan(rows=1_000, queries=10, charges=1, exam=exam)):
        with pytest.raises(
            InputError, match=r"exam must be a share of the rows, a float in \(0, 0.5\], or their number"
        ):
            act()


def test_an_exam_of_all_rows_and_one_with_noise_are_refused():
    with pytest.raises(InputError, match="leave"):
        make(exam=ROWS)
    with pytest.raises(InputError, match="leaves none to ask"):
        Plan(rows=1_000, queries=10, charges=1, exam=1_000)
    with pytest.raises(InputError, match="leave one of them out"):
        make(final_noise=0.01)
    with make() as guard, pytest.raises(InputError, match="take a larger slice"):
        guard.on(sample_weight=KEPT)


def test_a_slice_without_a_row_of_the_exam_has_a_final_of_its_own_rows():
    with make(reveals=2) as guard:
        part = guard.on(sample_weight=~KEPT)
        assert part.plan.exam_rows == 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert part.final_predictions(predictions(0.7, 0.1)).told == "value 0.7"
