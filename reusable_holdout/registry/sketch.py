"""Recognition of equal rows: 64-bit words of values, the same in every container, and sketches of sets of rows.

A sketch is a few thousand keyed numbers that tell whether two sets of rows overlap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MISSING = np.array(np.nan).view(np.uint64)[()]
_EXACT = 1 << 53  # integers up to here are floats
_WIDE = np.uint64(0x9E3779B97F4A7C15)
_KNOWN = 1 << 18  # texts whose word is kept

_KEPT = 1024  # numbers of each part
_TELLING = 4  # most columns of a sketch; the values of each of them tell most rows apart
_REPEATED = 0.1  # largest share of the rows whose value in such a column occurred before
_WHOLE = float(1 << 64)
_FEWEST = 3  # least count of numbers in common that is taken for more than chance
_OF_ROWS, _OF_VALUES = 0.02, 0.2  # share in common by chance: rows of one population, values of a column
_ROUGHLY = 8.0  # times as many hashes are looked at as are kept


class Words:
    """A converter of values to 64-bit words: 1, 1.0 and True have the same word, and so have all missing values.

    Parameters
    ----------
    key : bytes
        Key for values that are not numbers: without it the words of texts reveal nothing.
    """

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._known: dict[Any, int] = {}

    def of(self, values: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the word of each value, in the same shape."""
        kind = values.dtype.kind
        if kind in "iu" and values.dtype.itemsize == 8:
            return _of_integers(values)
        if kind in "biuf":
            return _of_floats(values.astype(np.float64))
        if kind in "mM":
            unit = f"{kind}8[ns]"
            return np.asarray(values.astype(unit).astype(np.int64).view(np.uint64) + _WIDE)
        found = map(self._word, values.ravel().tolist())
        return np.fromiter(found, np.uint64, values.size).reshape(values.shape)

    def digest(self, content: bytes) -> bytes:
        """Return eight bytes of a keyed hash."""
        return hashlib.blake2b(content, key=self._key, digest_size=8).digest()

    def _word(self, value: Any) -> int:
        try:
            word = self._known.get(value)
        except TypeError:  # a list or an array
            return self._of_text(value)
        if word is None:
            word = self._of_text(value)
            if len(self._known) < _KNOWN:
                self._known[value] = word
        return word

    def _of_text(self, value: Any) -> int:
        if value is None or type(value).__name__ in {"NAType", "NaTType"}:
            return int(_MISSING)
        if isinstance(value, bool | int | float | np.number | np.bool_):
            exact = isinstance(value, int | np.integer) and abs(int(value)) > _EXACT
            if not exact:
                return int(_of_floats(np.array([value], dtype=np.float64))[0])
            value = f"{int(value)}"
        content = value.tobytes() if isinstance(value, np.ndarray) else f"{value}".encode("utf-8", "replace")
        return int.from_bytes(self.digest(content), "little")


