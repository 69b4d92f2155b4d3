"""Whatever people keep labels and predictions in, as NumPy arrays of booleans, numbers or text.

Columns that do not fit into memory come piece by piece; the module `pieces` reads them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import objects

__all__ = [
    "BLOCK",
    "CodedLabels",
    "Kind",
    "as_array",
    "as_floats",
    "check_class_labels",
    "check_same_order",
    "from_arrow",
    "in_blocks",
    "in_pieces",
    "index_of",
    "is_dask",
    "is_reordered",
    "one_column",
    "real_array",
    "typed_array",
    "whole_numbers",
]

Kind = Literal["numbers", "text"]

_KINDS: dict[str, Kind] = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text"}
BLOCK = 1 << 17  # rows worked on at a time: their bytes stay in a processor's cache


def from_arrow(values: Any) -> Any:
    """Pandas object of a pyarrow table, batch or array; anything else as it is. pyarrow is not imported for that."""
    if not type(values).__module__.startswith("pyarrow.") or not hasattr(values, "to_pandas"):
        return values
    return values.to_pandas()


def as_array(values: object, *, what: str) -> NDArray[Any]:
    """NumPy array of a list, array, pandas, polars or pyarrow object, or sparse matrix; `what` it is is for messages.

    Nothing is converted in meaning: a list that mixes text and numbers stays a list of objects and is refused
    later, never turned into text.
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
        problem = f"{what} must form a rectangular array; got rows of unlike lengths; make them equal"
    if problem:
        raise InputError(problem)
    if array.ndim == 0 and array.dtype.kind == "O":
        raise objects.no_array(values, what=what)
    return array


def index_of(values: object) -> Any:
    """Labels of the rows of a pandas object; None of anything else. pandas is not imported for that."""
    index = None if isinstance(values, type) else getattr(values, "index", None)
    return index if type(index).__module__.partition(".")[0] == "pandas" else None


def is_reordered(values: object, index: Any) -> bool:
    """Whether the rows of a pandas object have the labels of an index, each once, in another order.

    Nothing is said of rows that are numbered as they came, of labels that differ, or that come twice.
    """
    own = index_of(values)
    if own is None or index is None or len(own) != len(index) or own.nlevels != index.nlevels:
        return False
    as_they_came = (getattr(own, "start", None), getattr(own, "step", None)) == (0, 1)  # pandas' default
    if as_they_came or own.equals(index):
        return False
    try:
        if own[0] not in index or not (index.is_unique and own.is_unique):
            return False
        places = np.asarray(index.get_indexer(own))
    except Exception:  # labels that cannot be looked up, such as overlapping intervals
        return False
    return bool((places >= 0).all() and (np.diff(places) < 0).any())


def check_same_order(rows: object, beside: object, *, names: tuple[str, str], nothing: str) -> None:
    """Refuse two pandas objects that have the same labels in another order: taken as they come, rows would be mixed up.

    The words quote no label.
    """
    if is_reordered(beside, index_of(rows)):
        first, second = names
        raise InputError(
            f"{first} and {second} must have their rows in the same order; their indexes hold the same labels in "
            f"another; pass {second}.loc[{first}.index], or {second}.to_numpy() if they are in order; {nothing}"
        )


def one_column(array: NDArray[Any]) -> NDArray[Any]:
    """Flatten a (rows, 1) column to (rows,); leave anything else alone."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def typed_array(array: NDArray[Any], *, what: str) -> tuple[NDArray[Any], Kind]:
    """Array of numbers or text in native byte order, and which of these it is; booleans are the numbers 0 and 1.

    Objects are looked at one by one: a mixture, or something missing, is refused, and no value is quoted.
    """
    if array.dtype.kind in "OT":
        array = objects.from_objects(array.astype(np.object_), what=what)
    kind = _KINDS.get(array.dtype.kind)
    if kind is None:
        raise InputError(
            f"{what} must be booleans, real numbers or text; got dtype {array.dtype}; convert them"
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")), kind


def real_array(array: NDArray[Any], *, what: str) -> NDArray[Any]:
    """Array of real numbers; booleans count as 0 and 1, and text is not parsed."""
    array, kind = typed_array(array, what=what)
    if kind == "text":
        raise InputError(f"{what} must be real numbers; got text; pass numbers, such as predict_proba's")
    return array


def as_floats(values: object) -> NDArray[Any]:
    """Float array of what a user gives, or an empty one that fits nothing if that is not real numbers.

    Whatever goes wrong inside is withheld.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO" and values is not None:  # NumPy reads None as NaN
            return array.astype(np.float64)
    except Exception:  # noqa: S110 - whatever a user's own object raises may quote the labels
        pass
    return np.empty((0, 0))


def check_class_labels(labels: NDArray[Any]) -> None:
    """Raise an InputError if labels are numbers that are not whole, or too large; it quotes none."""
    if labels.dtype.kind == "f" and not all(_are_whole(labels[rows]) for rows in in_blocks(len(labels))):
        raise InputError(
            "class labels must be whole numbers, booleans or text, none missing; got other numbers; "
            "drop missing rows, or take a metric of numbers, such as mae"
        )
    if labels.dtype.kind in "uf" and labels.size and float(labels.max()) >= 2.0**63:
        raise InputError("class labels must fit 64-bit integers; got larger numbers; use text")


def _are_whole(numbers: NDArray[Any]) -> bool:
    return bool(np.all(np.isfinite(numbers) & (numbers == np.rint(numbers))))


def whole_numbers(labels: NDArray[Any]) -> NDArray[Any] | None:
    """Return labels as integers that 64 bits with a sign can hold, or None."""
    if labels.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # infinities and NaN become some integer, and differ from it
            whole = labels.astype(np.int64)
        return whole if np.array_equal(whole, labels) else None
    if labels.dtype == np.uint64:
        return None if labels.max() >= 1 << 63 else labels.astype(np.int64)
    return labels


# ---- piece by piece


class CodedLabels:
    """Text labels as codes, a byte or so per row: places in `values`, which are distinct and sorted.

    Its repr does not depend on the labels' values.
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
    """Whether something is a Dask collection; Dask is not imported for that."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(values))


def in_pieces(values: object) -> bool:
    """Return True if a column or matrix comes piece by piece: from Dask, or by a method ``row_pieces``."""
    own = callable(getattr(values, "row_pieces", None)) and not isinstance(values, type)
    return own or is_dask(values)


def in_blocks(rows: int, *, width: int = 1) -> Iterator[slice]:
    """Slices that cover all rows, each of at most :data:`BLOCK` numbers if a row has so many."""
    step = max(1, BLOCK // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))
