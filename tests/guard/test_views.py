"""Several metrics, slices and policies of the same rows: one ledger, one budget, one certificate."""

import json
import math
import pickle
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from cases import for_each, refuses
from guard.forging import rewrite
from made_guards import made_guard
from sklearn.linear_model import LogisticRegression

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.certainty import THEORY
from reusable_holdout.certainty.certificate import GRID_SLACK
from reusable_holdout.errors import Halted, InputError, LedgerMismatchError, PlanError, RotatedError
from reusable_holdout.guard.new_view import Opening
from reusable_holdout.ways import Told

ROWS = 5_000
LABELS = (np.random.default_rng(0).random(ROWS) < 0.22).astype(int)
GROUP = np.random.default_rng(1).random(ROWS) < 0.5
PLAN = {"queries": 100, "charges": 4, "reveals": 3, "estimate": 0.87, "seed": 0}


def predictions(accuracy, seed=0):
    return np.where(np.random.default_rng(seed).random(ROWS) < accuracy, LABELS, 1 - LABELS)


@pytest.fixture
def guard(tmp_path):
    with made_guard(None, LABELS, ledger=tmp_path / "guard.db", **PLAN) as made:
        yield made


# ---- one budget


def test_all_metrics_share_queries_charges_and_what_was_told(guard):
    women, auc = guard.on(sample_weight=GROUP), guard.on("roc_auc")
    told = auc._state().nats
    women.evaluate(predictions(0.87), prior=0.87)
    off = women.evaluate(predictions(0.6), prior=0.87)
    assert off.charged
    assert guard.charges_left == women.charges_left == auc.charges_left == 3
    assert guard.queries_asked == auc.queries_asked == 2
    assert guard._state().nats == told + off.nats


def test_a_charge_elsewhere_widens_as_much_as_one_here(tmp_path):
    def width(ask):
        with made_guard(None, LABELS, ledger=tmp_path / f"{ask}.db", **PLAN) as made:
            other = made.on(sample_weight=GROUP)
            assert (other if ask == "there" else made).evaluate(predictions(0.5), prior=0.87).charged
            answer = made.evaluate(predictions(0.87), prior=0.87)
            return answer.high - answer.low

    assert width("here") == pytest.approx(width("there"), rel=0.02)  # thresholds have noise of their own


def test_a_halt_is_one_of_all_metrics_and_a_final_ends_them_all(guard):
    women = guard.on(sample_weight=GROUP)
    for seed in range(4):
        assert women.evaluate(predictions(0.4, seed), prior=0.9).charged
    halt = refuses(Halted, "", guard.evaluate, predictions(0.8), prior=0.8)
    assert halt.reason == "charges"
    assert women.final(predictions(0.8)).way == "final"
    halt = refuses(Halted, "", guard.final, predictions(0.8))
    assert halt.reason == "final"
    refuses(Halted, "", guard.on, "roc_auc")


def test_widths_of_one_metric_do_not_depend_on_how_many_others_there_are():
    def last(others):
        made = made_guard(None, LABELS, **PLAN)
        asked = [made, *(made.on(sample_weight=GROUP) for _ in range(others))]
        for number in range(98):
            asked[number % len(asked)].evaluate(predictions(0.87, 10 + number), prior=0.87)
        answer = made.evaluate(predictions(0.87, 1_000), prior=0.87)
        assert not answer.charged
        return answer.high - answer.low

    assert last(1) <= 1.02 * last(0)


# ---- one question, one answer


def test_the_same_predictions_are_another_question_of_another_metric(guard):
    women, same = guard.on(sample_weight=GROUP), predictions(0.87)
    first, other = (one.evaluate(same, prior=0.87) for one in (guard, women))
    assert (first.query, other.query) == (2, 3)
    assert not other.replayed
    assert women.evaluate(same, prior=0.87).replayed
    assert guard.evaluate(same, prior=0.87).replayed


def test_the_noise_of_another_metric_is_its_own(guard):
    women, question = guard.on(sample_weight=GROUP), bytes(32)
    draws = {one._view.ways.main._at(one._state()).query_noise([question]).item() for one in (guard, women)}
    assert len(draws) == 2


def test_asking_for_the_same_metric_again_resumes_it(guard):
    auc = guard.on("roc_auc")
    again = guard.on("roc_auc")
    assert (again.view, again.plan) == (auc.view, auc.plan)
    assert guard.on("accuracy") is guard
    assert auc.on("accuracy").view == 0
    assert len(guard.history()) == 1


