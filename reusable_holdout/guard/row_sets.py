"""Rows as 64-bit hashes of their exact values: the rows that two tables share, and the copies within one table."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import HandleError, HoldoutError
from reusable_holdout.guard.digests import canonical_csr, is_chunked, named_columns
from reusable_holdout.metrics.containers import in_blocks
from reusable_holdout.plan.numbers import largest
from reusable_holdout.registry import Words, mixed, siphash
from reusable_holdout.slips import warn

_SPARE = 20.0  # bits, because columns are not independent
_PLACE = 0xD1B54A32D192ED03
_SAMPLE, _MOST_COLUMNS, _ENOUGH = 1_000, 2_000, 200.0  # rows and columns examined, and bits that suffice
_MOST = 1 << 62  # rows that could repeat
_HEAD = 8  # bytes before the numbers of the rows

# a column that tells rows apart has so many values, and this share of the rows that are no copies
_LEAST_DISTINCT, _DISTINCT = 30, 0.9
_COLUMNS = 2  # fewer are not examined: one alone may be coarse
_NOTICED = 1.02  # rows to one independent draw: then an interval is too narrow by a hundredth
_LOOKED_AT = 1_000_000  # rows


class Copies(NamedTuple):
    """The properties of a table that determine how often its rows agree by chance.

    `repeated` rows are equal to another row of the table. If the columns were independent, one of ``2**bits`` pairs of
    rows would be equal.
    """

    rows: int
    repeated: int
    bits: float = 0.0


class Rule(NamedTuple):
    """The rule that decides if common rows are explained by chance.

    `error` is the largest probability that chance alone gives more common rows than the rule allows. If the rule
    `tells`, neither table has repeats, and there are bits to spare, all rows are taken to be different: then chance
    explains no common row.
    """

    error: float
    tells: bool


OWNERS = Rule(error=0.01, tells=True)
"""The rule for owners. A false alarm costs the owner a look at the data and ``allow={"overlap"}``."""
ANALYSTS = Rule(error=1e-6, tells=False)
"""The rule for analysts. A false alarm costs a charge, so it must be rarer."""


def by_chance(fresh: Copies, known: Copies, rule: Rule) -> int:
    """Return the largest number of rows that a table shares with an independent table by chance.

    >>> adult = Copies(rows=6_512, repeated=6), Copies(rows=26_049, repeated=36)
    >>> by_chance(*adult, OWNERS)
    20
    >>> [by_chance(Copies(1_000, 0, bits), Copies(4_000, 0), OWNERS) for bits in (60.0, 30.0)]
    [0, 4]
    """
    if rule.tells and not fresh.repeated and not known.repeated:
        pairs = math.log2(fresh.rows) + math.log2(known.rows)
        if fresh.bits >= pairs + _SPARE:
            return 0
    ratio = fresh.rows / known.rows
    most = _quantile(known.repeated, ratio, rule.error)
    if fresh.rows > known.rows:  # it shows rare copies that the smaller one has no room for
        most = max(most, _quantile(fresh.repeated, 1.0 / ratio, rule.error))
    return min(most, fresh.rows, known.rows)


def _quantile(repeated: int, ratio: float, error: float) -> int:
    """Return the least number that a negative binomial exceeds with at most this probability.

    Its mean is `repeated * ratio` and a little more: even if no copies were seen, there may be some.
    """
    from scipy.special import betainc  # noqa: PLC0415 - the guard loads it with its plan

    pairs, odds = repeated / 2.0 + 1.0, 2.0 * ratio
    share = odds / (1.0 + odds)
    exceeded = largest(lambda number: bool(betainc(number + 1.0, pairs, share) > error), _MOST, least=0)
    return 0 if exceeded is None else exceeded + 1


class RowSet:
    """A set of rows with their counts; its repr shows no row, and it cannot be pickled.

    It is made of a 64-bit hash of each row (`uint64`), equal for equal rows, and of the bits of :class:`Copies`.

    >>> one, other = (rows_of_table(np.array(table)) for table in ([[1, 2], [3, 4], [3, 4]], [[3.0, 4.0], [5.0, 6.0]]))
    >>> one.copies.repeated, one.common(other)
    (2, 1)
    """

    def __init__(self, hashes: NDArray[np.uint64], bits: float = 0.0) -> None:
        self._values, self._times = np.unique(hashes, return_counts=True)
        self.rows = len(hashes)
        self.copies = Copies(self.rows, int(self._times[self._times > 1].sum()), bits)

    def __repr__(self) -> str:
        return "<rows>"

    def __reduce__(self) -> str:
        raise HandleError("rows of a holdout cannot be pickled; pickle the guard, which becomes a handle")

    def common(self, other: RowSet) -> int:
        """Return the number of rows in common; a repeated row counts as often as both tables have it."""
        _, mine, theirs = np.intersect1d(self._values, other._values, assume_unique=True, return_indices=True)
        return int(np.minimum(self._times[mine], other._times[theirs]).sum())

    def text(self, secret: bytes) -> bytes:
        """Return bytes that the ledger keeps; without the secret they show only the number of rows.

        Copies of a row are numbered, so that each row gets a different keyed number. The sorted numbers follow the
        masked number of repeated rows.
        """
        return self._head(secret, self.copies.repeated) + np.sort(self._keyed(secret)).astype("<u8").tobytes()

    def common_with(self, text: bytes, secret: bytes) -> int:
        """Return the number of rows in common with the rows of a :meth:`text`, under the same secret."""
        known = np.frombuffer(text, dtype="<u8", offset=_HEAD)
        return len(np.intersect1d(self._keyed(secret), known, assume_unique=True))

    @classmethod
    def copies_in(cls, text: bytes, secret: bytes) -> Copies:
        """Return the numbers of rows, and of repeated rows, that :meth:`text` was made of."""
        masked = int.from_bytes(text[:_HEAD], "little")
        return Copies(len(text) // 8 - 1, int.from_bytes(cls._head(secret, masked), "little"))

    @staticmethod
    def _head(secret: bytes, number: int) -> bytes:
        mask = int.from_bytes(hashlib.blake2b(b"head", key=secret, digest_size=_HEAD).digest(), "little")
        return (number ^ mask).to_bytes(_HEAD, "little")

    def _keyed(self, secret: bytes) -> NDArray[np.uint64]:
        ends = np.cumsum(self._times)
        copies = np.arange(self.rows) - np.repeat(ends - self._times, self._times)
        rows, key = np.repeat(self._values, self._times), hashlib.blake2b(secret, digest_size=16).digest()
        keyed = np.empty(self.rows, dtype=np.uint64)
        for block in in_blocks(self.rows, width=8):
            keyed[block] = siphash(key, [rows[block], copies[block].astype(np.uint64)])
        return keyed


def rows_of_table(X: Any, order: Sequence[int] | None = None) -> RowSet:
    """Return the rows of a table by the values of its columns, in any container; `order` selects the columns."""
    return RowSet(*row_hashes(X, order))


def row_hashes(X: Any, order: Sequence[int] | None = None) -> tuple[NDArray[np.uint64], float]:
    """Return the content of a :class:`RowSet`: a hash of each row of a table, shape (rows,), and the table's bits."""
    words, bits = Words(), 0.0
    found = [np.zeros(0, dtype=np.uint64)]
    for chunk in X.chunks() if is_chunked(X) else [X]:
        count = np.shape(chunk)[0]
        if count and hasattr(chunk, "tocsr"):
            rows = canonical_csr(chunk)
            bits = bits or _bits(rows, count, words, order)
            found.append(_of_sparse(rows if order is None else rows[:, order].tocsr(), words))
        elif count:
            bits = bits or _bits(chunk, count, words, order)
            found.append(_hashes_of(_parts(chunk, order), count, words))
    return np.concatenate(found), bits


