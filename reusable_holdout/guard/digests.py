"""Digests of data that may be too large to hold as bytes, or that come chunk by chunk."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.chunks.rows import ChunkedRows
from reusable_holdout.queries.pieces import CodedLabels, in_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    NewDigest = Callable[[], "hashlib.blake2b"]

__all__ = ["canonical_type", "holdout_digest", "named_columns", "predictions_digest"]

_LEAF = 1 << 22  # bytes; up to so many are digested in one go
_THREADS = 2  # more than two wait for the memory


def predictions_digest(prepared: NDArray[Any]) -> bytes:
    """SHA-256 of predictions in canonical form: processors have instructions for it.

    Beyond 4 MiB it is that of the digests of leaves, which threads compute; leaves of zeros and ones are packed, eight
    to a byte.
    """
    content = np.ascontiguousarray(prepared).reshape(-1).view(np.uint8)
    if len(content) <= _LEAF:
        return hashlib.sha256(content.data).digest()
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only large predictions need it

    leaves = [content[start : start + _LEAF] for start in range(0, len(content), _LEAF)]
    with ThreadPoolExecutor(_THREADS) as threads:
        whole = hashlib.sha256(f"{len(leaves)} leaves".encode())
        for digest in threads.map(_leaf_digest, leaves):
            whole.update(digest)
    return whole.digest()


def _leaf_digest(leaf: NDArray[np.uint8]) -> bytes:
    bits = leaf.max() <= 1
    digest = hashlib.sha256(f"{len(leaf)} {'bits' if bits else 'bytes'}".encode())
    digest.update((np.packbits(leaf) if bits else leaf).data)
    return digest.digest()


def holdout_digest(new: NewDigest, X: Any, y: Any) -> bytes:
    """Digest of features and labels: the same for chunks of any size, and for all in memory.

    Parameters
    ----------
    new : callable
        Makes a keyed hash.
    X, y : array-like, ChunkedRows, CodedLabels or None

    Raises
    ------
    InputError
        If they hold something other than numbers, dates and text.
    """
    whole = new()
    for part in (X, y):
        columns: dict[str, _Column] = {}
        for name, array in named_columns(part):
            columns.setdefault(name, _Column(new)).add(array)
        _add_framed(whole, f"{len(columns)} columns".encode())
        for name, column in columns.items():
            _add_framed(whole, name.encode())
            _add_framed(whole, column.digest())
    return whole.digest()


def named_columns(part: Any) -> Iterator[tuple[str, Any]]:
    """Columns of each chunk, one after the other; an array has one without a name."""
    if isinstance(part, ChunkedRows):
        for chunk in part.chunks():
            yield from named_columns(chunk)
    elif hasattr(part, "tocsr"):
        matrix = canonical_csr(part)
        yield f"sparse {matrix.shape} indptr", matrix.indptr
        yield f"sparse {matrix.shape} indices", matrix.indices
        yield f"sparse {matrix.shape} data", matrix.data
    elif hasattr(part, "columns"):  # pandas, polars
        for place, name in enumerate(part.columns):
            yield f"column {place} {name!r}", np.asarray(part[name].to_numpy())
    elif isinstance(part, CodedLabels):
        yield "", part
    elif part is not None:
        yield "", np.asarray(part.to_numpy() if hasattr(part, "to_numpy") else part)


def canonical_csr(part: Any) -> Any:
    """Sparse matrix with each entry once, in order and not zero; its indices are int64."""
    matrix = part.tocsr(copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    return matrix


class _Column:
    """Digest of an array whose rows come piece by piece."""

    def __init__(self, new: NewDigest) -> None:
        self._new, self._digest = new, new()
        self._rows, self._form = 0, ""

    def add(self, piece: NDArray[Any] | CodedLabels) -> None:
        """Go on with these rows."""
        form = self._form_of(piece)
        if self._rows and len(piece) and form != self._form:
            raise InputError(
                f"a column of the holdout must be of one type; chunks of it are {self._form} and {form}; convert it"
            )
        self._form = form
        self._rows += len(piece)
        if isinstance(piece, CodedLabels):
            words = [_framed(repr(value).encode()) for value in piece.values]
            for rows in in_blocks(len(piece)):
                self._digest.update(b"".join(map(words.__getitem__, piece.codes[rows].tolist())))
            return
        step = max(1, piece.size // max(1, len(piece)))
        for rows in in_blocks(len(piece), width=step):
            self._add_block(piece[rows])

    def digest(self) -> bytes:
        """Digest of all rows."""
        _add_framed(self._digest, f"{self._form} of {self._rows} rows".encode())
        return self._digest.digest()

    def _add_block(self, block: NDArray[Any]) -> None:
        kind = block.dtype.kind
        if kind in "OUST":
            self._digest.update(b"".join(self._words(block)))
        elif kind == "f":
            self._digest.update((block.astype(np.float64, order="C") + 0.0).data)  # one zero
        else:
            self._digest.update(np.ascontiguousarray(block, canonical_type(block.dtype)).view(np.uint8).data)

    def _words(self, block: NDArray[Any]) -> Iterable[bytes]:
        for value in block.ravel().tolist():
            if isinstance(value, np.ndarray):  # its repr leaves out most of it
                inner = _Column(self._new)
                inner.add(np.atleast_1d(value))
                yield _framed(inner.digest())
            else:
                yield _framed(repr(value).encode())

    def _form_of(self, piece: NDArray[Any] | CodedLabels) -> str:
        if isinstance(piece, CodedLabels):
            return "text ()"
        kind = "text" if piece.dtype.kind in "OUST" else canonical_type(piece.dtype).str
        return f"{kind} {piece.shape[1:]}"


def canonical_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type in which equal values have equal bytes."""
    if dtype.kind == "f":
        return np.dtype(np.float64)
    if dtype.kind in "bi" or (dtype.kind == "u" and dtype.itemsize < 8):
        return np.dtype(np.int64)
    if dtype.kind not in "umMc":
        raise InputError(f"the holdout must hold numbers, dates or text; got dtype {dtype}; convert it")
    return dtype


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(8, "big") + content


def _add_framed(digest: hashlib.blake2b, content: bytes) -> None:
    digest.update(_framed(content))
