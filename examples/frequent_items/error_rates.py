"""Error rates of a selection, against the c items with the largest scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def score_error_rate(selected: NDArray[np.float64], top: NDArray[np.float64]) -> float:
    """Compute SER: one less the average score of the selected items, in units of the average of the top c.

    It is 0 for the top c themselves. It does not depend on the number of selected items: for fewer than c good items it
    can be below 0. An empty selection has no average and counts as 1, like items with a score of 0.

    Parameters
    ----------
    selected : ndarray, shape (items selected,)
        Scores of the selected items.
    top : ndarray, shape (c,)
        The c largest scores.
    """
    return 1.0 - float(selected.mean() / top.mean()) if len(selected) else 1.0


def false_negative_rate(selected: NDArray[np.float64], top: NDArray[np.float64]) -> float:
    """Compute FNR: the fraction of the top c that is missed.

    Any item with exactly the c-th largest score counts as one of the top c.

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
    """Compute SER with a score of 0 for each of the c places that is left empty; with c items it is equal to SER.

    Parameters
    ----------
    selected : ndarray, shape (items selected,)
        Scores of the selected items.
    top : ndarray, shape (c,)
        The c largest scores.
    """
    return 1.0 - float(selected.sum() / top.sum())
