"""A guard of ids, asked with scores that a judge gave: it answers as a guard of labels does about the same means."""

import logging
import pickle

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from long_tests import GUARD
from made_guards import made_guard

from reusable_holdout import Difference, Metric, ReusableHoldout, verify
from reusable_holdout.errors import InputError, LedgerMismatchError
from reusable_holdout.metrics import score

ROWS = 2_000
IDS = [f"q{k}" for k in range(ROWS)]
REPEATS = 4
PASSES = np.random.default_rng(5).random((6, ROWS, REPEATS)) < np.linspace(0.5, 0.8, 6)[:, None, None]
SCORES = PASSES.mean(axis=2)
ORDER = np.random.default_rng(6).permutation(ROWS)
TABLE = pd.DataFrame({"id": np.array(IDS)[ORDER], "score": SCORES[0][ORDER]})
USERS = np.arange(ROWS) // 4
SLICE = np.arange(ROWS) % 3 == 0


def own_mean(labels, predictions):
    """Per-row losses that no label enters."""
    return predictions + 0 * labels


MEAN = Metric(name="score", lower=0, upper=1, greater_is_better=True, loss=own_mean)


@pytest.fixture
def judged(make_guard):
    """Guards of the ids."""

    def make(ledger=None, **changes):
        return make_guard(ledger, **{"y": IDS, "metric": "score", **changes})

    return make


def exercised(guard):
    """Every way to ask, with scores of shape (rows,)."""
    guard.evaluate(SCORES[0], prior=0.52)
    guard.evaluate(SCORES[1], prior=0.9)
    guard.evaluate(list(SCORES[:4]), prior=[0.5, 0.55, 0.6, 0.1])
    guard.compare(SCORES[5], SCORES[0], prior=0.28)
    guard.reveal(SCORES[2], prior=0.6)
    guard.choose(list(SCORES), np.linspace(0.5, 0.8, 6))
    guard.final(list(SCORES[4:]))
    history = guard.history()
    return history.drop(columns=[name for name in history if name.endswith("at")])


@pytest.mark.long(*GUARD)
@for_each(
    "settings",
    [{}, {"groups": USERS}, {"sample_weight": SLICE}, {"sample_weight": 1.0 + SLICE}, {"noise": 0.01}],
    ids=str,
)
def test_every_way_to_ask_tells_what_it_tells_of_the_same_means(settings):
    told = []
    for y, metric in ((IDS, "score"), (np.zeros(ROWS), MEAN)):
        wish = {
            "queries": 40,
            "charges": 8,
            "reveals": 1,
            "choices": [6],
            "seed": 7,
            "vacuous": True,
            **settings,
        }
        with made_guard(None, y, metric=metric, **wish) as guard:
            told.append(exercised(guard))
    assert set(told[0]["charged"]) == {True, False}
    assert len(told[0]) >= 10
    pd.testing.assert_frame_equal(*told)


@for_each("plan", [{"gates": True}, {"board": "claims"}])
def test_plans_for_other_ways_take_scores_too(plan):
    wish = {"queries": 20, "charges": 10, "seed": 1, "vacuous": True, **plan}
    told = []
    for y, metric in ((IDS, "score"), (np.zeros(ROWS), MEAN)):
        with made_guard(None, y, metric=metric, **wish) as guard:
            ask = guard.gate if "gates" in plan else lambda one, prior: guard.evaluate(one, prior=prior)
            told.append([ask(one, 0.6)[:5] for one in SCORES])
    assert told[0] == told[1]


def test_guardrails_and_finals_may_be_of_other_judged_metrics(judged):
    guard = judged(policy="gate", charges=5, noise=None, final_share=0.25)
    reliable = guard.on("pass^2")
    verdict = guard.gate(PASSES[5], 0.6, guardrails={reliable: 0.4})
    assert verdict.charged
    both = guard.final(PASSES[4], also=[reliable])
    assert [one.value for one in both] == pytest.approx(
        [SCORES[4].mean(), np.mean(SCORES[4] * (4 * SCORES[4] - 1) / 3)], abs=1e-9
    )


# ---- what is the same question


def test_equal_scores_are_the_same_question_whatever_they_come_in(judged):
    guard = judged()
    first = guard.evaluate(SCORES[0], prior=0.5)
    same = [SCORES[0].tolist(), PASSES[0], PASSES[0][:, ::-1], TABLE, TABLE.set_index("id")["score"]]
    for given in same:
        again = guard.evaluate(given, prior=0.5)
        assert (again.replayed, again.query, again.value) == (True, 1, first.value)
    assert all(one.replayed for one in guard.evaluate(list(PASSES[:1]), prior=[0.5]))
    assert guard.queries_asked == 1
    other = SCORES[0].copy()
    other[7] = 1.0 - other[7] / 2
    assert not guard.evaluate(other, prior=0.5).replayed
    assert not guard.evaluate(SCORES[0][::-1], prior=0.5).replayed
    assert guard.queries_asked == 3


