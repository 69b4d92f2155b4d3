"""Numbers for values and rows: equal for equal ones, whatever they are kept in."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["Words", "mixed", "siphash"]

_MISSING = np.array(np.nan).view(np.uint64)[()]
_EXACT = 1 << 53  # integers up to here are floats
_WIDE = np.uint64(0x9E3779B97F4A7C15)
_KNOWN = 1 << 18  # texts whose word is kept


class Words:
    """Values as words of 64 bits, the same for 1, 1.0 and True, and for all that is missing.

    Parameters
    ----------
    key : bytes
        For what is no number: without it the words of texts say nothing.
    """

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._known: dict[Any, int] = {}

    def of(self, values: NDArray[Any]) -> NDArray[np.uint64]:
        """Word of each value; the same shape."""
        kind = values.dtype.kind
        if kind in "iu" and values.dtype.itemsize == 8:
            return _of_integers(values)
        if kind in "biuf":
            return _of_floats(values.astype(np.float64))
        if kind in "mM":
            unit = f"{kind}8[ns]"
            words: NDArray[np.uint64] = values.astype(unit).astype(np.int64).view(np.uint64) + _WIDE
            return words
        found = map(self._word, values.ravel().tolist())
        return np.fromiter(found, np.uint64, values.size).reshape(values.shape)

    def digest(self, content: bytes) -> bytes:
        """Eight bytes of a keyed hash."""
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
    """Floats where that is exact: names of 64 bits are not."""
    words = _of_floats(values.astype(np.float64))
    if values.size and (int(values.max()) > _EXACT or int(values.min()) < -_EXACT):
        wide = (values > _EXACT) | (values < -_EXACT)
        words[wide] = values[wide].astype(np.uint64, casting="unsafe") + _WIDE
    return words


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits of each number, spread over all of its 64: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    mixed = bits ^ (bits >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def siphash(key: bytes, words: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """SipHash-2-4 of messages, each of a few whole words: to nobody without the key more than random numbers.

    Parameters
    ----------
    key : bytes
        Of 16 bytes.
    words : iterable of numpy.ndarray of shape (messages,)
        The first word of each message, the second, ...

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
