"""Adaptive analysts against checks and gates: labels are coin flips, so everything has a population accuracy of 0.5.

The seeds are fixed; a run counts as missed if any interval of it misses one half. False alarm 1e-9.
"""

import numpy as np
import pytest
from cases import for_each
from long_tests import GUARD
from made_guards import made_guard
from scipy import stats

from reusable_holdout.errors import Halted

pytestmark = pytest.mark.long(*GUARD)

RUNS, ROWS, TRUTH = 200, 900, 0.5
MOST_MISSES = stats.binom.isf(1e-9, RUNS, 0.05)
WAYS = ["check", "gate"]
NAMED = {"check": TRUTH, "gate": TRUTH - 0.08}  # low enough that a gate certifies it of guesses
# thresholds near the sampling error: much is told
TALKATIVE = {"threshold": 0.02, "charges": 40, "estimate": TRUTH}


def flips(rng, *shape):
    return rng.integers(0, 2, shape, dtype=np.uint8)


def guard_of(labels, way, seed, *, queries, **changes):
    settings = {**TALKATIVE, "noise": 1e-4, **changes}
    if way == "gate":  # it has no threshold
        settings |= {"threshold": None}
    return made_guard(
        None,
        labels,
        gates=way == "gate",
        queries=queries,
        seed=seed,
        classes=[0, 1],
        vacuous=True,
        **settings,
    )


def ask(guard, way, subject, prior):
    return guard.gate(subject, prior) if way == "gate" else guard.evaluate(subject, prior=prior)


def ask_all(guard, way, questions, prior):
    try:
        return ask(guard, way, list(questions), np.full(len(questions), prior))
    except Halted as halt:
        return halt.answers


def missed(answers):
    return any(not answer.low <= TRUTH <= answer.high for answer in answers)


def boost(guard, way, rng, rows, questions):
    """Ask random votes in a batch, then the majority of those that seemed good; all answers and the vote."""
    classifiers = flips(rng, questions, rows)
    answers = ask_all(guard, way, classifiers, NAMED[way])
    if way == "check":
        values = np.array([answer.value for answer in answers])
        better, worse = np.flatnonzero(values > TRUTH), np.flatnonzero(values < TRUTH)
    else:
        better = np.flatnonzero([answer.charged for answer in answers])
        worse = np.setdiff1d(np.arange(len(answers)), better)
    chosen = np.concatenate([classifiers[better], 1 - classifiers[worse]]) if len(better) else classifiers[:1]
    vote = (2 * chosen.sum(axis=0, dtype=np.int64) >= len(chosen)).astype(np.uint8)
    return answers + ask_all(guard, way, vote[None], TRUTH + 0.05), vote


def flip_pairs(guard, way, rng, rows, questions, block=2):
    """Flip a few labels of the best vector; keep them if the answer says so. All answers and the last vector."""
    best, value, answers = flips(rng, rows), NAMED[way], []
    try:
        for number in range(questions):
            tried = best.copy()
            if number:
                tried[rng.integers(0, rows, block)] ^= 1
            answer = ask(guard, way, tried, value)
            answers.append(answer)
            if answer.charged if way == "gate" else answer.value > value:
                best = tried
                value = min(1.0, value + block / rows / 2) if way == "gate" else answer.value
    except Halted:
        pass
    return answers, best


@for_each("way", WAYS)
def test_intervals_hold_under_the_boosting_attack(way):
    misses = told = voted = 0
    gains = []
    for run in range(RUNS):
        rng = np.random.default_rng([11, run])
        labels = flips(rng, ROWS)
        guard = guard_of(labels, way, run, queries=101)
        answers, vote = boost(guard, way, rng, ROWS, 100)
        misses += missed(answers)
        told += sum(answer.charged for answer in answers)
        voted += len(answers) == 101
        gains.append((vote == labels).mean() - TRUTH)
    assert misses <= MOST_MISSES
    assert told >= RUNS
    assert np.mean(gains) > 0.01  # the attack works: only the intervals stand in its way


@for_each("way", WAYS)
@for_each("block", [2, 40])
def test_intervals_hold_under_the_flip_attack(way, block):
    misses = 0
    told = []
    for run in range(RUNS):
        rng = np.random.default_rng([12, run])
        labels = flips(rng, ROWS)
        guard = guard_of(labels, way, run, queries=60)
        answers, _ = flip_pairs(guard, way, rng, ROWS, 60, block)
        misses += missed(answers)
        told.append(sum(answer.charged for answer in answers))
    assert misses <= MOST_MISSES
    assert np.mean(told) >= 1
