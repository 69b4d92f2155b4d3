"""Digests of data, which may come in chunks, and keyed names of rows and questions.

The data behind a digest must not change, even if the user goes on to work on the objects she passed. So a guard keeps
copies of its own.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import mmap
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.guard.chunks import ChunkedRows
from reusable_holdout.metrics.containers import CodedLabels, from_arrow, in_blocks

NewDigest = Callable[[], "hashlib.blake2b"]


def predictions_digest(prepared: NDArray[Any]) -> bytes:
    """Return the SHA-256 of predictions in canonical form; it is fast, as processors support it."""
    return hashlib.sha256(np.ascontiguousarray(prepared).reshape(-1).view(np.uint8).data).digest()


def holdout_digest(new: NewDigest, X: Any, y: Any) -> bytes:
    """Return the digest of features and labels, computed with the hashes that `new` makes.

    It does not depend on how the rows are cut into chunks.
    """
    whole = new()
    for part in (X, y):
        columns: dict[str, _Column] = {}
        for name, array in named_columns(part):
            columns.setdefault(name, _Column(new)).add(array)
        whole.update(_framed(f"{len(columns)} columns".encode()))
        for name, column in columns.items():
            whole.update(_framed(name.encode()) + _framed(column.digest()))
    return whole.digest()


# ---- what a guard owns


class Owned(NamedTuple):
    """Data that nobody else holds, and that need not be copied."""

    data: Any


def own(given: Any) -> Any:
    """Return data that nobody else can change: a copy, if the data lie in memory.

    Data that cannot change are not copied: rows in chunks, and arrays that are mapped read-only. Columns of polars
    never change, so the copy shares them. Data of pyarrow are copied as pandas', because their memory may be the user's
    array.

    >>> weights = np.ones(2)
    >>> mine = own(weights)
    >>> weights[0] = 0.0
    >>> mine
    array([1., 1.])
    """
    given = from_arrow(given)
    in_memory = isinstance(given, list | tuple) or hasattr(given, "shape")
    if isinstance(given, type) or not in_memory or is_chunked(given) or _is_mapped(given):
        return given
    with suppress(Exception):  # the error of a user's own object may quote the rows
        return copy_of(given)
    came = type(given).__name__
    raise InputError(
        f"data in memory must be of a kind that can be copied; got {came}; read it into an array; nothing was made"
    )


def copy_of(given: Any) -> Any:
    """Return a deep copy of data; nested lists are copied at every level."""
    return given.copy() if hasattr(given, "copy") and not isinstance(given, list) else copy.deepcopy(given)


def _is_mapped(given: Any) -> bool:
    """Return True if an array is mapped from a file and nobody in this process can write to it."""
    while isinstance(given, np.ndarray):
        if given.flags.writeable:
            return False
        given = given.base
    return isinstance(given, mmap.mmap)


# ---- column by column


def is_chunked(X: object) -> TypeGuard[ChunkedRows]:
    """Return True if rows are read in chunks.

    It does not import the chunk readers: a process that has no such rows need not load them.
    """
    chunks = sys.modules.get("reusable_holdout.guard.chunks")
    return chunks is not None and isinstance(X, chunks.ChunkedRows)


def named_columns(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns of each chunk with their names; an array is one column without a name."""
    if is_chunked(part):
        for chunk in part.chunks():
            yield from named_columns(chunk)
    elif hasattr(part, "tocsr"):
        matrix = canonical_csr(part)
        for name in ("indptr", "indices", "data"):
            yield f"sparse {matrix.shape} {name}", getattr(matrix, name)
    elif hasattr(part, "columns"):  # pandas, polars
        for place, name in enumerate(part.columns):
            yield f"column {place} {name!r}", np.asarray(part[name].to_numpy())
    elif isinstance(part, CodedLabels):
        yield "", part
    elif part is not None:
        yield "", np.asarray(part.to_numpy() if hasattr(part, "to_numpy") else part)


def canonical_csr(part: Any) -> Any:
    """Return a sparse matrix with each entry once, in order and not zero; its indices are int64."""
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
        """Add these rows to the digest."""
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
        """Return the digest of all rows."""
        self._digest.update(_framed(f"{self._form} of {self._rows} rows".encode()))
        return self._digest.digest()

    def _add_block(self, block: NDArray[Any]) -> None:
        kind = block.dtype.kind
        if kind in "OUST":
            self._digest.update(b"".join(self._words(block)))
        elif kind == "f":
            self._digest.update((block.astype(np.float64, order="C") + 0.0).data)  # -0.0 becomes 0.0
        else:
            self._digest.update(np.ascontiguousarray(block, _canonical_type(block.dtype)).view(np.uint8).data)

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
        kind = "text" if piece.dtype.kind in "OUST" else _canonical_type(piece.dtype).str
        return f"{kind} {piece.shape[1:]}"


