"""Keyed noise: the same question always gets the same noise.

The random bits of a draw are SHAKE-256 of (secret key, epoch, label, question). So nobody can average the noise away by
asking again, by retrying after a crash, or by restoring an old ledger. Without the key the bits cannot be distinguished
from fair coin flips. This is the only computational assumption of the library.
"""

from __future__ import annotations

import hashlib
import itertools
import operator
import secrets
from collections.abc import Iterator, Sequence
from typing import NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.noise.discrete_laplace import GeometricNoise

KEY_BYTES = 32
_DOMAIN = b"reusable-holdout/noise/1"
_SEED_DOMAIN = b"reusable-holdout/seed/1"
_CHUNK = 512  # number of draws made together, so that their bytes stay in the processor's cache


def new_key() -> bytes:
    """Make a fresh noise key.

    It consists of 32 bytes from the operating system's cryptographic generator, so nobody can predict or repeat the
    noise.

    Examples
    --------
    >>> len(new_key())
    32
    """
    return secrets.token_bytes(KEY_BYTES)


def key_from_seed(seed: SupportsIndex) -> bytes:
    """Derive a noise key from a seed, for reproducible experiments.

    Reproducible noise protects nobody: anybody who knows or guesses the seed can subtract the noise from every answer.

    Parameters
    ----------
    seed : int
        Any integer.

    Raises
    ------
    InputError
        If `seed` is not an integer.

    Examples
    --------
    >>> key_from_seed(7).hex()[:16]
    'ad0cf9c6000d92a3'
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise InputError(f"a seed is an integer; got {type(seed).__name__}") from None
    return hashlib.shake_256(_SEED_DOMAIN + b"/" + str(number).encode()).digest(KEY_BYTES)


class KeyedNoise:
    """Noise as a pseudo-random function of a secret key, an epoch, a label and a question.

    Two draws are equal if epoch, label and question are equal, and independent otherwise. Use a label for one
    distribution only: two distributions under the same label would read the same bits.

    Parameters
    ----------
    key : bytes
        32 secret bytes, from `new_key` or `key_from_seed`.
    epoch : int
        Number of the set of rows, from 0 to 2**64-1. A new epoch renews all noise under the same key.

    Raises
    ------
    InputError
        If the key does not have 32 bytes, or the epoch is out of range.
    HandleError
        If it is pickled or copied, because the key must not be stored anywhere else.

    Notes
    -----
    The stream is ``SHAKE-256(domain | key | epoch (8 bytes) | length of label (2 bytes) | label | question)``. The
    words that decide a tie at position ``p`` come from the stream of the label ``label/tie/p``. SHAKE-256 is a sponge
    function, so prepending the key is safe without HMAC.

    Examples
    --------
    >>> from reusable_holdout.noise import DiscreteLaplace
    >>> noise = KeyedNoise(key_from_seed(0))
    >>> law = DiscreteLaplace(1000)
    >>> noise.draw(law, label="query", question=b"a") == noise.draw(law, label="query", question=b"a")
    True
    """

    __slots__ = ("__key", "epoch")

    def __init__(self, key: bytes, *, epoch: int = 0) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            came = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
            raise InputError(f"a noise key is {KEY_BYTES} bytes; got {came}; make one with new_key()")
        if not 0 <= epoch < 2**64:
            raise InputError(f"an epoch lies between 0 and 2**64-1; got {epoch}")
        self.__key = key
        self.epoch = epoch

    def __repr__(self) -> str:
        return f"KeyedNoise(key=<hidden>, epoch={self.epoch})"

    def __reduce__(self) -> NoReturn:
        raise HandleError(
            "a noise key cannot be pickled or copied; open the ledger where the noise is needed"
        )

    def draw(self, distribution: GeometricNoise, *, label: str, question: bytes) -> int:
        """Draw the noise of one question.

        The result equals that of `draw_many` for the same question.

        Parameters
        ----------
        distribution : GeometricNoise
            The law of the noise.
        label : str
            Purpose of the noise ("threshold", "query", "answer"); without "/".
        question : bytes
            The question's digest.

        Raises
        ------
        InputError
            If the label contains "/".

        Examples
        --------
        >>> from reusable_holdout.noise import DiscreteLaplace
        >>> KeyedNoise(new_key()).draw(DiscreteLaplace(0), label="query", question=b"")
        0
        """
        return int(self._chunk(distribution, label, [question])[0])

    def draw_many(
        self, distribution: GeometricNoise, *, label: str, questions: Sequence[bytes]
    ) -> npt.NDArray[np.int64]:
        """Draw the noise of many questions.

        Element ``i`` equals ``draw(distribution, label=label, question=questions[i])``.

        Parameters
        ----------
        distribution : GeometricNoise
            The law of the noise.
        label : str
            Purpose of the noise; without "/".
        questions : Sequence[bytes]
            The questions' digests.

        Returns
        -------
        ndarray of int64, shape (len(questions),)
            Grid units.

        Examples
        --------
        >>> from reusable_holdout.noise import DiscreteLaplace
        >>> noise = KeyedNoise(new_key())
        >>> noise.draw_many(DiscreteLaplace(0), label="query", questions=[b"a", b"b"]).tolist()
        [0, 0]
        """
        chunks = [questions[at : at + _CHUNK] for at in range(0, len(questions), _CHUNK)]
        drawn = [self._chunk(distribution, label, chunk) for chunk in chunks]
        return np.concatenate([*drawn, np.zeros(0, dtype=np.int64)])

    def _chunk(
        self, distribution: GeometricNoise, label: str, questions: Sequence[bytes]
    ) -> npt.NDArray[np.int64]:
        copy = hashlib.shake_256(self._prefix(label)).copy  # a copy costs less than a new hash
        size = distribution.stream_bytes
        if size == 0:
            return np.zeros(len(questions), dtype=np.int64)
        streams: list[bytes] = []
        keep = streams.append
        for question in questions:
            stream = copy()
            stream.update(question)
            keep(stream.digest(size))
        return distribution.decode_many(
            b"".join(streams), lambda draw, position: self._further(label, position, questions[draw])
        )

    def _prefix(self, label: str, part: str = "") -> bytes:
        """Return the bytes that precede the question in the hashed message.

        With a `part`, which contains "/", the stream is one that no other label can have.
        """
        if "/" in label:
            raise InputError(
                f"a noise label has no '/', which separates a label from its ties; got {label!r}"
            )
        name = f"{label}{part}".encode()
        epoch, length = self.epoch.to_bytes(8, "big"), len(name).to_bytes(2, "big")
        return b"".join([_DOMAIN, self.__key, epoch, length, name])

    def _further(self, label: str, position: int, question: bytes) -> Iterator[int]:
        """Yield endless 16-bit words to decide a tie.

        A longer digest of SHAKE-256 begins with the shorter one, so each word is the end of a longer digest.
        """
        shake = hashlib.shake_256(self._prefix(label, f"/tie/{position}") + question)
        for words in itertools.count(1):
            yield int.from_bytes(shake.digest(2 * words)[-2:], "little")
