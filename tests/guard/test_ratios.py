"""A guard of a ratio or a ranking: decided by its rows alone, with no class counts told and no noise."""

import numpy as np
import pytest
from cases import for_each, refuses
from guard.forging import rewrite
from made_guards import made_guard
from sklearn import metrics as sk

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.certainty import Evidence, EvidenceSet
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import r2, resolve_metric
from reusable_holdout.rules.samples import RatioSample
from reusable_holdout.rules.sets import left_by

ROWS = 3_000
RNG = np.random.default_rng(3)
LABELS = (RNG.random(ROWS) < 0.3).astype(int)
SCORES = RNG.normal(size=ROWS) + 1.5 * LABELS
PREDICTED = (SCORES > 0.9).astype(int)
METRICS = {
    "f1": (PREDICTED, sk.f1_score),
    "precision": (PREDICTED, sk.precision_score),
    "jaccard": (PREDICTED, sk.jaccard_score),
    "balanced_accuracy": (PREDICTED, sk.balanced_accuracy_score),
    "average_precision": (SCORES, sk.average_precision_score),
}
WISH = {"queries": 40, "charges": 3, "estimate": 0.6, "prevalence": 0.3, "seed": 1, "vacuous": True}


class Crossed(RatioSample):
    """A sample whose evidence excludes every value."""

    def ends(self, left):
        return 0.7, 0.3

    def _parts(self):
        return ()

    @classmethod
    def of(cls, score, rest):
        return cls()


def make(metric="f1", ledger=None, y=LABELS, **changes):
    return made_guard(None, y, metric=metric, ledger=ledger, **(WISH | changes))


@pytest.mark.parametrize("name", METRICS)
def test_all_ways_to_ask_hold_the_value_and_a_ledger_is_resumed_and_verified(name, tmp_path):
    predictions, reference = METRICS[name]
    value, ledger = reference(LABELS, predictions), tmp_path / "guard.db"
    with make(name, ledger, reveals=1, choices=[2]) as guard:
        assert guard.plan.family == "ratio"
        assert guard.plan.noise == guard.plan.shared.told_before == 0.0
        agreed = guard.evaluate(predictions, prior=value)
        assert (agreed.charged, agreed.value) == (False, value)
        assert agreed.high - agreed.low <= 2 * guard.plan.tolerance + 1e-9
        charged = guard.evaluate(predictions, prior=0.99)
        assert charged.charged
        assert charged.value < 0.99
        revealed = guard.reveal(predictions, prior=value)
        worse = np.roll(predictions, 7)
        chosen = guard.choose([worse, predictions], [0.5, value])
        assert chosen.index == 1
        assert chosen.others == guard.metric.upper
        final = guard.final(predictions)
        assert final.value == pytest.approx(value, abs=1e-6)
        for answer in (agreed, charged, revealed, chosen.answer, final):
            assert answer.low <= value <= answer.high
        assert (revealed.high - revealed.low) < 2 * guard.plan.tolerance
    with ReusableHoldout.open(ledger, None, LABELS, seed=1) as again:
        assert again.evaluate(predictions, prior=0.99).replayed
        assert again.plan == guard.plan
    assert verify(ledger).sound


def test_a_batch_decides_as_its_questions_do_one_by_one():
    offers = [np.where(RNG.random(ROWS) < share, 1 - PREDICTED, PREDICTED) for share in (0.0, 0.3, 0.02, 0.4)]
    value = sk.f1_score(LABELS, PREDICTED)
    together = make().evaluate(list(offers), prior=[value] * 4)
    guard = make()
    alone = [guard.evaluate(offer, prior=value) for offer in offers[:2]]
    assert [(one.charged, one.told) for one in together][:2] == [(one.charged, one.told) for one in alone]
    assert [one.charged for one in together] == [False, True, False, True]


def test_a_tolerance_of_its_own_is_kept_or_refused():
    guard = make(tolerance=0.2)
    value = sk.f1_score(LABELS, PREDICTED)
    narrow = guard.evaluate(PREDICTED, prior=value, tolerance=0.12)
    assert narrow.high - narrow.low == pytest.approx(0.24)
    with pytest.raises(InputError, match="a tolerance must be at least"):
        guard.evaluate(PREDICTED, prior=value, tolerance=0.001)


