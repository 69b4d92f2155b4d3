"""Adaptive analysts who try to fool the guard: its intervals hold, where a plain holdout is fooled.

All labels are coin flips that nothing can predict, so the population accuracy of whatever is asked about is one half.
Every seed is fixed: a run that holds today holds always.
"""

import numpy as np
import pytest
from long_tests import GUARD
from made_guards import made_guard

from reusable_holdout.errors import Halted

pytestmark = pytest.mark.long(*GUARD)

RUNS, ROWS, CLASSIFIERS = 200, 10_000, 1_000
TRUTH = 0.5
# of 200 runs at confidence 0.95
MOST_MISSES = 10
PLANS = {
    "planned": {"tolerance": 0.05},
    # a threshold of 1.6 standard deviations: a tenth of all questions is charged, and told nearly exactly
    "talkative": {"threshold": 0.008, "charges": 60, "noise": 1e-5},
}


def flips(rng, shape):
    """Coin flips, as bytes of 0 and 1."""
    count = int(np.prod(shape))
    return np.unpackbits(np.frombuffer(rng.bytes(-(-count // 8)), np.uint8))[:count].reshape(shape)


def majority(classifiers):
    """Vote of classifiers; ties go to 1."""
    return (2 * classifiers.sum(axis=0, dtype=np.int32) >= len(classifiers)).astype(np.uint8)


def answered(ask):
    """Answers of a batch, up to a halt."""
    try:
        return ask()
    except Halted as halt:
        return halt.answers


def good(classifiers, answers):
    """What the analyst takes from the answers: those above one half, and the reverse of those below."""
    values = np.array([answer.value for answer in answers])
    better, worse = np.flatnonzero(values > TRUTH), np.flatnonzero(values < TRUTH)
    chosen = np.concatenate([classifiers[better], 1 - classifiers[worse]])
    return chosen if len(chosen) else classifiers[:1]


def misses(answers):
    return [answer for answer in answers if not answer.low <= TRUTH <= answer.high]


def majority_attack(rng, settings, *, claim, seed):
    """Ask a thousand coin flips in a batch, then the vote of the good ones; all answers."""
    labels, classifiers = flips(rng, ROWS), flips(rng, (CLASSIFIERS, ROWS))
    guard = made_guard(
        None, labels, queries=CLASSIFIERS + 1, seed=seed, classes=[0, 1], vacuous=True, **settings
    )
    answers = answered(lambda: guard.evaluate(list(classifiers), prior=np.full(CLASSIFIERS, TRUTH)))
    vote = majority(good(classifiers, answers))
    return answers + answered(lambda: guard.evaluate([vote], prior=[claim])), labels, classifiers


@pytest.mark.parametrize("plan", PLANS)
def test_the_majority_attack_on_a_batch_does_not_fool_the_guard(plan):
    missed, charged, voted = 0, 0, 0
    for run in range(RUNS):
        rng = np.random.default_rng([31, run])
        claim = TRUTH if run % 2 else 0.55
        answers, _, _ = majority_attack(rng, PLANS[plan], claim=claim, seed=run)
        missed += bool(misses(answers))
        charged += sum(answer.charged for answer in answers)
        voted += len(answers) == CLASSIFIERS + 1
    assert missed <= MOST_MISSES
    if plan == "talkative":
        assert charged > RUNS * 20  # she was told a lot
    else:
        assert voted > 0.9 * RUNS  # she got to ask about the vote


def test_the_majority_attack_fools_a_plain_holdout():
    """The twin: with exact accuracies of all questions, the vote looks ten points better than it is."""
    votes = []
    for run in range(10):
        rng = np.random.default_rng([31, run])
        labels, classifiers = flips(rng, ROWS), flips(rng, (CLASSIFIERS, ROWS))
        right = (classifiers == labels).sum(axis=1)
        chosen = np.where((2 * right < ROWS)[:, None], 1 - classifiers, classifiers)
        votes.append((majority(chosen) == labels).mean())
    assert np.mean(votes) == pytest.approx(0.60, abs=0.01)
    assert min(votes) > TRUTH + 7 * 0.005  # seven standard errors of one honest question


def test_the_majority_attack_one_by_one_does_not_fool_the_guard():
    """Fewer rows and questions, for each is a transaction; each prior may depend on all answers before."""
    rows, count, missed, gains = 1_000, 100, 0, []
    for run in range(RUNS):
        rng = np.random.default_rng([47, run])
        labels, classifiers = flips(rng, rows), flips(rng, (count, rows))
        guard = made_guard(
            None, labels, queries=count + 1, seed=run, vacuous=True, threshold=0.02, charges=60, noise=1e-5
        )
        answers = []
        try:
            for classifier in classifiers:
                answers += [guard.evaluate(classifier, prior=TRUTH)]
        except Halted:
            pass
        chosen = good(classifiers, answers)
        vote = majority(chosen)
        # one half, or what she believes the vote of so many lucky ones to be
        prior = TRUTH if run % 2 else TRUTH + 0.4 * np.sqrt(len(chosen) / rows)
        answers += answered(lambda g=guard, v=vote, p=prior: g.evaluate([v], prior=[p]))
        missed += bool(misses(answers))
        gains.append((vote == labels).mean() - TRUTH)
    assert missed <= MOST_MISSES
    assert np.mean(gains) > 0.05  # the attack works: only the intervals stand in its way
