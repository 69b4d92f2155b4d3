"""A check keeps step with its ledger, and a tie is charged however it is asked; by listed noise."""

from collections import defaultdict

import numpy as np
import pytest
from mechanisms.scripted_noise import ScriptedNoise, spent

from reusable_holdout import Plan, verify
from reusable_holdout.ledger import Transaction
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import Calibration, KeyedNoise, SparseVector, key_from_seed
from reusable_holdout.rules import Distance
from reusable_holdout.ways import State
from reusable_holdout.ways.check import Asked, Check

# ---- in step with the ledger

# Threshold noise after so many charges; the stated threshold is 0.1, and no other noise is drawn.
THRESHOLD_NOISE = (0.0, -0.05, 0.1)
PLENTY = {"charges": 25, "queries": 200}


@pytest.fixture
def listed_noise(monkeypatch):
    """Guards whose thresholds are 0.1, after a charge 0.05, after two 0.2."""
    script = defaultdict(int)
    for charges, noise in enumerate(THRESHOLD_NOISE):
        script["threshold", spent(charges)] = round(noise * GRID)
    monkeypatch.setattr("reusable_holdout.guard.view.KeyedNoise", lambda *_, **__: ScriptedNoise(script))


def out_of_memory(*_):
    """Fail as a commit may."""
    raise MemoryError


@pytest.mark.usefixtures("listed_noise")
def test_each_charge_renews_the_threshold_noise_of_every_process(make_guard, ledger, scoring):
    """Noise that is held past a charge is not what epsilon was computed for, and the processes would disagree."""
    one, other = (make_guard(ledger, **PLENTY) for _ in range(2))

    def charged(guard, score, prior):
        return guard.evaluate(scoring(score), prior=prior).charged

    assert not charged(other, 0.70, prior=0.77)  # 0.07 is below 0.1
    assert charged(one, 0.71, prior=0.86)
    assert charged(other, 0.72, prior=0.79)  # and above 0.05, which the other process has paid for
    assert not charged(one, 0.73, prior=0.88)  # and 0.15 is below 0.2
    assert not charged(other, 0.74, prior=0.89)
    assert verify(ledger).problems == []


@pytest.mark.usefixtures("listed_noise")
def test_a_batch_meets_the_threshold_noise_that_another_process_renewed(make_guard, ledger, scoring):
    one, other = (make_guard(ledger, **PLENTY) for _ in range(2))
    assert one.evaluate(scoring(0.71), prior=0.86).charged
    answers = other.evaluate([scoring(0.70), scoring(0.72), scoring(0.73)], prior=[0.72, 0.79, 0.88])
    assert [answer.charged for answer in answers] == [False, True, False]
    answers = one.evaluate([scoring(0.74), scoring(0.75)], prior=[0.89, 0.82])
    assert [answer.charged for answer in answers] == [False, False]


@pytest.mark.usefixtures("listed_noise")
def test_a_charge_whose_commit_failed_does_not_renew_the_threshold_noise(make_guard, monkeypatch, scoring):
    """The mechanism has gone on and the ledger has not: the ledger is what was spent."""
    guard = make_guard(**PLENTY)

    with monkeypatch.context() as broken:
        broken.setattr(Transaction, "append", out_of_memory)
        with pytest.raises(MemoryError):
            guard.evaluate(scoring(0.71), prior=0.86)
    assert not guard.evaluate(scoring(0.72), prior=0.79).charged  # 0.07 is still below 0.1
    assert guard.evaluate(scoring(0.71), prior=0.86).charged
    assert guard.evaluate(scoring(0.73), prior=0.80).charged


def test_the_last_charge_can_be_made_again_after_its_commit_failed(make_guard, monkeypatch, scoring):
    guard = make_guard(charges=1, noise=0.0)
    with monkeypatch.context() as broken:
        broken.setattr(Transaction, "append", out_of_memory)
        for _ in range(2):
            with pytest.raises(MemoryError):
                guard.evaluate(scoring(0.7), prior=0.85)
    answer = guard.evaluate(scoring(0.7), prior=0.85)
    assert (answer.told, answer.charged, answer.charges_left) == ("cell 4", True, 0)


