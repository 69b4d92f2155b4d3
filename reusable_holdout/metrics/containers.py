"""Conversion of labels and predictions from users' containers to NumPy arrays of booleans, numbers or text.

Columns that do not fit into memory are read piece by piece, from Dask or from an object with a method ``row_pieces``.
They are read once, in order, and the copy that is kept is small: whole numbers in the fewest bytes that hold them, and
text as codes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError

Kind = Literal["numbers", "text"]

_KINDS: dict[str, Kind] = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text"}
_OBJECTS: dict[str, Any] = {
    "boolean": np.bool_,
    "integer": np.int64,
    "floating": np.float64,
    "mixed-integer-float": np.float64,
    "string": np.str_,
}
_AHEAD = min(os.cpu_count() or 1, 8)  # number of Dask chunks that are computed, and held in memory, together
BLOCK = 1 << 17  # rows worked on at a time: their bytes stay in a processor's cache


def from_arrow(values: Any) -> Any:
    """Return the pandas object of a pyarrow table, batch or array, and anything else unchanged.

    This does not import pyarrow.
    """
    if not type(values).__module__.startswith("pyarrow.") or not hasattr(values, "to_pandas"):
        return values
    return values.to_pandas()


def as_array(values: object, *, what: str) -> NDArray[Any]:
    """Convert a list, array, sparse matrix, or pandas, polars or pyarrow object to a NumPy array.

    Error messages call the values `what`. No value changes its meaning: a list that mixes text and numbers becomes an
    array of objects, which a later check refuses, and never an array of text.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{what} must not be missing; got masked entries; drop or fill them")
    values = from_arrow(values)
    for method in ("to_numpy", "toarray"):  # pandas and polars; scipy.sparse
        if not isinstance(values, type) and callable(getattr(values, method, None)):
            return np.asarray(getattr(values, method)())
    array = None
    with suppress(ValueError, TypeError):
        array = np.asarray(values)
        if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
            array = np.array(values, dtype=object)  # NumPy writes [1, "a"] as text; keep the objects
    if array is None:  # outside of the block, so that the error does not carry the values
        raise InputError(f"{what} must form a rectangular array; got rows of unlike lengths; make them equal")
    if array.ndim == 0 and array.dtype.kind == "O":
        raise no_array(values, what=what)
    return array


def no_array(values: object, *, what: str) -> InputError:
    """Return the error for an object that is not an array: it names only the object's type, and says what to pass."""
    came, advice = f"got {type(values).__name__}", "convert it"
    if values is None:
        came, advice = "got None", "pass them"
    elif isinstance(values, type):
        came, advice = f"got the class {values.__name__}", "make an object of it"
    elif isinstance(values, str | bytes | PurePath):
        came, advice = "got text or a path, not data", "read the file first"
    elif isinstance(values, Mapping | Set | Iterator):
        advice = "pass a list of the values, in the order of the rows"
    elif hasattr(values, "predict"):
        advice = "pass what the model predicts, or ask about the model itself"
    elif hasattr(values, "collect"):
        advice = "pass what its collect() gives"
    return InputError(f"{what} must be a list or an array, with an entry for each row; {came}; {advice}")


def index_of(values: object) -> Any:
    """Return the index of a pandas object, and None for anything else; this does not import pandas."""
    index = None if isinstance(values, type) else getattr(values, "index", None)
    return index if type(index).__module__.partition(".")[0] == "pandas" else None


def is_reordered(values: object, index: Any) -> bool:
    """Return True if a pandas object's index has the same labels as `index`, each once, in another order.

    The answer is False for pandas' default index, for other labels, and for labels that occur twice.
    """
    own = index_of(values)
    if own is None or index is None or len(own) != len(index) or own.nlevels != index.nlevels:
        return False
    is_default = (getattr(own, "start", None), getattr(own, "step", None)) == (0, 1)
    if is_default or own.equals(index):
        return False
    try:
        if own[0] not in index or not (index.is_unique and own.is_unique):
            return False
        places = np.asarray(index.get_indexer(own))
    except Exception:  # labels that cannot be looked up, such as overlapping intervals
        return False
    return bool((places >= 0).all() and (np.diff(places) < 0).any())


