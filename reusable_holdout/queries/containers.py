"""Whatever people keep labels and predictions in, as NumPy arrays of booleans, numbers or text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Kind",
    "as_array",
    "as_floats",
    "from_arrow",
    "no_array",
    "one_column",
    "real_array",
    "typed_array",
]

Kind = Literal["numbers", "text"]

_KINDS: dict[str, Kind] = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text"}
_OBJECTS: dict[str, Any] = {
    "boolean": np.bool_,
    "integer": np.int64,
    "floating": np.float64,
    "mixed-integer-float": np.float64,
    "string": np.str_,
}


def from_arrow(values: Any) -> Any:
    """Pandas object of a pyarrow table, batch or array; anything else as it is. pyarrow is not imported for that."""
    if not type(values).__module__.startswith("pyarrow.") or not hasattr(values, "to_pandas"):
        return values
    return values.to_pandas()


def as_array(values: object, *, what: str) -> NDArray[Any]:
    """NumPy array of a list, array, pandas, polars or pyarrow object, or sparse matrix.

    Nothing is converted in meaning: a list that mixes text and numbers stays a list of objects and is refused
    later, never turned into text.

    Parameters
    ----------
    values : array-like
        Lists, NumPy, pandas, polars, pyarrow, scipy.sparse, or anything with ``__array__``.
    what : str
        What the values are, for messages.

    Raises
    ------
    InputError
        If the values are ragged or masked, or no array at all.

    Examples
    --------
    >>> as_array([0, 1, 1], what="predictions")
    array([0, 1, 1])
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{what} must not be missing; got masked entries; drop or fill them")
    values = from_arrow(values)
    for method in ("to_numpy", "toarray"):  # pandas and polars; scipy.sparse
        if not isinstance(values, type) and callable(getattr(values, method, None)):
            return np.asarray(getattr(values, method)())
    problem = ""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
            array = np.array(values, dtype=object)  # NumPy writes [1, "a"] as text; keep what was given
    except (ValueError, TypeError):
        problem = (
            f"{what} must form a rectangular array; got rows of different lengths; make them equally long"
        )
    if problem:
        raise InputError(problem)
    if array.ndim == 0 and array.dtype.kind == "O":
        raise no_array(values, what=what)
    return array


def no_array(values: object, *, what: str) -> InputError:
    """Error for what is no array: what came, by its type alone, and what to pass."""
    came, advice = f"got {type(values).__name__}", "convert it"
    if values is None:
        came, advice = "got None", "pass them"
    elif isinstance(values, type):
        came, advice = f"got the class {values.__name__}", "make an object"
    elif isinstance(values, str | bytes | PurePath):
        came, advice = "got text or a path, not data", "read the file first"
    elif isinstance(values, Mapping):
        advice = "pass its values as a list, in the order of the rows"
    elif isinstance(values, Set):
        advice = "a set has no order: pass a list in the order of the rows"
    elif isinstance(values, Iterator):
        advice = "it can be read once only: pass a list of it"
    elif hasattr(values, "predict"):
        advice = "pass what the model predicts, or ask about the model itself"
    elif hasattr(values, "collect"):
        advice = "pass what its collect() gives"
    return InputError(f"{what} must be a list or an array, with an entry for each row; {came}; {advice}")


def one_column(array: NDArray[Any]) -> NDArray[Any]:
    """Flatten a (rows, 1) column to (rows,); leave anything else alone.

    Parameters
    ----------
    array : numpy.ndarray
        Any shape.

    Examples
    --------
    >>> one_column(np.zeros((3, 1))).shape
    (3,)
    """
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def typed_array(array: NDArray[Any], *, what: str) -> tuple[NDArray[Any], Kind]:
    """Array of numbers or text in native byte order, and which of these it is.

    Booleans are the numbers 0 and 1. Objects are looked at one by one: a mixture is refused, and no value is
    quoted.

    Parameters
    ----------
    array : numpy.ndarray
        Any dtype and shape.
    what : str
        What the values are, for messages.

    Raises
    ------
    InputError
        If entries are missing, complex, dates, bytes, or of several kinds.

    Examples
    --------
    >>> typed_array(np.array(["yes", "no"], dtype=object), what="labels")
    (array(['yes', 'no'], dtype='<U3'), 'text')
    """
    if array.dtype.kind in "OT":
        array = _from_objects(array.astype(np.object_), what=what)
    kind = _KINDS.get(array.dtype.kind)
    if kind is None:
        raise InputError(
            f"{what} must be booleans, real numbers or text; got dtype {array.dtype}; convert them"
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")), kind


def real_array(array: NDArray[Any], *, what: str) -> NDArray[Any]:
    """Array of real numbers; booleans count as 0 and 1.

    Parameters
    ----------
    array : numpy.ndarray
        Any dtype and shape.
    what : str
        What the values are, for messages.

    Raises
    ------
    InputError
        If the entries are not real numbers. Text is not parsed.

    Examples
    --------
    >>> real_array(np.array([1, 2.5], dtype=object), what="scores")
    array([1. , 2.5])
    """
    array, kind = typed_array(array, what=what)
    if kind == "text":
        raise InputError(f"{what} must be real numbers; got text; convert them to numbers")
    return array


def _from_objects(array: NDArray[Any], *, what: str) -> NDArray[Any]:
    import pandas as pd  # noqa: PLC0415 - a slow import that arrays of numbers do not need

    flat = array.ravel()
    if pd.isna(flat).any():
        raise InputError(f"{what} must not be missing; got NaN or None; drop or fill them")
    kind = pd.api.types.infer_dtype(flat, skipna=False)
    if flat.size and kind not in _OBJECTS:
        raise InputError(
            f"{what} must be all booleans, all real numbers or all text; got objects ({kind}); convert them"
        )
    too_large = False
    try:
        converted: NDArray[Any] = flat.astype(_OBJECTS.get(kind, np.float64))
    except OverflowError:
        too_large = True
    if too_large:
        raise InputError(f"{what} must fit 64-bit integers; got a larger one; use text for such labels")
    return converted.reshape(array.shape)


def as_floats(values: object) -> NDArray[Any]:
    """Float array of what a user gives, or an empty one that fits nothing if that is not real numbers.

    Whatever goes wrong inside is withheld.

    Examples
    --------
    >>> as_floats([True, 2]), as_floats(1j).shape
    (array([1., 2.]), (0, 0))
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO" and values is not None:  # NumPy reads None as NaN
            return array.astype(np.float64)
    except Exception:  # noqa: S110 - whatever a user's own object raises may quote the labels
        pass
    return np.empty((0, 0))