def test_a_gate_says_yes_only_with_evidence():
    guard, value = make(policy="gate", tolerance=0.2), sk.f1_score(LABELS, PREDICTED)
    passed = guard.gate(PREDICTED, value - 0.2)
    assert (passed.charged, passed.high) == (True, 1.0)
    assert passed.low == pytest.approx(value - 0.2)
    rejected = guard.gate(PREDICTED, value - 0.01)
    assert (rejected.charged, rejected.low, rejected.high) == (False, 0.0, 1.0)


@for_each("changes", [{"noise": 1e-4}, {"threshold": 0.1}])
def test_with_noise_or_a_threshold_it_rests_on_class_counts_that_are_told(changes):
    guard = make(charges=None, tolerance=0.25, **changes) if "threshold" not in changes else make(**changes)
    assert guard.plan.family == "bounded-difference"
    assert guard.plan.shared.told_before > 0


def test_the_plan_follows_the_guessed_class_shares_and_no_answer_rests_on_them():
    guards = {share: make(prevalence=share) for share in (0.1, 0.3, 0.6)}
    assert guards[0.1].plan.tolerance > guards[0.3].plan.tolerance > guards[0.6].plan.tolerance
    value = sk.f1_score(LABELS, PREDICTED)
    finals = [guard.final(PREDICTED) for guard in guards.values()]
    assert all(final.low <= value <= final.high for final in finals)
    assert np.ptp([final.high - final.low for final in finals]) < 0.02


def explained(**changes):
    targets = np.clip(5.0 + 2.0 * RNG.normal(size=ROWS), 0, 10)
    guesses = targets + RNG.normal(size=ROWS)
    metric = r2(lower=0, upper=10, center=5.0)
    wish = {"queries": 40, "charges": 3, "estimate": 0.7, "seed": 1}
    return targets, guesses, made_guard(None, targets, metric=metric, **wish | changes)


def test_what_is_explained_about_a_centre_is_asked_in_all_ways(tmp_path):
    targets, guesses, guard = explained(ledger=tmp_path / "guard.db", reveals=1)
    value = 1.0 - np.square(targets - np.clip(guesses, 0, 10)).sum() / np.square(targets - 5.0).sum()
    with guard:
        assert guard.plan.family == "ratio"
        for answer in (
            guard.evaluate(guesses, prior=value),
            guard.evaluate(guesses, prior=0.99),
            guard.reveal(guesses, prior=value),
            guard.final(guesses),
        ):
            assert answer.low < value < answer.high
        assert answer.value == pytest.approx(value, abs=1e-6)
        assert answer.high - answer.low < 0.35
    with ReusableHoldout.open(tmp_path / "guard.db", None, targets, seed=1) as again:
        assert again.evaluate(guesses, prior=0.99).replayed
    assert verify(tmp_path / "guard.db").sound


REFUSED = [
    *((lambda changes=changes: explained(**changes), "pass variance= in place of center=")
      for changes in ({"noise": 1e-3}, {"board": "claims"}, {"threshold": 0.1})),
    (lambda: explained(prevalence=0.3), "prevalence= is about public classes"),
    (lambda: r2(lower=0, upper=10), "neither"),
    (lambda: r2(lower=0, upper=10, center=5, variance=4), "both"),
    (lambda: r2(lower=0, upper=10, center=11), "center must lie in"),
    (lambda: r2(lower=0, upper=10, center=5, least=1), "least must be"),
    (lambda: r2(lower=0, upper=10, variance=4, least=0), "least= goes only with center="),
    (lambda: make().compare(PREDICTED, 1 - PREDICTED, prior=0.1), "compared row by row"),
    (lambda: make(spread=0.3), "spread, your guess of"),
]  # fmt: skip


@for_each(("call", "words"), REFUSED)
def test_what_a_ratio_does_not_take_is_refused_in_words(call, words):
    refuses(InputError, words, call)


def test_it_is_asked_beside_other_metrics_of_the_rows(tmp_path):
    with made_guard(
        None, LABELS, queries=60, charges=3, estimate=0.8, ledger=tmp_path / "guard.db", seed=1
    ) as guard:
        f = guard.on("f1", estimate=0.6, prevalence=0.3)
        assert (f.plan.family, f.plan.noise, f.plan.charges) == ("ratio", 0.0, 3)
        before = guard.plan.scores
        assert f.plan.scores.log_level(5.0, 0.5) == before.log_level(5.0, 0.5)  # some pays for noise
        value = sk.f1_score(LABELS, PREDICTED)
        assert not f.evaluate(PREDICTED, prior=value).charged
        again = guard.on("f1")
        assert again.evaluate(PREDICTED, prior=value).replayed
        answers = guard.final(PREDICTED, also=[f])
        assert answers[1].low <= value <= answers[1].high
    assert verify(tmp_path / "guard.db").sound