def check_same_order(rows: object, beside: object, *, names: tuple[str, str], nothing: str) -> None:
    """Refuse two pandas objects whose indexes have the same labels in different orders: rows would be mixed up.

    The message quotes no label, and ends with the text `nothing`.
    """
    if is_reordered(beside, index_of(rows)):
        first, second = names
        raise InputError(
            f"{first} and {second} must have their rows in the same order; their indexes hold the same labels in "
            f"another order; pass {second}.loc[{first}.index], or {second}.to_numpy() if they are in order; {nothing}"
        )


def one_column(array: NDArray[Any]) -> NDArray[Any]:
    """Flatten a (rows, 1) column to (rows,), and return anything else unchanged."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def column_of(values: object, rows: int, *, what: str, advice: str) -> NDArray[Any]:
    """Convert public values, such as weights, to an array, and refuse it unless its shape is (rows,)."""
    given = one_column(as_array(values, what=what))
    if given.shape != (rows,):
        raise InputError(f"{what} must have shape ({rows},); got {given.shape}; {advice}")
    return given


def typed_array(array: NDArray[Any], *, what: str) -> tuple[NDArray[Any], Kind]:
    """Return an array of numbers or text in native byte order, and its kind; booleans count as numbers.

    The elements of an object array are inspected. A mixture of kinds or a missing value is refused, and no value is
    quoted.
    """
    if array.dtype.kind in "OT":
        array = _from_objects(array.astype(np.object_), what=what)
    kind = _KINDS.get(array.dtype.kind)
    if kind is None:
        raise InputError(
            f"{what} must be booleans, real numbers or text; got dtype {array.dtype}; convert them"
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")), kind


def _from_objects(array: NDArray[Any], *, what: str) -> NDArray[Any]:
    flat = array.ravel()
    if pd.isna(flat).any():
        raise InputError(f"{what} must not be missing; got NaN or None; drop or fill them")
    kind = pd.api.types.infer_dtype(flat, skipna=False)
    if flat.size and kind not in _OBJECTS:
        raise InputError(
            f"{what} must be all booleans, all real numbers or all text; got objects ({kind}); convert them"
        )
    with suppress(OverflowError):
        converted: NDArray[Any] = flat.astype(_OBJECTS.get(kind, np.float64))
        return converted.reshape(array.shape)
    raise InputError(f"{what} must fit 64-bit integers; got a larger one; use text for such labels")


def real_array(array: NDArray[Any], *, what: str) -> NDArray[Any]:
    """Return an array of real numbers; booleans count as 0 and 1, and text is not parsed."""
    array, kind = typed_array(array, what=what)
    if kind == "text":
        raise InputError(f"{what} must be real numbers; got text; pass numbers, such as predict_proba's")
    return array


def as_floats(values: object) -> NDArray[Any]:
    """Convert a user's object to an array of floats, or to an empty array if it does not hold real numbers.

    The empty array has a shape that every later check refuses. If the object's own code raises, the error is withheld,
    because it may quote labels.
    """
    with suppress(Exception):  # an error of a user's own object may quote the labels
        array = np.asarray(values)
        if array.dtype.kind in "biufO" and values is not None:  # NumPy reads None as NaN
            return array.astype(np.float64)
    return np.empty((0, 0))


def check_class_labels(labels: NDArray[Any]) -> None:
    """Refuse numeric class labels that are not whole or too large for 64 bits; the message quotes no label."""
    if any(whole_numbers(labels[rows]) is None for rows in in_blocks(len(labels))):
        raise InputError(
            "class labels must be whole numbers that fit 64-bit integers, booleans or text, none missing; got other "
            "numbers; drop missing rows, use text, or take a metric of numbers, such as mae"
        )


def whole_numbers(labels: NDArray[Any]) -> NDArray[Any] | None:
    """Return labels as signed integers of at most 64 bits, or None if one of them is not such an integer."""
    if labels.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # infinities and NaN become some integer, and differ from it
            whole = labels.astype(np.int64)
        return whole if np.array_equal(whole, labels) else None
    if labels.dtype == np.uint64:
        return None if labels.max() >= 1 << 63 else labels.astype(np.int64)
    return labels


# ---- piece by piece


class CodedLabels:
    """Text labels stored as codes, in a byte or two per row. A code is a position in the sorted, distinct `values`.

    The repr does not depend on the labels' values.
    """

    def __init__(self, codes: NDArray[Any], values: Sequence[str]) -> None:
        self.codes, self.values = codes, list(values)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"<CodedLabels: {len(self)} rows>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(np.array(self.values)[self.codes], dtype=dtype)


def is_dask(values: object) -> bool:
    """Return True for a Dask collection; this does not import Dask."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(values))


