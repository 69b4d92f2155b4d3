"""How far a selection falls short of the c items with the largest scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def score_error_rate(selected: NDArray[np.float64], top: NDArray[np.float64]) -> float:
    """SER: one less the average score of the selected items, in units of the average of the top c.

    0 for the top c themselves. It does not see how many items were selected: those who select fewer than c, all of them
    good, can be below 0. An empty selection has no average; it counts as 1, as items without any score would.

    Parameters
    ----------
    selected : ndarray, shape (items selected,)
        Scores of the selected items.
    top : ndarray, shape (c,)
        The c largest scores.
    """
    return 1.0 - float(selected.mean() / top.mean()) if len(selected) else 1.0


def false_negative_rate(selected: NDArray[np.float64], top: NDArray[np.float64]) -> float:
    """FNR: fraction of the top c that is missed.

    Which items with exactly the c-th largest score belong to the top c is left open: any of them do.

    Parameters
    ----------
    selected : ndarray, shape (items selected,)
        Scores of the selected items.
    top : ndarray, shape (c,)
        The c largest scores.
    """
    found = min(int(np.count_nonzero(selected >= top.min())), len(top))
    return 1.0 - found / len(top)


def missed_score(selected: NDArray[np.float64], top: NDArray[np.float64]) -> float:
    """SER with a score of 0 for each of the c places that is left empty; equal to it when c items are selected.

    Parameters
    ----------
    selected : ndarray, shape (items selected,)
        Scores of the selected items.
    top : ndarray, shape (c,)
        The c largest scores.
    """
    return 1.0 - float(selected.sum() / top.sum())
