"""What a fitted model is, as bytes: the same in every process.

joblib's hash tells a model from itself after a journey to a worker: the strides of an array, and which parts are one
object, depend on the journey. What is the same model must be the same question, wherever it was fitted.
"""

from __future__ import annotations

import copyreg
import hashlib
import pickle
import secrets
import types
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["fingerprint"]

_OF_THE_MACHINE = {"n_jobs", "n_threads"}  # how many cores there were is no part of a model
_COUNTERS = slice(7, 11)  # of scikit-learn's search trees: how much they have searched
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented))
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)


def fingerprint(model: Any) -> bytes:
    """Digest of a model's content.

    Equal for a model and its pickled copy, and for models of deterministic fits to the same data in any process;
    different for models that differ in a parameter or a fitted number.

    Parameters
    ----------
    model : object
        Fitted. One that cannot be pickled gets another digest each time.

    Returns
    -------
    bytes
        Of length 32.

    Examples
    --------
    >>> import pickle
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> fingerprint(model) == fingerprint(pickle.loads(pickle.dumps(model)))
    True
    >>> fingerprint(model) == fingerprint(model.set_params(C=2.0))
    False
    """
    digest = hashlib.sha256()
    try:
        copied = pickle.loads(pickle.dumps(model, protocol=5))  # noqa: S301 - our own; some parts do not survive it
        for piece in _pieces(copied, {}):
            digest.update(len(piece).to_bytes(8, "big"))
            digest.update(piece)
    except Exception:  # whatever pickling raises
        return secrets.token_bytes(32)
    return digest.digest()


def _pieces(value: Any, above: dict[int, int]) -> Iterator[bytes]:
    """Bytes of a value; `above` has the depth of each value it lies in, for one may lie in itself."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if type(value) in _PLAIN:
        yield f"{type(value).__name__} {value!r}".encode(errors="surrogatepass")
    elif isinstance(value, _NAMED):
        yield pickle.dumps(value, protocol=4)  # its name; raises if it has none that can be imported
    elif id(value) in above:
        yield f"the value {above[id(value)]} levels below the top".encode()
    else:
        inside = above | {id(value): len(above)}
        if isinstance(value, np.ndarray):
            yield from _array(value, inside)
        elif type(value) is dict:
            yield from _dictionary(value, inside)
        elif type(value) in (list, tuple):
            yield f"{type(value).__name__} of {len(value)}".encode()
            for item in value:
                yield from _pieces(item, inside)
        elif type(value) in (set, frozenset):
            yield f"{type(value).__name__} of {len(value)}".encode()
            yield from sorted(b"".join(_pieces(item, inside)) for item in value)
        else:
            yield from _object(value, inside)


def _array(array: np.ndarray[Any, Any], above: dict[int, int]) -> Iterator[bytes]:
    yield f"array {array.shape}".encode()
    if array.dtype.hasobject:
        for item in array.ravel().tolist():
            yield from _pieces(item, above)
    elif array.dtype.names is not None:  # field by field: the bytes between them mean nothing
        for name in array.dtype.names:
            yield name.encode()
            yield from _array(array[name], above)
    else:
        yield array.dtype.str.encode()
        yield array.tobytes()


def _dictionary(items: dict[Any, Any], above: dict[int, int]) -> Iterator[bytes]:
    kept = [
        (key, item) for key, item in items.items() if not (isinstance(key, str) and key in _OF_THE_MACHINE)
    ]
    yield f"dict of {len(kept)}".encode()
    for key, item in kept:
        yield from _pieces(key, above)
        yield from _pieces(item, above)


def _object(value: Any, above: dict[int, int]) -> Iterator[bytes]:
    """Whatever pickle would keep of it."""
    registered = copyreg.dispatch_table.get(type(value))
    reduced = value.__reduce_ex__(4) if registered is None else registered(value)
    yield b"object"
    if isinstance(reduced, str):
        yield reduced.encode()
        return
    make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    if isinstance(state, tuple) and type(value).__name__ in {"KDTree", "BallTree"}:
        state = (*state[: _COUNTERS.start], *state[_COUNTERS.stop :])
    for part in (make, arguments, state):
        yield from _pieces(part, above)
    for item in items or ():
        yield from _pieces(item, above)
    for key, item in pairs or ():
        yield from _pieces(key, above)
        yield from _pieces(item, above)
