"""Class labels of any kind as small integer codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.pieces import in_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.queries.containers import Kind

__all__ = ["ClassCoder"]

_TABLE = 1 << 16  # widest range of integer classes that is looked up in a table


class ClassCoder:
    """The set of classes, and each label's place in it.

    Equal labels get equal bytes whatever holds them: code k is the k-th class in sorted order, in the
    smallest unsigned dtype that also has room for one value more than there are classes. The set of classes
    is public.

    Parameters
    ----------
    classes : numpy.ndarray
        Booleans, whole numbers or text, any order, repetitions allowed.
    kind : {"numbers", "text"}
        Which of these; booleans are the numbers 0 and 1.

    Attributes
    ----------
    classes : numpy.ndarray
        Sorted, read-only.
    dtype : numpy.dtype
        Of the codes; uint8 up to 255 classes.

    Raises
    ------
    InputError
        If there are fewer than two classes or a number is not whole. No class is quoted.

    Examples
    --------
    >>> coder = ClassCoder(np.array(["spam", "ham"]), "text")
    >>> coder.encode(np.array(["ham", "spam", "spam"]))
    array([0, 1, 1], dtype=uint8)
    """

    def __init__(self, classes: NDArray[Any], kind: Kind) -> None:
        if classes.dtype.kind == "f" and not all(
            _are_whole(classes[rows]) for rows in in_blocks(len(classes))
        ):
            raise InputError(
                "class labels must be whole numbers, booleans or text, none missing; got other numbers; "
                "drop missing rows, or take a metric of numbers, such as mae"
            )
        if classes.dtype.kind in "uf" and classes.size and float(classes.max()) >= 2.0**63:
            raise InputError("class labels must fit 64-bit integers; got larger numbers; use text")
        self.classes = _distinct(classes)
        self.kind = kind
        if len(self.classes) < 2:
            raise InputError(
                f"the labels must hold at least two classes; got {len(self.classes)}; "
                "pass classes= to name those that may occur"
            )
        self.classes.flags.writeable = False
        self.dtype = np.min_scalar_type(len(self.classes))
        self._keys = self.classes if kind == "text" else self.classes.astype(np.int64)
        self._low = 0 if kind == "text" else int(self._keys[0])
        self._span = 0 if kind == "text" else int(self._keys[-1]) - self._low
        self._contiguous = self._span == len(self.classes) - 1
        self._table = self._lookup_table()

    def encode(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        """Codes of the labels, or None if a label is not one of the classes.

        Parameters
        ----------
        labels : numpy.ndarray of shape (rows,)
            Of this coder's kind, in native byte order.
        """
        codes = np.empty(labels.shape, self.dtype)
        for rows in in_blocks(len(labels)):
            block = self._encoded(labels[rows])
            if block is None:
                return None
            codes[rows] = block
        return codes

    def _encoded(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        if self.kind == "text":
            return self._searched(labels)
        whole = _whole_numbers(labels)
        if whole is None:
            return None
        return self._shifted(whole) if self._contiguous or self._table is not None else self._searched(whole)

    def _lookup_table(self) -> NDArray[Any] | None:
        if self.kind == "text" or self._contiguous or self._span >= _TABLE:
            return None
        table = np.full(self._span + 1, len(self.classes), self.dtype)
        table[self._keys - self._low] = np.arange(len(self.classes))
        return table

    def _shifted(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        # As an unsigned number a label below the lowest class is a very large one, so that one comparison
        # checks both ends; the labels' own dtype will do if its sign bit lies beyond the range.
        if self._low or self._span >= 1 << (8 * labels.dtype.itemsize - 1):
            labels = labels.astype(np.int64) - np.int64(self._low)
        offsets = labels.view(f"u{labels.dtype.itemsize}")
        if offsets.max() > self._span:
            return None
        if self._table is None:
            return offsets.astype(self.dtype)
        codes = self._table[offsets]
        return None if np.any(codes == len(self.classes)) else codes

    def _searched(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        places = np.minimum(np.searchsorted(self._keys, labels), len(self._keys) - 1)
        return places.astype(self.dtype) if np.array_equal(self._keys[places], labels) else None


def _distinct(labels: NDArray[Any]) -> NDArray[Any]:
    """Sorted classes; of many rows found block by block, for sorting them all takes their memory again."""
    found = labels[:0]
    for rows in in_blocks(len(labels)):
        found = np.unique(np.concatenate([found, np.unique(labels[rows])]))
    return found


def _are_whole(numbers: NDArray[Any]) -> bool:
    return bool(np.all(np.isfinite(numbers) & (numbers == np.rint(numbers))))


def _whole_numbers(labels: NDArray[Any]) -> NDArray[Any] | None:
    """Labels as integers that 64 bits with a sign can hold, or None."""
    if labels.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # infinities and NaN become some integer, and differ from it
            whole = labels.astype(np.int64)
        return whole if np.array_equal(whole, labels) else None
    if labels.dtype == np.uint64:
        return None if labels.max() >= 1 << 63 else labels.astype(np.int64)
    return labels