def _of_floats(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    values += 0.0  # one zero
    words = values.view(np.uint64)
    missing = np.isnan(values)
    if missing.any():
        words[missing] = _MISSING
    return words


def _of_integers(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a 64-bit word for each integer: that of the equal float, or its own if no float is equal."""
    words = _of_floats(values.astype(np.float64))
    if values.size and (int(values.max()) > _EXACT or int(values.min()) < -_EXACT):
        wide = (values > _EXACT) | (values < -_EXACT)
        words[wide] = values[wide].astype(np.uint64, casting="unsafe") + _WIDE
    return words


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each number with its bits spread over all 64: SplitMix64's finaliser (Steele, Lea and Flood, 2014)."""
    mixed = bits ^ (bits >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def siphash(key: bytes, words: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the SipHash-2-4 of messages of a few words; without the key the results look random.

    Parameters
    ----------
    key : bytes
        Key of 16 bytes.
    words : iterable of numpy.ndarray of shape (messages,)
        An array of the messages' first words, one of their second words, and so on.

    References
    ----------
    .. [1] Aumasson, Bernstein (2012), "SipHash: a fast short-input PRF", INDOCRYPT.
    """
    keys = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    message = list(words)
    constants = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    state = [
        np.full(len(message[0]), keys[place % 2] ^ np.uint64(constant), dtype=np.uint64)
        for place, constant in enumerate(constants)
    ]
    length = np.uint64((8 * len(message) % 256) << 56)
    for word in [*message, np.full(len(message[0]), length)]:
        state[3] ^= word
        _rounds(state, 2)
        state[0] ^= word
    state[2] ^= np.uint64(0xFF)
    _rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _rounds(state: list[NDArray[np.uint64]], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a += b
        b = _rotated(b, 13) ^ a
        a = _rotated(a, 32)
        c += d
        d = _rotated(d, 16) ^ c
        a += d
        d = _rotated(d, 21) ^ a
        c += b
        b = _rotated(b, 17) ^ c
        c = _rotated(c, 32)
    state[:] = a, b, c, d


def _rotated(words: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


# ---- sketches


class Part(NamedTuple):
    """The smallest of the hashes of whole "rows", or of the "values" of one column, digested and sorted.

    `rate` is the share of all possible hashes up to the largest that is kept; 1 if all hashes are kept. `distinct` is
    about the number of different values, and `repeated` about the share of rows whose value an earlier row had.
    """

    kind: str
    rate: float
    distinct: float
    repeated: float
    numbers: NDArray[np.uint64]


class Sketch(NamedTuple):
    """The sketch of a set of rows.

    Attributes
    ----------
    rows : int
    total : str
        Digest of all rows, the same in any order; for labels alone, a digest that depends on their order.
    parts : tuple of Part
    """

    rows: int
    total: str
    parts: tuple[Part, ...]


def overlap(one: Sketch, other: Sketch) -> float:
    """Return about the share of the smaller set of rows that is also in the other; 0 if it may be chance.

    Rows of one population may agree by chance, and more so if there are few distinct values. The agreement that their
    own duplicates explain does not count.
    """
    if one.total == other.total and one.rows == other.rows:
        return 1.0
    pairs = ((mine, theirs) for mine in one.parts for theirs in other.parts if mine.kind == theirs.kind)
    return min(max((_share(*pair) for pair in pairs), default=0.0), 1.0)


def _share(mine: Part, theirs: Part) -> float:
    """Return the share of the smaller part that the other one also has; 0 if it may be chance."""
    common = len(np.intersect1d(mine.numbers, theirs.numbers, assume_unique=True))
    smaller = min(mine.distinct, theirs.distinct)
    if not common or common < min(_FEWEST, smaller):
        return 0.0
    share = common / min(mine.rate, theirs.rate) / smaller
    chance = _OF_VALUES if mine.kind == "values" else _OF_ROWS
    return share if share > chance + 2.0 * max(mine.repeated, theirs.repeated) else 0.0


class Sketcher:
    """A maker of the sketch of rows that come piece by piece.

    Parameters
    ----------
    key : bytes
        Key of 32 bytes: without it the numbers reveal nothing.
    """

    def __init__(self, key: bytes) -> None:
        self._words = Words(key)
        self._salt = np.uint64(int.from_bytes(self._words.digest(b"salt"), "little"))
        self._rows, self._sum = 0, 0
        self._whole, self._columns = _Least(), list[_Least]()

    def add(self, columns: Iterable[NDArray[Any]]) -> None:
        """Add rows, given as columns of shape (rows,)."""
        whole: NDArray[np.uint64] | None = None
        for place, column in enumerate(columns):
            values = mixed(self._words.of(column) ^ self._salt)
            if place == len(self._columns):
                self._columns.append(_Least())
            least = self._columns[place]
            least.tells = least.tells and _may_tell(column)
            if least.tells:
                least.add(values)
            whole = values if whole is None else np.add(whole, values, out=whole)
        if whole is None:
            return
        rows = mixed(whole)  # the same for any order and names of columns
        self._rows += len(rows)
        self._sum = (self._sum + int(rows.sum(dtype=np.uint64))) % (1 << 64)
        self._whole.add(rows)

    def sketch(self) -> Sketch:
        """Return the sketch of all rows so far."""
        telling = [least for least in self._columns if least.tells and least.repeated <= _REPEATED]
        telling.sort(key=lambda least: int(least.hashes[0]))  # the same if others are added or left out
        parts = [self._part("rows", self._whole), *(self._part("values", one) for one in telling[:_TELLING])]
        total = self._words.digest(f"{self._rows} rows {self._sum}".encode()).hex()
        return Sketch(self._rows, total, tuple(parts))

    def of_whole(self, rows: int, content: bytes) -> Sketch:
        """Return the sketch of data that are known as a whole only: labels alone, in order."""
        return Sketch(rows, self._words.digest(b"whole" + content).hex(), ())

    def _part(self, kind: str, least: _Least) -> Part:
        numbers = [int.from_bytes(self._words.digest(one.tobytes()), "little") for one in least.hashes]
        ordered = np.sort(np.array(numbers, dtype=np.uint64))
        return Part(kind, least.rate, least.distinct, least.repeated, ordered)


class _Least:
    """The smallest different hashes so far and the count of each; `tells` is True if the values may tell rows apart."""

    def __init__(self) -> None:
        self.tells = True
        self.hashes = np.zeros(0, dtype=np.uint64)
        self._times = np.zeros(0, dtype=np.int64)

    def add(self, values: NDArray[np.uint64]) -> None:
        if len(self.hashes) == _KEPT:
            few = values[values <= self.hashes[-1]]
        else:
            few = values[values < np.uint64(min(_ROUGHLY * _KEPT / max(len(values), 1), 0.99) * _WHOLE)]
            if len(np.unique(few)) < _KEPT:  # many are equal, or there are few in all
                few = values
        times = np.concatenate([self._times, np.ones_like(few, dtype=np.int64)])
        hashes, places = np.unique(np.concatenate([self.hashes, few]), return_inverse=True)
        self.hashes, self._times = hashes[:_KEPT], np.bincount(places, times)[:_KEPT].astype(np.int64)

    @property
    def rate(self) -> float:
        return 1.0 if len(self.hashes) < _KEPT else (float(self.hashes[-1]) + 1.0) / _WHOLE

    @property
    def distinct(self) -> float:
        return len(self.hashes) / self.rate

    @property
    def repeated(self) -> float:
        times = int(self._times.sum())
        return 1.0 - len(self.hashes) / times if times else 0.0


def _may_tell(column: NDArray[Any]) -> bool:
    """Return True if a column may distinguish rows: it holds text, or numbers that are not whole."""
    if column.dtype.kind == "f":
        head = column[: 1 << 10]
        return bool((head != np.floor(head)).mean() > 0.5)
    return column.dtype.kind in "OUST"