def test_a_batch_of_repeats_is_models_rows_and_repeats(judged):
    guard = judged()
    answers = guard.evaluate(list(PASSES), prior=np.linspace(0.5, 0.8, 6))
    assert not any(one.charged for one in answers)
    assert all(guard.evaluate(one, prior=p).replayed for one, p in zip(PASSES[:1], [0.5], strict=True))
    assert guard.queries_asked == 6


def test_a_restarted_process_replays_and_goes_on(judged, reopen, ledger):
    with judged(ledger, metric=score(lower=0, upper=2)) as guard:
        asked = guard.evaluate(TABLE, prior=0.5)
        guard.evaluate(SCORES[5], prior=0.1)
    again = reopen(ledger, y=pd.Series(IDS))
    assert again.metric == score(lower=0, upper=2)
    assert again.evaluate(SCORES[0], prior=0.5) == asked._replace(
        replayed=True, charges_left=again.charges_left
    )
    assert not again.evaluate(SCORES[1], prior=0.5).replayed
    assert (again.queries_asked, again.charges_left) == (3, 2)
    assert verify(ledger).sound


@for_each("metric", ["score", "pass@2", "pass^3", score(lower=-1, upper=5)], ids=str)
def test_a_ledger_knows_its_metric(metric, tmp_path):
    path = tmp_path / f"{metric if isinstance(metric, str) else 'bounds'}.db"
    with made_guard(None, IDS, metric=metric, queries=10, charges=2, ledger=path) as guard:
        guard.evaluate(PASSES[3], prior=0.9)
        made = guard.metric
    with ReusableHoldout.open(path, None, IDS) as again:
        assert again.metric == made
        assert again.evaluate(PASSES[3], prior=0.9).replayed
    assert verify(path).sound


def test_a_pickled_guard_is_the_same_guard(judged, ledger):
    guard = judged(ledger)
    guard.evaluate(TABLE, prior=0.5)
    again = pickle.loads(pickle.dumps(guard))
    assert again.evaluate(SCORES[0], prior=0.5).replayed
    view = pickle.loads(pickle.dumps(guard.on("pass^2")))
    assert view.metric.name == "pass^2"


@for_each("ids", [IDS[::-1], [*IDS[1:], "q0"], [f"r{k}" for k in range(ROWS)], list(range(ROWS))])
def test_other_ids_or_another_order_are_another_holdout(judged, reopen, ledger, ids):
    if not ledger.exists():
        judged(ledger).close()
    refuses(LedgerMismatchError, "must belong to this holdout", reopen, ledger, y=ids)


@for_each("metric", [score(lower=0, upper=2), "pass@1", "pass^1"], ids=str)
def test_other_bounds_or_another_judged_metric_are_another_guard(judged, ledger, metric):
    judged(ledger).close()
    refuses(LedgerMismatchError, "cannot be changed", judged, ledger, metric=metric)


def test_rotation_goes_on_with_other_ids(judged, ledger):
    guard = judged(ledger)
    fresh, X, y = guard.rotate(None, [f"r{k}" for k in range(ROWS)], early=True)
    assert (fresh.epoch, X, y) == (2, None, IDS)
    refuses(InputError, "none of them in column 'id'", fresh.evaluate, TABLE, prior=0.5)
    assert not fresh.evaluate(SCORES[0], prior=0.5).replayed


# ---- refusals

BAD = {
    "too few rows": (SCORES[0][:-1], "must have shape"),
    "repeats first": (PASSES[0].T, "rows come first"),
    "out of bounds": (SCORES[0] * 2, r"must lie in \[0, 1\]"),
    "a missing id": (TABLE[1:], "1 ids are missing"),
}


@for_each("name", BAD)
def test_refused_scores_ask_nothing_and_charge_nothing(judged, name):
    given, words = BAD[name]
    guard = judged(reveals=1, choices=[2])
    asks = [
        lambda: guard.evaluate(given, prior=0.9),
        lambda: guard.evaluate([SCORES[0], given], prior=[0.5, 0.9]),
        lambda: guard.compare(given, SCORES[0], prior=0.0),
        lambda: guard.compare(SCORES[0], given, prior=0.0),
        lambda: guard.reveal(given, prior=0.9),
        lambda: guard.choose([SCORES[0], given], [0.5, 0.9]),
        lambda: guard.final([given]),
    ]
    for ask in asks:
        refuses(InputError, words, ask)
    assert (guard.queries_asked, guard.charges_left, len(guard.history())) == (0, 3, 0)