def test_its_slices_and_gates_are_asked_like_it(tmp_path):
    inside = np.arange(ROWS) < 2_000
    value = sk.f1_score(LABELS[inside], PREDICTED[inside])
    with make(ledger=tmp_path / "guard.db") as guard:
        part = guard.on(sample_weight=inside)
        assert (part.plan.rows, guard.plan.rows) == (600, 900)  # of the prevalence that was guessed
        assert not part.evaluate(PREDICTED, prior=value).charged
        assert guard.gate(PREDICTED, value - 0.1).charged
        refuses(InputError, "spread, your guess of", guard.on, sample_weight=~inside, spread=0.2)
    assert verify(tmp_path / "guard.db").sound


def test_a_guard_that_promises_privacy_keeps_it_for_other_metrics():
    guard = made_guard(None, LABELS, queries=5, charges=1, noise=0.002, seed=1)
    assert not guard.plan.privacy_is_vacuous
    assert guard.on("f1", tolerance=0.9, allow={"vacuous"}).plan.family == "bounded-difference"


def test_the_next_holdout_is_guessed_to_be_like_the_last_one(tmp_path):
    rng = np.random.default_rng(8)
    fresh = (rng.random(ROWS) < 0.3).astype(int)
    with make(ledger=tmp_path / "guard.db", tolerance=0.15, charges=None) as guard:
        turned = guard.rotate(None, fresh, early=True)
        assert turned.guard.plan.rows == guard.plan.rows
        assert turned.guard.plan.tolerance == 0.15
        answer = turned.guard.final(fresh)
        assert answer.value == 1.0
    assert verify(tmp_path / "guard.db").sound


@for_each("share", [1e-9, 1 - 1e-9, np.float32(0.3)])
@for_each("metric", ["f1", "precision", "jaccard", "balanced_accuracy", "average_precision"])
def test_any_class_share_may_be_guessed(metric, share):
    guard = make(metric, prevalence=share, queries=1, charges=1, confidence=0.5)
    assert guard.plan.rows >= 1


@for_each("name", ["f1", "precision", "jaccard", "balanced_accuracy"])
def test_a_slice_is_asked_about_its_own_rows(name):
    inside = np.arange(ROWS) % 2 == 0
    guard = make(name, sample_weight=inside)
    value = resolve_metric(name).measure(LABELS[inside], PREDICTED[inside])
    final = guard.final(PREDICTED)
    assert final.value == pytest.approx(value, abs=1e-6)
    assert final.low <= value <= final.high


def test_an_area_under_the_curve_holds_where_scores_follow_the_order_of_the_rows():
    """Neighbouring rows of a sorted file are no independent pairs; the truth is 1/2, and .9 an impossible prior."""
    rows, missed = np.arange(400) / 400, 0
    for seed in range(40):
        labels = np.random.default_rng(seed).integers(0, 2, 400)
        with made_guard(
            None, labels, metric="roc_auc", queries=5, charges=1, vacuous=True, seed=seed
        ) as guard:
            assert guard.evaluate(rows, prior=0.9).charged
            final = guard.final(rows)
            missed += not final.low <= 0.5 <= final.high
            assert final.high - final.low > 0.05
    assert missed <= 7  # of 40 at 5%; more have probability 1e-4


def test_an_empty_confidence_set_certifies_nothing():
    empty = Crossed()
    assert not empty.certifies(Evidence(0.5, 0.4), EvidenceSet(3.0, 100))
    assert left_by(empty.ends(EvidenceSet(3.0, 100))) == (0.0, 1.0)


def test_a_difference_of_ratios_does_not_verify(tmp_path):
    with make("f1", tmp_path / "guard.db", queries=40) as guard:
        guard.gate(PREDICTED, 0.2)
    rewrite(tmp_path / "guard.db", lambda rows: [one._replace(kind="gate-compare") for one in rows])
    assert any("does not have" in one for one in verify(tmp_path / "guard.db").problems)
