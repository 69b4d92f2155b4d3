"""Whatever people keep labels and predictions in, as NumPy arrays of booleans, numbers or text.

Columns of which all rows as they are would not fit into memory come piece by piece: Dask collections, and whatever
has a method ``row_pieces``. They are read once, in order; what stays is small: whole numbers in the fewest bytes that
hold them, text as codes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Set
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "BLOCK",
    "CodedLabels",
    "Kind",
    "as_array",
    "as_floats",
    "check_same_order",
    "compact",
    "dask_parts",
    "from_arrow",
    "in_blocks",
    "index_of",
    "is_dask",
    "is_reordered",
    "no_array",
    "one_column",
    "pieces_of",
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
BLOCK = 1 << 17  # rows worked on at a time: their bytes stay in a processor's cache
_AHEAD = min(os.cpu_count() or 1, 8)  # Dask's chunks that are computed, and held, together


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
        raise no_array(values, what=what)
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
    """Flatten a (rows, 1) column to (rows,); leave anything else alone."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def typed_array(array: NDArray[Any], *, what: str) -> tuple[NDArray[Any], Kind]:
    """Array of numbers or text in native byte order, and which of these it is; booleans are the numbers 0 and 1.

    Objects are looked at one by one: a mixture, or something missing, is refused, and no value is quoted.
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
    """Array of real numbers; booleans count as 0 and 1, and text is not parsed."""
    array, kind = typed_array(array, what=what)
    if kind == "text":
        raise InputError(f"{what} must be real numbers; got text; pass numbers, such as predict_proba's")
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
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO" and values is not None:  # NumPy reads None as NaN
            return array.astype(np.float64)
    except Exception:  # noqa: S110 - whatever a user's own object raises may quote the labels
        pass
    return np.empty((0, 0))


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


def pieces_of(values: object) -> Iterator[NDArray[Any]] | None:
    """Consecutive pieces of a column or matrix, rows first; None if it is all in memory."""
    read = getattr(values, "row_pieces", None)
    if callable(read) and not isinstance(values, type):
        pieces: Iterator[NDArray[Any]] = read()
        return pieces
    return _computed(values) if is_dask(values) else None


def compact(values: object, *, what: str) -> Any:
    """Labels in little memory: unchanged if they are in memory, else read once.

    Values and kind of number stay: booleans, integers, floats. Text becomes :class:`CodedLabels`. No value is quoted.
    """
    pieces = pieces_of(values)
    if pieces is None:
        return values
    parts: list[NDArray[Any]] = []
    codes: dict[str, int] = {}
    kinds = set()
    for piece in pieces:
        array = one_column(as_array(piece, what=what))
        if array.ndim != 1:
            raise InputError(
                f"{what} must be one column; got {array.ndim - 1} axes beside the rows; choose one"
            )
        if len(array):
            typed, kind = typed_array(array, what=what)
            kinds.add(kind if kind == "text" else typed.dtype.kind.replace("u", "i"))
            parts.append(_numbered(typed, codes) if kind == "text" else _joined([typed]))
    if len(kinds) != 1:
        raise InputError(f"{what} must be of one kind in every chunk; got {len(kinds)} kinds; convert them")
    if not codes:
        return _joined(parts)
    joined = np.concatenate(parts)
    order = sorted(codes)
    places = np.empty(len(codes), np.min_scalar_type(len(codes)))
    places[[codes[value] for value in order]] = np.arange(len(codes))
    return CodedLabels(places[joined], order)


def in_blocks(rows: int, *, width: int = 1) -> Iterator[slice]:
    """Slices that cover all rows, each of at most :data:`BLOCK` numbers if a row has so many."""
    step = max(1, BLOCK // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _numbered(labels: NDArray[Any], codes: dict[str, int]) -> NDArray[Any]:
    """Codes of a piece of text labels; new labels are added to `codes`."""
    import pandas as pd  # noqa: PLC0415 - a slow import that numbers do not need

    places, values = pd.factorize(labels.astype(np.object_))
    mine = np.array([codes.setdefault(value, len(codes)) for value in values.tolist()])
    return mine.astype(np.min_scalar_type(len(codes)))[places]


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Copy of pieces as one; integers in as few bytes as they need, but 64 bits without a sign stay what they are."""
    kind = np.result_type(*parts)
    if kind.kind in "iu" and kind != np.uint64:
        low, high = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
        other = -high - 1 if low < 0 <= high else high  # NumPy's smallest type for a number >= 0 has no sign
        kind = np.result_type(np.min_scalar_type(low), np.min_scalar_type(other))
    return np.concatenate(parts, dtype=kind, casting="unsafe")


def _computed(collection: Any) -> Iterator[NDArray[Any]]:
    import dask  # noqa: PLC0415 - optional, and here already

    parts = dask_parts(collection)
    for start in range(0, len(parts), _AHEAD):
        for piece in dask.compute(*parts[start : start + _AHEAD]):
            yield as_array(piece, what="a Dask chunk")


def dask_parts(collection: Any) -> list[Any]:
    """Parts of a Dask array or frame, all columns of some rows each."""
    axes = getattr(collection, "ndim", None)
    axes = axes if isinstance(axes, int) else 0  # of something delayed, every attribute is delayed
    if axes and hasattr(collection, "blocks"):
        whole = collection.rechunk(dict.fromkeys(range(1, axes), -1))
        return [whole.blocks[number] for number in range(whole.numblocks[0])]
    if axes and hasattr(collection, "dtypes"):
        return [collection.partitions[number] for number in range(collection.npartitions)]
    raise InputError(
        f"of Dask, an array, a DataFrame or a Series can be taken; got {type(collection).__name__}; convert it"
    )