def test_an_estimate_that_is_named_is_taken_and_the_guards_is_for_its_own_metric_only(guard):
    half = np.arange(ROWS) < ROWS // 2
    assert guard.on(sample_weight=half, estimate=0.7).plan.estimate == 0.7
    assert guard.on(sample_weight=~half).plan.estimate == guard.plan.estimate
    assert guard.on("brier").plan.estimate == 0.5 != guard.plan.estimate


def test_a_number_that_another_view_has_taken_is_not_given_twice(guard):
    opened = guard.on("brier")._view.facts
    another = Opening(*[None] * Opening._fields.index("base"), base=guard._view)
    assert another._opened(opened, b"another view".ljust(32), "late") is None
    later = replace(opened, number=opened.number + 1)
    assert another._opened(later, b"another view".ljust(32), "next").told == later.text()


def test_a_metric_that_was_opened_keeps_its_tolerance(guard):
    women = guard.on(sample_weight=GROUP, tolerance=0.12)
    assert women.plan.tolerance == guard.on(sample_weight=GROUP).plan.tolerance == 0.12
    with pytest.raises(LedgerMismatchError, match=r"0\.12 is in the ledger, and 0\.1 was asked for"):
        guard.on(sample_weight=GROUP, tolerance=0.1)


def test_a_ledger_that_is_opened_knows_its_metrics(guard, tmp_path):
    auc = guard.on("roc_auc", prevalence=0.22)
    answer = auc.evaluate(predictions(0.9) + 0.0, prior=0.85)
    guard.close()
    with ReusableHoldout.open(tmp_path / "guard.db", None, LABELS, seed=0) as opened:
        resumed = opened.on("roc_auc")
        assert resumed.plan == auc.plan
        assert resumed.evaluate(predictions(0.9) + 0.0, prior=0.85) == answer._replace(replayed=True)


def test_a_metric_of_the_rows_is_pickled_as_a_handle_of_its_own(tmp_path):
    plan = {name: value for name, value in PLAN.items() if name != "seed"}
    with made_guard(None, LABELS, ledger=tmp_path / "guard.db", **plan) as made:
        women = made.on(sample_weight=GROUP)
        again = pickle.loads(pickle.dumps(women))
        assert (again.view, again.plan) == (women.view, women.plan)
        again.evaluate(predictions(0.9), prior=0.7)
        assert made.queries_asked == 1
        again.close()


# ---- what is refused


def test_a_tolerance_that_cannot_be_kept_is_refused_and_the_one_that_can_is_named(guard):
    refused = refuses(PlanError, "", guard.on, sample_weight=GROUP, tolerance=0.01)
    kept = guard.on(sample_weight=GROUP, tolerance=refused.nearest["tolerance"])
    assert kept.plan.tolerance == refused.nearest["tolerance"]


def test_rows_are_rotated_by_the_guard_that_was_made_with_them(guard):
    women = guard.on(sample_weight=GROUP)
    refuses(InputError, "by the guard that was made with them", women.rotate, None, LABELS[::-1], early=True)
    guard.rotate(None, 1 - LABELS, early=True)
    refuses(RotatedError, "", women.evaluate, predictions(0.87), prior=0.87)


# ---- class counts


def test_class_counts_are_told_once_and_priced_around_the_guess(guard):
    before = guard._state().nats
    recall = guard.on("recall", prevalence={0: 0.78, 1: 0.22})
    assert recall._view.facts.counts.place == 0
    assert guard._state().nats - before == THEORY.counts.nats(recall._view.facts.counts.place) < 1.4
    guard.on("recall")
    assert guard._state().nats - before == THEORY.counts.nats(recall._view.facts.counts.place)


def test_an_area_under_the_curve_tells_nothing_of_the_counts_and_needs_no_room():
    made = made_guard(None, LABELS, queries=100, charges=4, estimate=0.87, seed=0)
    assert made.on("roc_auc", allow={"vacuous"})._view.facts.nats == made._state().nats == 0.0


def test_numbers_that_are_told_are_never_better_than_the_exact_ones():
    for metric in ("roc_auc", "balanced_accuracy", "recall", "f1", "average_precision"):
        for prevalence in (None, 0.22, 0.5, 0.9):
            made = made_guard(
                None,
                LABELS,
                metric=metric,
                prevalence=prevalence,
                queries=10,
                charges=1,
                noise=1e-6,
                seed=1,
                vacuous=True,
            )
            exact = made.metric.bind(LABELS)
            told = made._view.holdout.bound
            assert told.sensitivity >= exact.sensitivity or told.sensitivity == 1
            assert told.sum_of_squares >= exact.sum_of_squares
            assert told.effective_rows <= exact.effective_rows
            assert made._view.ways.main.certificate.told_before == THEORY.counts.nats(
                made._view.facts.counts.place
            )


