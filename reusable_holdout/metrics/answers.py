"""Exact match with labels whose set is private: answers are compared in a normal form, and listed nowhere."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import Kind, in_blocks, typed_array, whole_numbers

__all__ = ["compared", "normal_form"]

_HASH_BYTES = 8


def normal_form(text: str) -> str:
    """Return the form in which answers are compared: NFKC, without case, with single spaces and none at the ends.

    >>> normal_form("  New  York ") == normal_form("new york")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def compared(answers: NDArray[Any], kind: Kind, *, what: str) -> NDArray[Any]:
    """Return each answer as a number, equal for equal answers: of text 64 bits of a hash, else the whole number.

    Such bytes of text (dtype V8), as a client sends, are taken as they are. An InputError says that answers are of the
    other kind, or numbers that are not whole; it quotes none.
    """
    if kind == "text" and answers.dtype == np.dtype(f"V{_HASH_BYTES}"):
        return np.frombuffer(answers.tobytes(), np.int64).reshape(answers.shape)
    labels, found = typed_array(answers, what=what)
    if found != kind:
        raise InputError(f"{what} must be {kind} like the labels; got {found}; convert them")
    if kind == "numbers":
        whole = whole_numbers(labels)
        if whole is None:
            raise InputError(
                f"{what} must be whole numbers of 64 bits like the labels; got others; pass labels, as predict gives "
                "them"
            )
        return whole.astype(np.int64)
    known: dict[str, int] = {}
    numbers = np.empty(labels.shape, np.int64)
    for rows in in_blocks(len(labels)):
        block = labels[rows].tolist()
        known |= {one: _hashed(one) for one in set(block) - known.keys()}
        numbers[rows] = [known[one] for one in block]
    return numbers


def _hashed(text: str) -> int:
    content = normal_form(text).encode("utf-8", "surrogatepass")
    return int.from_bytes(
        hashlib.blake2b(content, digest_size=_HASH_BYTES, person=b"answer").digest(), "little", signed=True
    )
