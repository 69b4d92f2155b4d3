"""The format of the messages on a box's socket: a JSON object, followed by the bytes of arrays.

A message begins with eight bytes, the lengths of its two parts. The first part is a JSON object in UTF-8. The
second part is the bytes of the arrays that the object describes. Nothing in a message can become code: there are no
pickles and no arrays of objects. The depth of the JSON, the digits of its numbers and all lengths are bounded.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError

__all__ = ["LENGTHS", "Message", "lengths_of", "packed", "unpacked"]

LENGTHS = 8
_FORMAT = ">II"
_DTYPES = {"|u1", "<u2", "<u4", "<i8", "<f8"}
_MOST_ARRAYS = 4_096
_MOST_AXES = 3
_MOST_NESTED = 8
_MOST_DIGITS = 40
_ARRAYS = "arrays"
_NOTHING = "; nothing was asked"


class Message(NamedTuple):
    """One message, after it was read.

    Attributes
    ----------
    head : dict
        The JSON object, without the description of the arrays.
    arrays : list of numpy.ndarray
        Read-only arrays of numbers.
    """

    head: dict[str, Any]
    arrays: list[NDArray[Any]]


def lengths_of(start: bytes | bytearray) -> tuple[int, int]:
    """Return the lengths of a message's two parts, read from its first eight bytes."""
    head, body = struct.unpack(_FORMAT, start[:LENGTHS])
    return head, body


def packed(head: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> bytes:
    """Return the bytes of a message.

    Raises
    ------
    InputError
        If an array's dtype is not one of the five that messages may have.
    """
    plain = [_plain(one) for one in arrays]
    described = [[one.dtype.str, list(one.shape)] for one in plain]
    whole = {**head, _ARRAYS: described} if described else head
    text = json.dumps(whole, separators=(",", ":")).encode()
    body = b"".join(one.tobytes() for one in plain)
    return struct.pack(_FORMAT, len(text), len(body)) + text + body


def unpacked(head: bytes, body: bytes, *, finite: bool = True) -> Message:
    """Return the message whose two parts are given as bytes.

    Parameters
    ----------
    head, body : bytes
        The JSON object, and the bytes of the arrays.
    finite : bool
        True if all numbers in the JSON must be finite, as in questions.

    Raises
    ------
    InputError
        If the bytes do not have the format of a message.
    """
    try:
        found = _json(head, finite=finite)
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError(f"a message must begin with a JSON object in UTF-8; it does not{_NOTHING}") from None
    if not isinstance(found, dict):
        raise InputError(f"a message must be a JSON object; it is something else{_NOTHING}")
    return Message(found, _arrays(found.pop(_ARRAYS, []), body))


# ---- JSON


def _json(text: bytes, *, finite: bool) -> Any:
    brackets = text.translate(None, delete=_NO_BRACKETS)
    depth = deepest = 0
    for one in brackets:  # brackets within texts count, too: no name needs eight of them
        depth += 1 if one in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > _MOST_NESTED:
        raise InputError(f"a message must be nested at most {_MOST_NESTED} deep; it is deeper{_NOTHING}")
    return json.loads(
        text.decode(),
        object_pairs_hook=_object,
        parse_int=_whole,
        parse_float=_number if finite else float,
        parse_constant=_number if finite else float,
    )


_NO_BRACKETS = bytes(one for one in range(256) if one not in b"[]{}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError(f"each key of a message must come once; one comes twice{_NOTHING}")
    return found


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise InputError(f"a whole number must have at most {_MOST_DIGITS} digits; one has more{_NOTHING}")
    return int(digits)


def _number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InputError(f"numbers must be finite; one is not{_NOTHING}")
    return number


# ---- arrays


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    ready = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    if ready.dtype.str not in _DTYPES:
        raise InputError(f"arrays of {array.dtype} cannot be sent; pass numbers{_NOTHING}")
    return ready


def _arrays(described: object, body: bytes) -> list[NDArray[Any]]:
    if not isinstance(described, list) or len(described) > _MOST_ARRAYS:
        raise InputError(f"arrays must be a list of at most {_MOST_ARRAYS:,}; it is not{_NOTHING}")
    found, start = [], 0
    for one in described:
        dtype, shape = _form(one)
        count = math.prod(shape)
        end = start + count * dtype.itemsize
        if end > len(body):
            raise InputError(f"a message must hold all arrays that it describes; it is shorter{_NOTHING}")
        found.append(np.frombuffer(body, dtype, count, start).reshape(shape))
        start = end
    if start != len(body):
        raise InputError(f"a message must hold only the arrays that it describes; it is longer{_NOTHING}")
    return found


def _form(described: object) -> tuple[np.dtype[Any], tuple[int, ...]]:
    match described:
        case [str(dtype), list(shape)] if (
            dtype in _DTYPES
            and 0 < len(shape) <= _MOST_AXES
            and all(type(one) is int and 0 < one < 2**31 for one in shape)
        ):
            return np.dtype(dtype), tuple(shape)
    raise InputError(f"an array must be described by its dtype and shape; one is not{_NOTHING}")
