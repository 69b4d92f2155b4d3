"""Class labels of any kind as small integer codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.blocks import each_block

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.queries.containers import Kind

__all__ = ["ClassCoder"]

_TABLE = 1 << 16  # widest range of integer classes that is looked up in a table
_INT64 = np.iinfo(np.int64)


class ClassCoder:
    """The set of classes, and each label's place in it.

    Equal labels get equal bytes whatever holds them: code k is the k-th class in sorted order, in the
    smallest unsigned dtype that also has room for one value more than there are classes. The set of classes
    is public.

    Parameters
    ----------
    classes : numpy.ndarray
        Booleans, whole numbers or text, any order, repetitions allowed.
    kind : {"booleans", "numbers", "text"}
        Which of these.

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
        if classes.dtype.kind == "f" and not np.all(np.isfinite(classes) & (classes == np.rint(classes))):
            raise InputError(
                "class labels must be whole numbers, booleans or text, none missing; got other numbers; "
                "drop missing rows, or use a metric with response 'values'"
            )
        if classes.dtype.kind in "uf" and classes.size and classes.max() >= 2.0**63:
            raise InputError("class labels must fit 64-bit integers; got larger numbers; use text")
        self.classes = np.unique(classes)
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
        labels : numpy.ndarray
            Any shape; of this coder's kind.
        """
        flat = np.ascontiguousarray(labels).reshape(-1)
        codes = np.empty(flat.size, self.dtype)
        strangers: list[slice] = []

        def work(piece: slice) -> None:
            if not self._encode_block(flat[piece], codes[piece]):
                strangers.append(piece)

        each_block(work, flat.size)
        return None if strangers else codes.reshape(labels.shape)

    def _lookup_table(self) -> NDArray[Any] | None:
        if self.kind == "text" or self._contiguous or self._span >= _TABLE:
            return None
        table = np.full(self._span + 1, len(self.classes), self.dtype)
        table[self._keys - self._low] = np.arange(len(self.classes))
        return table

    def _encode_block(self, labels: NDArray[Any], out: NDArray[Any]) -> bool:
        """Write the codes; False if a label is not one of the classes."""
        if self.kind == "text":
            return self._search(labels, out)
        if labels.dtype.kind == "f":
            with np.errstate(invalid="ignore"):  # infinities and NaN become some integer, and differ from it
                whole = labels.astype(np.int64)
            if not np.array_equal(whole, labels):
                return False
            labels = whole
        elif labels.dtype == np.uint64:
            if labels.max() > _INT64.max:
                return False
            labels = labels.astype(np.int64)
        if not (self._contiguous or self._table is not None):
            return self._search(labels, out)
        return self._shift(labels, out)

    def _shift(self, labels: NDArray[Any], out: NDArray[Any]) -> bool:
        # As an unsigned number a label below the lowest class is a very large one, so that one comparison
        # checks both ends; the labels' own dtype will do if its sign bit lies beyond the range.
        if self._low or self._span >= 1 << (8 * labels.dtype.itemsize - 1):
            labels = labels.astype(np.int64, copy=False) - np.int64(self._low)
        offsets = labels.view(f"u{labels.dtype.itemsize}")
        if offsets.max() > self._span:
            return False
        if self._table is None:
            np.copyto(out, offsets, casting="unsafe")
            return True
        np.copyto(out, self._table[offsets])
        return not np.any(out == len(self.classes))

    def _search(self, labels: NDArray[Any], out: NDArray[Any]) -> bool:
        places = np.minimum(np.searchsorted(self._keys, labels), len(self._keys) - 1)
        np.copyto(out, places, casting="unsafe")
        return bool(np.all(self._keys[places] == labels))