def test_holdouts_with_other_counts_in_the_same_cell_have_the_same_public_numbers():
    def made(positives):
        labels = (np.arange(ROWS) < positives).astype(int)
        return made_guard(None, labels, metric="roc_auc", prevalence=0.22, queries=10, charges=1, seed=1)

    one, other = made(1_100), made(1_120)
    assert one._view.facts.counts == other._view.facts.counts
    assert one.plan == other.plan


def test_a_metric_that_rests_on_no_counts_tells_and_pays_nothing():
    for metric in ("accuracy", "brier", "log_loss", "zero_one_loss"):
        made = made_guard(None, LABELS, metric=metric, queries=10, charges=1, seed=1)
        assert made._view.facts.counts is None
        assert made._view.ways.main.certificate.told_before == 0.0


def test_counts_that_could_break_a_promise_are_refused_before_they_are_read():
    made = made_guard(None, LABELS, queries=100, charges=4, reveals=0, estimate=0.87, seed=0)
    refuses(InputError, r"telling class counts can cost 4\.8 nats", made.on, "recall")
    assert len(made.history()) == 0
    assert made.on(sample_weight=GROUP).view == 1  # which tells nothing


WRONG_SHARES = [
    *(0.0, 1.0, [0.5], [0.5, 0.6], {0: 0.5, 2: 0.5}, "half", [0.3, -0.3], {1: 0.4}, float("nan"), True, 0, 1),
    *([float("nan"), 0.5], {0: 0.7, "1": 0.3}, {0: 0.7, 1: 0.3, 2: 0.1}),
]


@for_each("prevalence", WRONG_SHARES)
@for_each("metric", ["roc_auc", "f1", "accuracy"])
def test_shares_that_are_none_are_refused_in_words(prevalence, metric):
    with pytest.raises(InputError, match="prevalence= must be the shares you expect of the 2 classes"):
        made_guard(None, LABELS, metric=metric, prevalence=prevalence, queries=10, charges=1)


def test_the_same_guess_must_resume_a_guard(tmp_path):
    plan = {"metric": "roc_auc", "queries": 10, "charges": 1, "seed": 1, "ledger": tmp_path / "guard.db"}
    made_guard(None, LABELS, prevalence=0.22, **plan).close()
    made_guard(None, LABELS, prevalence=0.22, **plan).close()
    with pytest.raises(LedgerMismatchError, match=r"a budget cannot be changed|prevalence="):
        made_guard(None, LABELS, prevalence=0.5, **plan)


# ---- what others can see


def test_history_has_all_metrics_and_a_plot_its_own(guard):
    women = guard.on(sample_weight=GROUP, name="women")
    women.evaluate(predictions(0.87), prior=0.87)
    guard.evaluate(predictions(0.87), prior=0.87)
    history = women.history()
    assert history["metric"].tolist() == ["women", "women", "accuracy"]
    assert history["way"].tolist() == ["view", "check", "check"]
    assert women._own_history()["query"].tolist() == [2]
    assert history.equals(guard.history())


def revealed(view, asked):
    """Reveals until one is refused, and what of the guard's room is left then."""
    told = [view.reveal(one, prior=0.5) for one in asked[:-1] if view.price("reveal").allowed]
    with pytest.raises(InputError, match="after what the charges and the tolerance of the plan need"):
        view.reveal(asked[-1], prior=0.5)
    state = view._view.transcript.state
    return told, view._view.root.ways.reveal.certificate.room(charges=state.charges, nats=state.nats)


def test_what_another_metric_reveals_breaks_no_promise_of_the_guards_plan(guard, tmp_path):
    told, left = revealed(guard.on(sample_weight=GROUP), [predictions(0.9, seed) for seed in range(40)])
    assert told
    assert left >= 0.0
    assert verify(tmp_path / "guard.db").sound


def test_a_sound_ledger_of_several_metrics_verifies(guard, tmp_path):
    views = [guard, guard.on(sample_weight=GROUP), guard.on("roc_auc"), guard.on("brier")]
    for number, view in enumerate(views):
        view.evaluate(predictions(0.9, number), prior=0.88)
    views[1].reveal(predictions(0.9, 50), prior=0.9)
    views[2].final(predictions(0.9, 60))
    assert verify(tmp_path / "guard.db").problems == []


def changed_view(rows, **changes):
    """Rows with another first view, consistently sealed."""
    place = next(place for place, row in enumerate(rows) if row.kind == "view")
    parts = json.loads(rows[place].told)
    for name, value in changes.items():
        parts[name] = value(parts[name])
    told = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return [*rows[:place], rows[place]._replace(told=told), *rows[place + 1 :]]