def test_the_mechanism_stands_where_the_state_does_forwards_and_backwards():
    way = noisy()
    for charges in (0, 1, 3, 2, 2, 0, 3):
        state = State(charges=charges, last_charged=b"q%d" % charges)
        core, fresh = way._at(state), way.core(state)
        assert core.spent == charges
        assert core._offset == fresh._offset


def test_it_runs_on_the_sparse_vector_with_the_scales_of_its_calibration(make_guard):
    guard = make_guard(noise=0.001, seed=1)
    core = guard._view.ways.main._at(State())
    calibration = Calibration("numeric-sparse", guard.plan.charges)
    unit = 0.001 * 2**32
    assert isinstance(core, SparseVector)
    scales = [float(scale) for scale in (core.scales.threshold, core.scales.query, core.scales.answer)]
    assert scales == pytest.approx([scale * unit for scale in calibration.scales])


# ---- ties


def noisy():
    plan = Plan(rows=2_000, queries=40, charges=4, threshold=0.125, noise=0.01)
    return Check(plan.scores, "check", KeyedNoise(key_from_seed(3)), Distance(plan.scores))


def tied_score(way, prior, question, state):
    """Score above the prior that ties with its threshold, all noise counted; grid units."""
    core, limit = way._at(state), GRID // 8  # the threshold is 1/8
    return way.grid(prior) + limit + core._offset - int(core.query_noise([question])[0])


@pytest.mark.parametrize("charges", [0, 2])
def test_a_tie_is_charged_alone_and_in_a_batch(charges):
    """A question's price must not depend on how it was asked, and the certificate counts ties as charges."""
    way, state, prior = noisy(), State(charges=charges), 0.25
    assert way.unit(prior, state, None) == 0.125
    for question in (b"first", b"second", b"third"):
        tie = tied_score(way, prior, question, state)
        for score, expected in ((tie - 1, False), (tie, True), (tie + 1, True)):
            for count in (1, 3):  # what comes after it in a batch does not matter
                scores = np.full((count, 1), score, dtype=np.int64)
                digests = [question, *[b"others %d" % place for place in range(count - 1)]]
                asked = Asked(
                    digests, np.full(count, prior), None, scores, np.zeros(count, dtype=bool), np.zeros(count)
                )
                batch = way.decide(asked, state)
                assert (batch.outcomes[0] is not None) is expected
                assert batch.units[0] == 0.125
                _, alone = way.decide_one(asked.at([0]), state)
                assert alone.charged is expected


POINTS = {  # with a threshold of 1/8: prior, the score that ties with it, and one row to the free side
    "above": (0.375, 0.5, 0.4995),
    "below": (0.625, 0.5, 0.5005),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_question_at_its_threshold_is_charged_alone_and_in_a_batch(make_guard, scoring, point):
    prior, tie, short = POINTS[point]
    for score, expected in ((short, False), (tie, True)):
        alone, batch = (make_guard(threshold=0.125) for _ in "12")
        one = alone.evaluate(scoring(score), prior=prior)
        (many,) = batch.evaluate([scoring(score)], prior=[prior])
        assert one.charged is many.charged is expected
        assert one[:3] == many[:3]


def test_a_gate_accepts_from_one_row_on_alone_and_in_a_batch(make_guard, scoring):
    """No row before certifies the named value, every row after does."""
    accepted = []
    for right in range(1_050, 1_150):
        alone, batch = (make_guard(gates=True, threshold=None) for _ in "12")
        one = alone.gate(scoring(right / 2_000), 0.5)
        (many,) = batch.gate([scoring(right / 2_000)], [0.5])
        assert one[:3] == many[:3]
        accepted.append(one.charged)
    assert not accepted[0]
    assert accepted == sorted(accepted)
    assert accepted[-1]


def test_a_comparison_at_its_threshold_is_charged(make_guard, scoring):
    guard = make_guard(threshold=0.125)
    assert not guard.compare(scoring(0.6245), scoring(0.5), prior=0.0).charged
    assert guard.compare(scoring(0.625), scoring(0.5), prior=0.0).charged