def ordered_rows(X: Any, names: tuple[str, ...] | None) -> RowSet:
    """Return the rows of a table with its columns in the order of their names, if they have names."""
    return rows_of_table(X, None if names is None else sorted(range(len(names)), key=names.__getitem__))


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns; None unless every column has a name of its own."""
    names = X.names if is_chunked(X) else getattr(X, "columns", None)
    listed = [] if names is None else list(names)
    if not listed or not all(isinstance(name, str) for name in listed) or len(set(listed)) < len(listed):
        return None
    return tuple(listed)


def _hashes_of(parts: Iterable[NDArray[Any]], rows: int, words: Words) -> NDArray[np.uint64]:
    """Return a number for each row, given its columns as arrays: equal for equal rows, to 64 bits.

    It is a hash of the sum, over the columns, of hashes of value and place. Zeros add nothing, so that sparse rows get
    the same numbers.
    """
    sums = np.zeros(rows, dtype=np.uint64)
    place = 0
    for part in parts:
        table = part.reshape(len(part), -1)
        for block in in_blocks(len(table), width=max(1, table.shape[1])):
            numbers = _placed(words.of(table[block]), np.arange(place, place + table.shape[1]))
            sums[block] += numbers.sum(axis=1, dtype=np.uint64)
        place += table.shape[1]
    return mixed(sums)


def _bits(X: Any, rows: int, words: Words, order: Sequence[int] | None) -> float:
    """Return the bits by which two rows differ, estimated from all pairs of a sample, up to a limit."""
    count = min(_SAMPLE, rows)
    places = np.random.default_rng(0).choice(rows, count, replace=False)
    if hasattr(X, "tocsr"):
        X = X[places]
        if X.shape[1] > _MOST_COLUMNS:  # all nonzero values are taken to be the same
            filled = np.bincount(X.indices, minlength=X.shape[1])
            return float(_bits_of(np.stack([filled, count - filled]), count).sum())
        X, places = X.toarray(), np.arange(count)
    bits = 0.0
    for column in islice(_one_by_one(_parts(X, order)), _MOST_COLUMNS):
        _, times = np.unique(words.of(column[places]), return_counts=True)
        bits += float(_bits_of(times, count))
        if bits > _ENOUGH:
            break
    return bits


def _bits_of(times: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return the bits of each column, given how often each of its values occurs."""
    equal, pairs = (times * (times - 1)).sum(axis=0) / 2.0, count * (count - 1) / 2.0
    return np.asarray(np.log2(max(pairs, 1.0) / np.maximum(equal, 1.0)))