def with_fewer_charges(plan):
    return plan | {"charges": plan["charges"] - 1}


def less_shared(**changes):
    return lambda plan: plan | {"shared": plan["shared"] | changes}


@for_each(
    ("change", "problem"),
    [
        (lambda rows: changed_view(rows, plan=with_fewer_charges), "not on the budget of the guard"),
        (lambda rows: changed_view(rows, plan=less_shared(told_nats=0.0)), "not on the budget of the guard"),
        (lambda rows: changed_view(rows, plan=less_shared(view=2)), "not on the budget of the guard"),
        (lambda rows: changed_view(rows, number=lambda _: 2), "must be number 1"),
        (lambda rows: changed_view(rows, counts=lambda _: None), "costs only the release of class counts"),
        (lambda rows: changed_view(rows, counts=lambda told: told | {"place": 99}), "cell"),
        (lambda rows: [rows[0]._replace(told="{}"), *rows[1:]], "a view in the ledger must be one"),
        (lambda rows: [rows[0]._replace(low=0.1), *rows[1:]], "no value and no interval"),
        (
            lambda rows: [rows[0], rows[1]._replace(view=2), *rows[2:]],
            "in a way that this guard does not have",
        ),
        (lambda rows: [rows[0], rows[1]._replace(view=0), *rows[2:]], "query 2"),
    ],
)
def test_views_that_the_budget_does_not_allow_are_found(tmp_path_factory, change, problem):
    path = tmp_path_factory.mktemp("forged") / "guard.db"
    with made_guard(None, LABELS, ledger=path, **PLAN) as made:
        recall = made.on("recall", prevalence=0.22)
        recall.evaluate(predictions(0.9), prior=0.85)
        made.evaluate(predictions(0.9), prior=0.9)
    rewrite(path, change)
    found = verify(path).problems
    assert any(problem in one for one in found), found


def test_no_row_tells_more_of_the_counts_than_their_cell(guard, tmp_path):
    guard.on("roc_auc", prevalence=0.22)
    connection = sqlite3.connect(tmp_path / "guard.db")
    (told,) = connection.execute("SELECT told FROM answers WHERE kind = 'view'").fetchone()
    connection.close()
    positives = int(LABELS.sum())
    numbers = {json.dumps(value) for value in json.loads(told)["plan"].values()}
    assert not {str(positives), str(ROWS - positives)} & numbers
    exact = guard.metric.bind(LABELS)
    assert repr(1 / positives + 1 / (ROWS - positives)) not in told
    assert exact.rows == ROWS


# ---- one final for all


def test_a_final_of_several_metrics_shares_its_part_and_is_of_each(guard, tmp_path):
    women, brier = guard.on(sample_weight=GROUP), guard.on("brier")
    sure = np.where(predictions(0.9) == 1, 0.9, 0.1)
    answers = guard.final(predictions(0.9), also=[women, (brier, sure)])
    assert [answer.way for answer in answers] == ["final"] * 3
    assert guard.history()["metric"].tolist()[-3:] == ["accuracy", "accuracy", "brier"]
    certificate = guard._view.ways.final.certificate
    state = guard._state()
    weight = Told.parse(answers[0].told).weight / 2**20
    assert weight == pytest.approx(1 / 3, abs=2**-20)
    length = certificate.final_length(charges=0, nats=state.nats) - math.log(weight)
    slack = GRID_SLACK
    low, _ = certificate.around(answers[0].value - slack, answers[0].value + slack, length=length, share=0.5)
    assert answers[0].low == pytest.approx(low, abs=1e-12)
    assert verify(tmp_path / "guard.db").problems == []
    refuses(Halted, "", women.final, predictions(0.8))


def test_a_final_of_models_by_several_metrics_goes_metric_by_metric():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3))
    y = (X[:, 0] + rng.normal(size=2_000) > 0).astype(int)
    models = [LogisticRegression(C=c).fit(X[:500], y[:500]) for c in (1.0, 0.001)]
    made = made_guard(X, y, queries=20, charges=2, reveals=2, seed=1)
    auc = made.on("roc_auc")
    answers = made.final(models, also=[auc])
    assert made.history()["metric"].tolist()[-4:] == ["accuracy", "accuracy", "roc_auc", "roc_auc"]
    assert [made.final(models[0]).value, made.final(models[1]).value] == [one.value for one in answers[:2]]
    refuses(InputError, "also= must be guards from on", made.final, models, also=auc)
    refuses(InputError, "a view must be another metric", made.final, models, also=["roc_auc"])
