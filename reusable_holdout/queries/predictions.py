"""Predictions checked and brought into one canonical form.

The canonical bytes identify a question, so equal predictions must give equal bytes whatever container or
dtype they came in. Nothing here depends on the labels beyond their number and the set of classes, so messages
may quote predictions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.blocks import BLOCK, each_block
from reusable_holdout.queries.containers import as_array, one_column, real_array, typed_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from reusable_holdout.queries.classes import ClassCoder

__all__ = ["Predictions"]

_WHAT = "predictions"
_SLACK = 1e-6  # how far a probability, or a row's sum, may stray; float32 models do


class Predictions:
    """The form of the predictions that a metric needs.

    It knows the number of rows and the classes, both public, and no label.

    Parameters
    ----------
    response : {"labels", "probabilities", "scores", "values"}
        What a model must produce.
    rows : int
        Number of holdout rows.
    coder : ClassCoder, optional
        The classes, for labels and probabilities.

    Examples
    --------
    >>> Predictions("scores", rows=2, coder=None).prepare([1, -0.0])
    array([1., 0.])
    """

    def __init__(self, response: str, *, rows: int, coder: ClassCoder | None) -> None:
        self.rows = rows
        self._wide = 0  # columns of one query's matrix of probabilities, if it needs a matrix
        self._convert: Callable[[NDArray[Any]], NDArray[Any]] = _finite
        if response == "labels" and coder is not None:
            self._convert = partial(_codes, coder=coder)
        elif response == "probabilities" and coder is not None:
            self._wide = len(coder.classes)
            self._convert = _probabilities

    def prepare(self, predictions: object) -> NDArray[Any]:
        """One query in canonical form.

        Class codes in the smallest unsigned dtype, or C-contiguous float64 without negative zeros; always a
        copy.

        Parameters
        ----------
        predictions : array-like of shape (rows,) or (rows, classes)
            Labels, probabilities, scores or values.

        Returns
        -------
        numpy.ndarray of shape (rows,) or, for three or more classes' probabilities, (rows, classes)

        Raises
        ------
        InputError
            If the predictions do not fit.
        """
        array = one_column(as_array(predictions, what=_WHAT))
        prepared: NDArray[Any] = self._prepared(array[None])[0]
        return prepared

    def prepare_many(self, predictions: object) -> NDArray[Any]:
        """Several queries in canonical form, the query first.

        Each slice has the bytes that `prepare` gives for it.

        Parameters
        ----------
        predictions : array-like of shape (queries, rows[, classes]) or list of one array per query
            As for `prepare`.

        Returns
        -------
        numpy.ndarray of shape (queries, rows[, classes])

        Raises
        ------
        InputError
            If a query does not fit; the message begins with the first such query's index.
        """
        if isinstance(predictions, list | tuple):
            return self._one_by_one(predictions)
        array = as_array(predictions, what=_WHAT)
        if array.ndim == 1 and array.dtype.kind == "O":
            return self._one_by_one(list(array))
        if array.ndim < 2:
            raise InputError(
                f"predictions must have shape (queries, {self.rows}); got {array.shape}; "
                "add a leading axis for the queries"
            )
        self._check_shape(array)
        if array.dtype.kind == "O":  # each query is typed by itself
            return self._one_by_one(list(array))
        try:
            return self._prepared(array)
        except InputError:
            return self._one_by_one(list(array))  # finds the first query that does not fit

    def _one_by_one(self, queries: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
        if not queries:
            raise InputError("predictions must hold at least one query; got none; pass one array per query")
        prepared = []
        for index, query in enumerate(queries):
            try:
                prepared.append(self.prepare(query))
            except InputError as error:
                raise InputError(f"query {index}: {error}") from None
        return np.stack(prepared)

    def _prepared(self, array: NDArray[Any]) -> NDArray[Any]:
        self._check_shape(array)
        return self._convert(array)

    def _check_shape(self, array: NDArray[Any]) -> None:
        """Refuse arrays that are not (queries, rows), or (queries, rows, classes) for probabilities."""
        narrow = array.ndim == 2 and self._wide in {0, 2}
        wide = array.ndim == 3 and self._wide and array.shape[2] == self._wide
        if len(array) and array.shape[1:2] == (self.rows,) and (narrow or wide):
            return
        if array.ndim == 2 and narrow and len(array) == self.rows:
            hint = "transpose it, so that each query is a row"
        elif array.ndim == 3 and self._wide == 0:
            hint = "pass one number or label per row, e.g. one column of predict_proba"
        else:
            hint = "predict every holdout row once, in order"
        expected = f"({self.rows},)" if self._wide in {0, 2} else f"({self.rows}, {self._wide})"
        raise InputError(
            f"predictions must have shape {expected} for each query; got {array.shape[1:]} "
            f"in {len(array)} queries; {hint}"
        )


def _codes(array: NDArray[Any], *, coder: ClassCoder) -> NDArray[Any]:
    labels, kind = typed_array(array, what=_WHAT)
    if kind != coder.kind:
        raise InputError(f"predicted labels must be {coder.kind} like the classes; got {kind}; convert them")
    codes = coder.encode(labels)
    if codes is None:
        raise InputError(_about_strangers(labels, coder.classes))
    return codes


def _about_strangers(labels: NDArray[Any], classes: NDArray[Any]) -> str:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return "predicted labels must be finite; got NaN or infinity; predict a class for every row"
    stranger = labels[~np.isin(labels, classes)].flat[0]
    shown = ", ".join(str(one) for one in classes[:10]) + (", ..." if len(classes) > 10 else "")
    return (
        f"predicted labels must be among the classes {shown}; got {stranger}; "
        "pass classes= when binding if it may occur"
    )


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    flat = np.ascontiguousarray(real_array(array, what=_WHAT)).reshape(-1)
    out = np.empty(flat.size)
    bad: list[slice] = []

    def work(piece: slice) -> None:
        with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite and is refused
            out[piece] = flat[piece]
        out[piece] += 0.0  # turns -0.0 into 0.0
        if not np.isfinite(out[piece]).all():
            bad.append(piece)

    each_block(work, flat.size)
    if bad:
        raise InputError("predictions must be finite; got NaN or infinity; predict a number for every row")
    return out.reshape(array.shape)


def _probabilities(array: NDArray[Any]) -> NDArray[Any]:
    """Check probabilities; of a binary matrix keep the last column: matrix and vector are one question."""
    out = _finite(array)
    low, high = out.min(), out.max()
    if low < -_SLACK or high > 1 + _SLACK:
        raise InputError(
            f"probabilities must lie in [0, 1]; got {low if low < -_SLACK else high:.6g}; "
            "pass predict_proba's output, not decision scores"
        )
    if out.ndim == 3:
        _check_sums(out)
    if low < 0 or high > 1:
        np.clip(out, 0.0, 1.0, out=out)
        out += 0.0
    return np.ascontiguousarray(out[..., 1]) if out.ndim == 3 and out.shape[2] == 2 else out


def _check_sums(array: NDArray[Any]) -> None:
    matrix = array.reshape(-1, array.shape[-1])
    bad: list[float] = []

    def work(piece: slice) -> None:
        sums = matrix[piece].sum(axis=1)
        far = np.abs(sums - 1) > _SLACK
        if far.any():
            bad.append(float(sums[far][0]))

    each_block(work, len(matrix), max(1, BLOCK // array.shape[-1]))
    if bad:
        raise InputError(
            f"a row's probabilities must sum to 1 within 1e-6; got {bad[0]:.6g}; "
            "pass one column for each class, in sorted order"
        )