def _canonical_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which equal values have equal bytes."""
    if dtype.kind == "f":
        return np.dtype(np.float64)
    if dtype.kind in "bi" or (dtype.kind == "u" and dtype.itemsize < 8):
        return np.dtype(np.int64)
    if dtype.kind not in "umMc":
        raise InputError(f"the holdout must hold numbers, dates or text; got dtype {dtype}; convert it")
    return dtype


def _framed(content: bytes) -> bytes:
    """Return content with its length before it, so that concatenated contents cannot be confused."""
    return len(content).to_bytes(8, "big") + content


# ---- under the guard's key


_DIGEST_BYTES = 32


class ContentKey:
    """Digests under a key derived from the noise key."""

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.blake2b(b"content", key=key, digest_size=64).digest()

    def __repr__(self) -> str:
        return "<ContentKey>"

    def __reduce__(self) -> str:
        raise TypeError("a content key cannot be pickled")

    def holdout(self, X: Any, y: Any) -> str:
        """Return the digest of a holdout: columns, types, values and order of rows.

        It does not depend on how the rows are cut into chunks, nor on whether they lie in memory.
        """
        return holdout_digest(lambda: self._new(b"holdout"), X, y).hex()

    def view(self, description: str) -> bytes:
        """Return the digest of a view: a metric, its weights and a policy."""
        return self._of(b"view", description.encode())

    def guard(self, place: str) -> str:
        """Return the digest of a guard's location."""
        return self._of(b"guard", place.encode()).hex()

    def question(self, way: str, content: bytes, unit: int, tolerance: int = 0) -> bytes:
        """Return the digest of a question: the way it is asked in, its subject, and prior and tolerance on grids.

        `content` is the digest of the analyst's predictions, or of a model. A model's predictions for the private rows
        must not be used: whether two models agree on these rows depends on the holdout, and replays would reveal it.
        """
        numbers = unit.to_bytes(8, "big", signed=True) + tolerance.to_bytes(8, "big")
        return self._of(way.encode(), numbers, content)

    def several(self, person: bytes, questions: Sequence[bytes]) -> bytes:
        """Return the digest of several questions together, such as a choice among them."""
        return self._of(b"several " + person, *questions)

    def conceal(self, numbers: NDArray[np.int64] | None, size: int, about: bytes) -> bytes:
        """Return private numbers, or None, encrypted for the way from one process of this guard to another.

        Without the key the result looks random, and it is `size` numbers long; longer contents are padded to the next
        power of two. :meth:`reveal` refuses a result that was changed on the way, or that is passed for another
        subject.
        """
        length = 0 if numbers is None else len(numbers)
        padded = np.zeros(1 + (size if length <= size else 1 << (length - 1).bit_length()), dtype=np.int64)
        padded[0] = -1 if numbers is None else length
        padded[1 : 1 + length] = 0 if numbers is None else numbers
        nonce = secrets.token_bytes(_DIGEST_BYTES)
        masked = nonce + self._masked(padded.tobytes(), nonce)
        return self._authenticated(masked, about) + masked

    def reveal(self, concealed: bytes, about: bytes) -> NDArray[np.int64] | None:
        """Return the numbers that :meth:`conceal` was given; InputError if the input is not its result."""
        told, masked = concealed[:_DIGEST_BYTES], concealed[_DIGEST_BYTES:]
        if not hmac.compare_digest(told, self._authenticated(masked, about)):
            raise InputError(
                "a measurement must come from this guard's measure(), for this model and this kind of query, "
                "unchanged; this one does not; nothing was asked and nothing was charged"
            )
        nonce, masked = masked[:_DIGEST_BYTES], masked[_DIGEST_BYTES:]
        padded = np.frombuffer(self._masked(masked, nonce), dtype=np.int64)
        return None if padded[0] < 0 else padded[1 : 1 + padded[0]]

    def _authenticated(self, masked: bytes, about: bytes) -> bytes:
        return self._of(b"measured", _framed(about), masked)

    def _masked(self, plain: bytes, nonce: bytes) -> bytes:
        stream = hashlib.shake_256(self._key + b"concealed" + nonce).digest(len(plain))
        return (np.frombuffer(plain, np.uint8) ^ np.frombuffer(stream, np.uint8)).tobytes()

    def claim(self, question: bytes, series: str, prior_unit: int) -> bytes:
        """Return the digest of one series' own claim about the subject of a question."""
        return self._of(b"claim", question, prior_unit.to_bytes(8, "big", signed=True), series.encode())

    def _of(self, person: bytes, *parts: bytes) -> bytes:
        digest = self._new(person)
        for part in parts:
            digest.update(part)
        return digest.digest()

    def _new(self, person: bytes) -> hashlib.blake2b:
        return hashlib.blake2b(key=self._key, digest_size=_DIGEST_BYTES, person=person)
