"""What one row can change, found by trying: every small holdout, and climbing on larger ones."""

import itertools
import math

import numpy as np

from reusable_holdout.metrics import GRID


def largest_changes(bound, predictions):
    """Largest change in grid units that each row's prediction makes, over all predictions; shape (rows,).

    Parameters
    ----------
    bound : BoundMetric
    predictions : numpy.ndarray of shape (choices,) or (choices, classes)
        What may be predicted for a row.
    """
    choices, rows = len(predictions), bound.rows
    every = np.array(list(itertools.product(range(choices), repeat=rows)))
    scores = bound.score(bound.prepare_many(predictions[every])).reshape((choices,) * rows)
    return np.array([int((scores.max(axis=row) - scores.min(axis=row)).max()) for row in range(rows)])


def climbed_change(bound, draw, rng, *, starts=6, steps=150):
    """Largest change in grid units of any one row that climbing finds.

    `draw(rng, rows)` gives predictions for so many rows. A step redraws some rows and is kept unless the best change
    gets smaller.
    """
    best = 0
    for _ in range(starts):
        current, reached = draw(rng, bound.rows), 0
        for _ in range(steps):
            tried = current.copy()
            some = rng.random(bound.rows) < rng.choice([0.02, 0.1, 0.5])
            tried[some] = draw(rng, int(some.sum()))
            change = _change_of_some_row(bound, tried, draw, rng)
            if change >= reached:
                current, reached = tried, change
        best = max(best, reached)
    return best


def _change_of_some_row(bound, predictions, draw, rng, *, rows=6):
    """Largest change of a few rows, one by one."""
    queries = [predictions]
    for row in rng.integers(0, bound.rows, rows):
        other = predictions.copy()
        other[row] = draw(rng, 1)[0]
        queries.append(other)
    scores = bound.score(bound.prepare_many(np.stack(queries)))
    return int(np.abs(scores[1:] - scores[0]).max())


def allowed(bound):
    """Most grid units a row may change the score by."""
    return math.ceil(bound.sensitivity * GRID)