LABELLED = {"y": np.arange(ROWS) % 2, "metric": "accuracy"}, {"y": np.arange(ROWS) / ROWS, "metric": MEAN}
NO_LABELS = r"must have (labels|targets) of the rows; got a guard of 'score', whose rows have ids"
NO_IDS = r"must have ids of the rows; got a guard of .*, whose rows have (labels|targets)"
REFUSED = [  # settings of a guard, what is asked, words
    ({"metric": "pass@5"}, lambda g: g.evaluate(PASSES[0], prior=0.9), "at least 5 repeats of every row; got 4"),
    ({"metric": "pass@5"}, lambda g: g.evaluate(list(PASSES), prior=[0.9] * 6), "at least 5 repeats"),
    ({"metric": "pass@5"}, lambda g: g.evaluate(PASSES[0], prior=72), r"prior must be a number in \[0, 1\]"),
    ({}, lambda g: g.evaluate(object(), prior=0.5), r"labels only|score"),
    *(({}, lambda g, m=metric: g.on(m), NO_LABELS) for metric in ("accuracy", "brier", MEAN, "roc_auc")),
    *((y, lambda g, m=metric: g.on(m), NO_IDS) for metric in ("score", "pass@3") for y in LABELLED),
    ({"y": [*IDS[:-1], "q5"]}, None, "got these more than once: q5;"),
    ({"y": [*IDS[:-1], None]}, None, "got none at places 2000"),
    ({"X": np.zeros((ROWS, 2))}, None, "X must be None for metric 'score'"),
    ({"classes": [0, 1]}, None, "must be ids of the rows, not classes"),
    ({"prevalence": 0.5}, None, "is about public classes, and metric 'score' has none"),
]  # fmt: skip


@for_each(("settings", "ask", "words"), REFUSED)
def test_what_ids_and_scores_do_not_go_with_is_refused_in_words(judged, ledger, settings, ask, words):
    guard = judged(**settings) if ask else None
    with pytest.raises(InputError, match=words):
        ask(guard) if ask else judged(ledger, **settings)
    assert not ledger.exists()
    assert guard is None or (guard.queries_asked, len(guard.history())) == (0, 0)


def test_other_judged_metrics_and_slices_share_the_budget(judged):
    guard = judged()
    reliable, part = guard.on("pass^2"), guard.on(sample_weight=SLICE)
    reliable.evaluate(PASSES[0], prior=0.3)
    part.evaluate(TABLE, prior=0.5)
    assert (guard.queries_asked, guard.on("pass^2").queries_asked) == (2, 2)
    assert part.evaluate(PASSES[0], prior=0.5).replayed


# ---- side doors


def test_no_row_s_score_is_logged_printed_or_kept(judged, ledger, caplog, capfd, tmp_path):
    caplog.set_level(logging.DEBUG)
    secret = np.random.default_rng(9).random(ROWS)
    guard = judged(ledger, noise=0.01, seed=3)
    told = [guard.evaluate(secret, prior=0.5), guard.evaluate(secret, prior=0.9)]
    for given in (
        secret + 0.5,
        secret[:-1],
        pd.Series(secret, [*IDS[1:], "x"]),
        np.where(secret > 0.9, np.nan, secret),
    ):
        caught = refuses(InputError, "", guard.evaluate, given, prior=0.5)
        told += [caught, vars(caught)]
    inside = [
        guard,
        guard._view.holdout,
        guard._view.holdout.bound,
        *vars(guard._view.holdout.bound).values(),
    ]
    inside += [guard._view.holdout.bound.statistic, *vars(guard._view.holdout.bound.statistic).values()]
    text = " ".join([*map(repr, [*told, *inside]), caplog.text, *capfd.readouterr()])
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for number in secret[:200]:
        assert f"{number:.9f}"[:9] not in text
        assert repr(float(number)).encode() not in kept
        assert number.tobytes() not in kept
    assert "q17" not in repr(guard._view.holdout.bound._form)


# ---- several scores, and a look at what fits


def test_a_gate_may_have_another_score_as_its_guardrail_with_scores_of_its_own(judged):
    guard = judged(policy="gate", charges=5, noise=None)
    polite = guard.on("score[politeness]")
    assert guard.on("score") is guard
    assert guard.on(score(of="politeness")).view == polite.view != guard.view
    for loss, charged in ((0.0, True), (0.5, False)):
        both = Difference(SCORES[1] * (1.0 - loss), SCORES[1])
        answer = guard.gate(Difference(SCORES[5], SCORES[0]), 0.1, guardrails={polite: (both, -0.05)})
        assert answer.charged == charged


@for_each("scores", [SCORES[0], TABLE, PASSES[0]], ids=["array", "table", "repeats"])
def test_what_fits_can_be_asked_for_without_a_question(judged, scores):
    guard = judged()
    assert guard.check_predictions(scores) is None
    for bad in (scores[:-1], [2.0] * ROWS):
        refuses(InputError, "", guard.check_predictions, bad)
    assert guard.queries_asked == 0
