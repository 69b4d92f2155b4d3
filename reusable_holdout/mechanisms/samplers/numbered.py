"""Keyed noise for questions that are numbered 0, 1, 2, ...: many draws from one call of the hash function.

A draw spends most of its time in the hash function. A guard's questions are digests, and each needs a call of its own.
A stream within one process numbers its questions, so that 64 draws can share one call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reusable_holdout.noise.discrete_laplace import GeometricNoise
from reusable_holdout.noise.keyed import KeyedNoise

_NUMBER_BYTES = 8
_DRAWS = 64  # number of draws from one call of the hash function


class NumberedNoise(KeyedNoise):
    """Noise as a pseudo-random function of a secret key, an epoch, a label and a number.

    It is as private and as repeatable as `KeyedNoise`, but its draws differ from those of `KeyedNoise` for the same
    question. For a question that is not a number of eight bytes the draw is that of `KeyedNoise`.

    Parameters
    ----------
    key : bytes
        32 secret bytes, from `new_key` or `key_from_seed`.
    epoch : int
        A new epoch renews all noise under the same key; 0 .. 2**64-1.

    Raises
    ------
    InputError
        If the key does not have 32 bytes, or the epoch is out of range.
    HandleError
        If it is pickled or copied.

    Notes
    -----
    Draw ``i`` reads the ``i % 64``-th part of ``SHAKE-256(domain | key | epoch | length | "label/block" | i // 64)``,
    numbers in eight bytes. No label contains "/", so no other draw reads this stream. Ties are resolved as by
    `KeyedNoise`.

    Examples
    --------
    >>> from reusable_holdout.noise import DiscreteLaplace, key_from_seed
    >>> noise, law = NumberedNoise(key_from_seed(0)), DiscreteLaplace(1000)
    >>> questions = [number.to_bytes(8, "big") for number in range(100)]
    >>> int(noise.draw_many(law, label="query", questions=questions)[70]) == noise.draw(
    ...     law, label="query", question=questions[70]
    ... )
    True
    """

    __slots__ = ("_kept",)

    def __init__(self, key: bytes, *, epoch: int = 0) -> None:
        super().__init__(key, epoch=epoch)
        # For each label the last block: its number and size, and its bytes.
        self._kept: dict[str, tuple[tuple[int, int] | None, bytes]] = {}

    def __repr__(self) -> str:
        return f"NumberedNoise(key=<hidden>, epoch={self.epoch})"

    def draw(self, distribution: GeometricNoise, *, label: str, question: bytes) -> int:
        """Draw the noise of one question.

        The result equals that of `draw_many` for the same question.

        Parameters
        ----------
        distribution, label, question
            As for `KeyedNoise.draw`.

        Raises
        ------
        InputError
            If the label contains "/".
        """
        size = distribution.stream_bytes
        if not size or len(question) != _NUMBER_BYTES:
            return super().draw(distribution, label=label, question=question)
        block, place = divmod(int.from_bytes(question, "big"), _DRAWS)
        stream = self._block(label, block, size)[place * size : (place + 1) * size]
        return int(
            distribution.decode_many(stream, lambda _, position: self._further(label, position, question))[0]
        )

    def _chunk(
        self, distribution: GeometricNoise, label: str, questions: Sequence[bytes]
    ) -> npt.NDArray[np.int64]:
        size = distribution.stream_bytes
        if not size or set(map(len, questions)) != {_NUMBER_BYTES}:
            return super()._chunk(distribution, label, questions)
        numbers = np.frombuffer(b"".join(questions), np.dtype(">u8")).astype(np.uint64)
        blocks, of_block = np.unique(numbers // _DRAWS, return_inverse=True)
        stream = b"".join([self._block(label, block, size) for block in blocks.tolist()])
        parts = np.frombuffer(stream, np.dtype((np.void, size)))
        places = of_block.astype(np.int64) * _DRAWS + (numbers % _DRAWS).astype(np.int64)
        return distribution.decode_many(
            parts[places].tobytes(), lambda draw, position: self._further(label, position, questions[draw])
        )

    def _block(self, label: str, block: int, size: int) -> bytes:
        """Return the bytes of the 64 draws of a block."""
        last, stream = self._kept.get(label, (None, b""))
        if last != (block, size):
            prefix = self._prefix(label, "/block")
            stream = hashlib.shake_256(prefix + block.to_bytes(_NUMBER_BYTES, "big")).digest(_DRAWS * size)
            self._kept[label] = (block, size), stream
        return stream