def in_pieces(values: object) -> bool:
    """Return True if a column or matrix comes piece by piece: from Dask, or by a method ``row_pieces``."""
    own = callable(getattr(values, "row_pieces", None)) and not isinstance(values, type)
    return own or is_dask(values)


def in_blocks(rows: int, *, width: int = 1) -> Iterator[slice]:
    """Return consecutive slices that cover all rows; if a row has `width` numbers, a slice has about :data:`BLOCK`."""
    step = max(1, BLOCK // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def pieces_of(values: Any) -> Iterator[NDArray[Any]]:
    """Yield consecutive pieces of a column or matrix as arrays, each with all columns of some rows."""
    if is_dask(values):
        return _computed(values)
    pieces: Iterator[NDArray[Any]] = values.row_pieces()
    return pieces


def compact(values: object, *, what: str) -> Any:
    """Return labels in little memory: unchanged if they are in memory already, otherwise read once, in pieces.

    Numbers keep their values and their kind: booleans, integers or floats. Text becomes :class:`CodedLabels`. Error
    messages quote no value.
    """
    if not in_pieces(values):
        return values
    parts: list[Any] = []
    kinds = set()
    for piece in pieces_of(values):
        array = one_column(as_array(piece, what=what))
        if array.ndim != 1:
            raise InputError(
                f"{what} must be one column; got {array.ndim - 1} axes in addition to the rows; choose one"
            )
        if len(array):
            typed, kind = typed_array(array, what=what)
            kinds.add(kind if kind == "text" else typed.dtype.kind.replace("u", "i"))
            parts.append(pd.Categorical(typed) if kind == "text" else _joined([typed]))
    if len(kinds) != 1:
        raise InputError(f"{what} must be of one kind in every chunk; got {len(kinds)} kinds; convert them")
    if "text" not in kinds:
        return _joined(parts)
    whole = pd.api.types.union_categoricals(parts, sort_categories=True)
    return CodedLabels(whole.codes, whole.categories.tolist())


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Join pieces into one array; integers take as few bytes as they need, unless they are unsigned 64-bit integers."""
    kind = np.result_type(*parts)
    if kind.kind in "iu" and kind != np.uint64:
        low, high = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
        other = -high - 1 if low < 0 <= high else high  # NumPy's smallest type for a number >= 0 has no sign
        kind = np.result_type(np.min_scalar_type(low), np.min_scalar_type(other))
    return np.concatenate(parts, dtype=kind, casting="unsafe")


def _computed(collection: Any) -> Iterator[NDArray[Any]]:
    import dask  # noqa: PLC0415 - optional, and imported already, by the code that made the collection

    parts = dask_parts(collection)
    for start in range(0, len(parts), _AHEAD):
        for piece in dask.compute(*parts[start : start + _AHEAD]):
            yield as_array(piece, what="a Dask chunk")


def dask_parts(collection: Any) -> list[Any]:
    """Return the parts of a Dask array or frame, each with all columns of some rows."""
    axes = getattr(collection, "ndim", None)
    axes = axes if isinstance(axes, int) else 0  # a delayed object's attributes are delayed, too
    if axes and hasattr(collection, "blocks"):
        whole = collection.rechunk(dict.fromkeys(range(1, axes), -1))
        return [whole.blocks[number] for number in range(whole.numblocks[0])]
    if axes and hasattr(collection, "dtypes"):
        return [collection.partitions[number] for number in range(collection.npartitions)]
    raise InputError(
        f"a Dask collection must be an array, a DataFrame or a Series; got {type(collection).__name__}; convert it"
    )
