"""Retraversal: the sparse vector technique for queries that are all known at once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.sparse_vector.real_stream import Comparison
from reusable_holdout.mechanisms.sparse_vector.streams import StandardSVT


def retraversal(
    values: npt.ArrayLike,
    threshold: npt.ArrayLike,
    *,
    charges: int,
    epsilon: float,
    raised_by: float = 1.0,
    passes: int = 100,
    ratio: float | None = None,
    monotonic: bool = False,
    noise: Comparison = "laplace",
    sensitivity: float = 1.0,
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Select up to `charges` queries above a threshold; queries that were not selected are asked again.

    The selection is epsilon-differentially private: it is one `StandardSVT` stream in which a query may occur more than
    once. Queries below the threshold cost nothing, so they can be asked again. Therefore the threshold can be raised,
    so that fewer low queries are selected by accident.

    Parameters
    ----------
    values : array-like, shape (queries,)
        The queries' values on the private data, in the order in which they are asked. The order must not depend on the
        data.
    threshold : float or array-like, shape (queries,)
        Threshold in the query's unit: one for all queries, or each query's own. It must not depend on the data.
    charges : int
        Number of queries to select; at least 1.
    epsilon : float
        Privacy parameter of the selection; finite, > 0.
    raised_by : float
        Number of standard deviations of a query's noise by which the threshold is raised; 1 to 5 in the paper.
    passes : int
        Largest number of passes over the queries; at least 1.
    ratio, monotonic, noise, sensitivity, seed
        As for `StandardSVT`.

    Returns
    -------
    ndarray of int64, shape (selected,)
        Indices in the order of selection; at most `charges` of them.

    Raises
    ------
    InputError
        If a parameter is out of range, a value is NaN or beyond 2**60 grid steps, or `threshold` is neither one number
        nor one number for each value.

    References
    ----------
    .. [1] Lyu, Su and Li (2017), "Understanding the sparse vector technique for differential privacy", PVLDB 10(6),
       section 5.

    Examples
    --------
    >>> retraversal([0.0, 900.0, 0.0, 800.0], 500.0, charges=2, epsilon=1.0, seed=1).tolist()
    [1, 3]
    """
    if not math.isfinite(raised_by):
        raise InputError(f"raised_by is a finite number of standard deviations; got {raised_by}")
    if passes < 1:
        raise InputError(f"passes is at least 1; got {passes}")
    row = np.asarray(values)
    limits = _limits(threshold, len(row))
    stream = StandardSVT(
        raised_by,  # any number will do: every query has its own threshold
        charges=charges,
        epsilon=epsilon,
        ratio=ratio,
        monotonic=monotonic,
        noise=noise,
        sensitivity=sensitivity,
        seed=seed,
    )
    deviation = math.sqrt(2 if noise == "laplace" else 1) * float(stream.scales.query) * stream.step
    left, selected = np.arange(len(row)), [np.zeros(0, dtype=np.int64)]
    for _ in range(passes):
        above = stream.ask_many(row[left], limits[left] + raised_by * deviation)
        selected.append(left[: len(above)][above])
        left = np.delete(left, np.flatnonzero(above))
        if stream.halted:
            break
    return np.concatenate(selected)


def _limits(threshold: npt.ArrayLike, queries: int) -> npt.NDArray[np.float64]:
    """Return the threshold of each query."""
    try:
        given = np.asarray(threshold, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.asarray(np.nan)
    if given.shape not in ((), (queries,)) or not np.isfinite(given).all():
        raise InputError(
            f"thresholds are one finite number, or one for each of {queries} queries; got something else"
        )
    return np.broadcast_to(given, queries)
