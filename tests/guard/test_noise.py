"""The guard with noise and without: the same promises."""

import numpy as np
import pytest
from cases import for_each
from long_tests import GUARD
from made_guards import made_guard
from scipy import stats

from reusable_holdout.errors import Halted, LedgerMismatchError
from reusable_holdout.guard import released, verify
from reusable_holdout.noise import Calibration, SparseVector
from reusable_holdout.ways import State

QUIET = [0.0, 1e-6]  # noise that changes no decision of these tests


@for_each("noise", QUIET)
def test_an_honest_prior_is_agreed_with_and_another_is_corrected(make_guard, scoring, noise):
    guard = make_guard(noise=noise, seed=1)
    agreed = guard.evaluate(scoring(0.7), prior=0.72)
    assert (agreed.value, agreed.charged) == (0.72, False)
    corrected = guard.evaluate(scoring(0.7, 1), prior=0.85)
    assert (corrected.told, corrected.charged, corrected.charges_left) == ("cell 3", True, 2)
    assert corrected.value == pytest.approx(0.7, abs=1e-9)  # the middle of 0.65 and 0.75
    assert corrected.low < 0.7 < corrected.high


@for_each("noise", QUIET)
def test_it_halts_when_the_budget_is_spent(make_guard, spend, scoring, noise):
    guard = make_guard(noise=noise, seed=1)
    assert [answer.charges_left for answer in spend(guard)] == [2, 1, 0]
    with pytest.raises(Halted):
        guard.evaluate(scoring(0.7, 9), prior=0.7)


@for_each("noise", QUIET)
def test_the_same_question_gets_the_same_answer_free(make_guard, spend, noise):
    guard = make_guard(noise=noise, seed=1)
    (first,), (again,) = spend(guard, 1), spend(guard, 1)
    assert again.replayed
    assert (again.value, again.charges_left) == (first.value, first.charges_left)


def test_a_batch_decides_as_single_questions_do(make_guard, labels):
    """With noise as large as the deviations; a batch only shares the history before it."""
    rng = np.random.default_rng(5)
    wrong = rng.random((30, len(labels))) < rng.uniform(0.15, 0.35, 30)[:, None]
    predictions = np.where(wrong, 1 - labels, labels)
    settings = {"noise": 0.02, "seed": 4, "charges": 12}
    single, batch = make_guard(**settings), make_guard(**settings)
    alone = [single.evaluate(row, prior=0.75) for row in predictions]
    together = batch.evaluate(list(predictions), prior=np.full(30, 0.75))
    assert [answer.value for answer in alone] == [answer.value for answer in together]
    assert 0 < sum(answer.charged for answer in alone) < 12


@pytest.mark.parametrize("noise", QUIET)
def test_a_ledger_resumes_and_verifies_its_noise(make_guard, reopen, ledger, spend, scoring, noise):
    guard = make_guard(ledger, noise=noise)
    before = spend(guard, 2)
    guard.close()
    resumed = reopen(ledger)
    assert resumed.plan.noise == noise
    assert [answer.replayed for answer in spend(resumed, 2)] == [True, True]
    assert [answer.value for answer in spend(resumed, 2)] == [answer.value for answer in before]
    resumed.evaluate(scoring(0.7, 7), prior=0.85)
    assert verify(ledger).queries == 3
    assert released(ledger).history["charged"].all()


def test_other_noise_is_another_budget(make_guard, ledger):
    make_guard(ledger, noise=1e-6).close()
    with pytest.raises(LedgerMismatchError, match="noise"):
        make_guard(ledger, noise=0.0)


def test_it_runs_on_the_sparse_vector_with_the_scales_of_its_calibration(make_guard):
    guard = make_guard(noise=0.001, seed=1)
    core = guard._view.ways.main._at(State())
    calibration = Calibration("numeric-sparse", guard.plan.charges)
    unit = 0.001 * 2**32
    assert isinstance(core, SparseVector)
    scales = [float(scale) for scale in (core.scales.threshold, core.scales.query, core.scales.answer)]
    assert scales == pytest.approx([scale * unit for scale in calibration.scales])


@pytest.mark.long(*GUARD)
@for_each("noise", [0.0, 2e-4])
def test_intervals_cover_under_an_attack_that_is_told_much(noise):
    """Coin flips, thresholds near the sampling error, then the majority of what seemed good; false alarm 1e-9."""
    runs, rows, questions = 200, 1_000, 100
    missed = told = 0
    for run in range(runs):
        rng = np.random.default_rng([77, run])
        labels, guesses = rng.integers(0, 2, rows), rng.integers(0, 2, (questions, rows))
        guard = made_guard(
            None,
            labels,
            queries=questions + 1,
            charges=30,
            threshold=0.03,
            noise=noise,
            seed=run,
            classes=[0, 1],
            vacuous=True,
        )
        try:
            answers = guard.evaluate(list(guesses), prior=np.full(questions, 0.5))
            better = [i for i, answer in enumerate(answers) if answer.value > 0.5]
            vote = (guesses[better].sum(axis=0) * 2 >= len(better)).astype(int)
            answers.append(guard.evaluate(vote, prior=0.55))
        except Halted as halt:
            answers = halt.answers
        told += sum(answer.charged for answer in answers)
        missed += any(not answer.low <= 0.5 <= answer.high for answer in answers)
    assert told > 3 * runs
    assert missed <= stats.binom.isf(1e-9, runs, 0.05)