def _of_sparse(matrix: Any, words: Words) -> NDArray[np.uint64]:
    numbers = _placed(words.of(matrix.data), matrix.indices)
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(numbers, dtype=np.uint64)])
    return mixed(ends[matrix.indptr[1:]] - ends[matrix.indptr[:-1]])


def _placed(words: NDArray[np.uint64], places: NDArray[Any]) -> NDArray[np.uint64]:
    keys = (places.astype(np.uint64) + np.uint64(1)) * np.uint64(_PLACE)
    return np.asarray(mixed(words + keys) * (words != 0))


def columns_of(X: Any) -> Iterator[NDArray[Any]]:
    """Yield the columns of an array or a frame, each of shape (rows,); two may have the same name."""
    return _one_by_one(_parts(X, None))


def _one_by_one(parts: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    return (column for part in parts for column in part.reshape(len(part), -1).T)


def _parts(X: Any, order: Sequence[int] | None) -> Iterator[NDArray[Any]]:
    """Yield the columns of a frame one by one, and the columns of an array together."""
    if not hasattr(X, "columns"):
        array = np.asarray(X)
        yield array if order is None else array[:, order]
        return
    for place in range(len(X.columns)) if order is None else order:
        column = X.iloc[:, place] if hasattr(X, "iloc") else X.to_series(place)
        yield np.asarray(column.to_numpy())


# ---- copies in one holdout

# Copies of a row are no independent draws. Their origin (a table joined twice, oversampling, one user's rows) cannot be
# known here, and they may be chance. So only the owner is warned, when a guard is made, and nothing depends on it.


class CopiedRowsWarning(HoldoutError, UserWarning):  # noqa: N818 - a warning
    """Rows of a holdout are exact copies of others.

    It is also an error of this library: if warnings are raised as errors, its message must reach the user.
    """


class CopiedRows(NamedTuple):
    """Exact copies in a table: the number of rows equal to an earlier one, and the effective number of rows."""

    rows: int
    copies: int
    worth: int


def warn_of_copies(X: Any) -> None:
    """Warn the owner of copies that chance does not explain, by the features alone: labels must not show in a warning.

    Rows without features, rows that come in chunks and sparse rows are not looked at.
    """
    if X is None or is_chunked(X) or hasattr(X, "tocsr"):
        return
    found = copies_among(X)
    if found is not None:
        warn(
            CopiedRowsWarning(
                f"{found.copies:,} of {found.rows:,} rows have exactly the features of other rows; copies are "
                f"not independent: all rows are worth about {found.worth:,}, and intervals would be too narrow; "
                "pass groups= with one name for a row and its copies, or leave the copies out; if they are equal by "
                "chance, as rows of coarse numbers can be, nothing is wrong"
            )
        )


def copies_among(X: Any) -> CopiedRows | None:
    """Return the copies in a table that chance does not explain and that matter; None if there are none.

    Rows are the same if the values of their features are, to 64 bits. In a table of more than a million rows a part is
    examined, which has all or none of each set of equal rows.

    If each distinct row occurs ``count`` times, the mean varies as a mean of ``rows**2 / sum of count**2`` independent
    rows does; copies matter if that number is below 98% of the rows. Chance does not explain them if nine in ten of
    the distinct rows differ in a single floating-point column (in 30 values at least), and fewer rows share a value
    there than are copies in all columns: chance makes whole rows equal less often than one of their values. So tables
    of categories, or of numbers as coarse as those of the iris data, cause no warning.
    """
    parts = [np.asarray(part) for _, part in named_columns(X)]
    if sum(part[:1].size for part in parts) < _COLUMNS:
        return None
    rows = len(parts[0])
    hashes = _hashes_of(parts, rows, Words())
    looked_at = np.arange(rows)
    if rows > _LOOKED_AT:  # chosen by hash, so equal rows stay together
        looked_at = np.flatnonzero(hashes < np.uint64(2**64 // rows * _LOOKED_AT))
    _, first, counts = np.unique(hashes[looked_at], return_index=True, return_counts=True)
    kept, draws = len(looked_at), float(np.square(counts, dtype=np.float64).sum())
    copies = kept - len(first)
    if draws <= _NOTICED * kept or not _beyond_chance(copies, parts, looked_at[first]):
        return None
    return CopiedRows(rows, round(copies * rows / kept), round(rows * kept / draws))


def _beyond_chance(copies: int, parts: list[NDArray[Any]], distinct: NDArray[np.int64]) -> bool:
    """Return True if chance does not explain the copies.

    That is so if a column distinguishes nearly all of the distinct rows, and fewer of them share a value than are
    copies.
    """
    columns = _one_by_one(part for part in parts if part.dtype.kind == "f")
    enough = max(_LEAST_DISTINCT, _DISTINCT * len(distinct), len(distinct) - copies + 1)
    return any(len(np.unique(column[distinct])) >= enough for column in columns)
