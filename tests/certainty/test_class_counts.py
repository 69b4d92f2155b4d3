"""Class counts told beside unconditional questions of the same rows: priced they fit the promise, free they break it.

Exact: an analyst is told of the counts and then has a constant model certified if they look extreme, or else another
one. Who always asks the same misses with at most what is allowed; who may choose by counts that cost nothing misses
twice as often.
"""

import math

import numpy as np
import pytest
from cases import for_each
from scipy import stats

from reusable_holdout.certainty import THEORY, ConfidenceBound, TranscriptCode

BETA = 0.05
CODE = TranscriptCode(queries=1, charges=1)


def misses(rows, truth, length):
    """Whether a final of a model with this accuracy misses, for every number of rows it is right on."""
    log_level = math.log(BETA / 2.0) - length
    bound = ConfidenceBound("binomial", rows=rows, sum_of_squares=1.0 / rows)
    values = np.arange(rows + 1) / rows
    low = np.array([bound.lower(value, log_level=log_level) for value in values])
    high = np.array([bound.upper(value, log_level=log_level) for value in values])
    return (truth < low) | (truth > high)


def chance_of_a_miss(rows, share, *, nats, sees):
    """Probability that the answer misses, of the analyst who chooses best by what she sees of the counts.

    `nats` is what a number of positives costs, `sees` what she is told of it.
    """
    positives = np.arange(rows + 1)
    weight = stats.binom.pmf(positives, rows, share)
    total, told = 0.0, {}
    for count in positives[1:-1]:
        told.setdefault(sees(count), []).append(count)
    for counts in told.values():
        length = CODE.final_length(charges=0, nats=nats(counts[0]))
        chance = weight[counts].sum()
        constant = float((weight * misses(rows, share, length))[counts].sum())
        other = chance * float((stats.binom.pmf(positives, rows, 0.7) * misses(rows, 0.7, length)).sum())
        total += max(constant, other)
    return total


def place(count, rows, guess):
    """Cell that is told: of the rows of the rarer class, against those guessed."""
    return THEORY.counts.place(min(count, rows - count) / (min(guess, 1.0 - guess) * rows))


ALLOWED = BETA * math.exp(-CODE.final_length(charges=0))


@for_each(
    ("rows", "share", "guess"),
    [(60, 0.5, 0.5), (200, 0.5, 0.5), (200, 0.22, 0.22), (200, 0.22, 0.5), (400, 0.1, 0.1)],
)
def test_priced_counts_keep_what_is_allowed(rows, share, guess):
    def sees(count):
        return place(count, rows, guess)

    found = chance_of_a_miss(rows, share, nats=lambda count: THEORY.counts.nats(sees(count)), sees=sees)
    assert 0.0 < found <= ALLOWED


def test_counts_that_are_told_free_break_it():
    free = chance_of_a_miss(200, 0.5, nats=lambda _: 0.0, sees=lambda count: count)
    assert free > 1.4 * ALLOWED
    blind = chance_of_a_miss(200, 0.5, nats=lambda _: 0.0, sees=lambda _: 0)
    assert blind == pytest.approx(min(blind, ALLOWED))
