"""Keyed digests of data: they tell whether two holdouts are the same, and to nobody without the key anything else.

A plain hash of the holdout would be a function of it that the analyst can see: a few unknown labels could be guessed
from it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.digests import holdout_digest, predictions_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ContentKey"]

_DIGEST_BYTES = 32


class ContentKey:
    """Digests under a key derived from the noise key.

    Parameters
    ----------
    key : bytes
        The guard's noise key.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.blake2b(b"content", key=key, digest_size=64).digest()

    def __repr__(self) -> str:
        return "<ContentKey>"

    def __reduce__(self) -> str:
        raise TypeError("a content key cannot be pickled")

    def holdout(self, X: Any, y: Any) -> str:
        """Digest of a holdout: columns, types, values and order of rows.

        It does not tell how the rows are cut into chunks, nor whether they lie in memory.
        """
        return holdout_digest(lambda: self._new(b"holdout"), X, y).hex()

    def view(self, description: str) -> bytes:
        """Digest of what is asked about the rows: a metric, its weights and a policy."""
        digest = self._new(b"view")
        digest.update(description.encode())
        return digest.digest()

    def guard(self, place: str) -> str:
        """Digest of where a guard lives."""
        digest = self._new(b"guard")
        digest.update(place.encode())
        return digest.hexdigest()

    def question(self, prepared: NDArray[Any], prior_unit: int, person: bytes = b"question") -> bytes:
        """Digest of a question asked with predictions: them in canonical form, and the prior on the grid.

        Only for predictions that the analyst has: whether two questions are the same is visible to her. Other ways to
        ask are other questions, told apart by `person`.
        """
        digest = self._new(person)
        digest.update(prior_unit.to_bytes(8, "big", signed=True))
        digest.update(predictions_digest(prepared))
        return digest.digest()

    def comparison(self, prepared: NDArray[Any], prior_unit: int) -> bytes:
        """Digest of a comparison of two predictions, in this order."""
        digest = self._new(b"comparison")
        digest.update(prior_unit.to_bytes(8, "big", signed=True))
        digest.update(predictions_digest(prepared))
        return digest.digest()

    def several(self, person: bytes, questions: Sequence[bytes]) -> bytes:
        """Digest of several questions together: a choice among them, or the failure of a whole batch."""
        digest = self._new(b"several " + person)
        for question in questions:
            digest.update(question)
        return digest.digest()

    def model_question(self, content: bytes, prior_unit: int, person: bytes = b"") -> bytes:
        """Digest of a question asked with a model, or a list of two: its fingerprint, and the prior on the grid.

        Its predictions for the private rows must not be used: whether two models agree on them is a function of the
        holdout, and replays would tell.
        """
        digest = self._new(b"model " + person)
        digest.update(prior_unit.to_bytes(8, "big", signed=True))
        digest.update(content)
        return digest.digest()

    def conceal(self, numbers: NDArray[np.int64] | None, size: int, about: bytes) -> bytes:
        """Private numbers, or that there are none, on their way from one process of this guard to another.

        Without the key all is noise, and `size` numbers long; what is longer takes the next power of two. What is
        changed on the way, or comes as something about something else, is not revealed.
        """
        length = 0 if numbers is None else len(numbers)
        padded = np.zeros(1 + (size if length <= size else 1 << (length - 1).bit_length()), dtype=np.int64)
        padded[0] = -1 if numbers is None else length
        padded[1 : 1 + length] = 0 if numbers is None else numbers
        nonce = secrets.token_bytes(_DIGEST_BYTES)
        masked = nonce + self._masked(padded.tobytes(), nonce)
        return self._authenticated(masked, about) + masked

    def reveal(self, concealed: bytes, about: bytes) -> NDArray[np.int64] | None:
        """Numbers that :meth:`conceal` was given.

        Raises
        ------
        InputError
            If it is something else.
        """
        told, masked = concealed[:_DIGEST_BYTES], concealed[_DIGEST_BYTES:]
        if not hmac.compare_digest(told, self._authenticated(masked, about)):
            raise InputError(
                "what was measured must come from this guard's measure(), for this model and this kind of query, "
                "unchanged; it does not; nothing was asked and nothing was charged"
            )
        nonce, masked = masked[:_DIGEST_BYTES], masked[_DIGEST_BYTES:]
        padded = np.frombuffer(self._masked(masked, nonce), dtype=np.int64)
        return None if padded[0] < 0 else padded[1 : 1 + padded[0]]

    def _authenticated(self, masked: bytes, about: bytes) -> bytes:
        digest = self._new(b"measured")
        digest.update(len(about).to_bytes(8, "big") + about + masked)
        return digest.digest()

    def _masked(self, plain: bytes, nonce: bytes) -> bytes:
        stream = hashlib.shake_256(self._key + b"concealed" + nonce).digest(len(plain))
        return (np.frombuffer(plain, np.uint8) ^ np.frombuffer(stream, np.uint8)).tobytes()

    def questions(self, prepared: NDArray[Any], prior_units: Sequence[int]) -> list[bytes]:
        """Digests of several questions."""
        return [self.question(one, unit) for one, unit in zip(prepared, prior_units, strict=True)]

    def claim(self, question: bytes, series: str, prior_unit: int) -> bytes:
        """Digest of one series' own claim about what a question is about."""
        digest = self._new(b"claim")
        digest.update(question + prior_unit.to_bytes(8, "big", signed=True) + series.encode())
        return digest.digest()

    def _new(self, person: bytes) -> hashlib.blake2b:
        return hashlib.blake2b(key=self._key, digest_size=_DIGEST_BYTES, person=person)
