"""Python's objects, looked at one by one: arrays of them as booleans, numbers or text, and what is no array at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError

__all__ = ["from_objects", "no_array"]

_OBJECTS: dict[str, Any] = {
    "boolean": np.bool_,
    "integer": np.int64,
    "floating": np.float64,
    "mixed-integer-float": np.float64,
    "string": np.str_,
}


def no_array(values: object, *, what: str) -> InputError:
    """Error for what is no array: what came, by its type alone, and what to pass."""
    came, advice = f"got {type(values).__name__}", "convert it"
    if values is None:
        came, advice = "got None", "pass them"
    elif isinstance(values, type):
        came, advice = f"got the class {values.__name__}", "make an object"
    elif isinstance(values, str | bytes | PurePath):
        came, advice = "got text or a path, not data", "read the file first"
    elif isinstance(values, Mapping):
        advice = "pass its values as a list, in the order of the rows"
    elif isinstance(values, Set):
        advice = "a set has no order: pass a list in the order of the rows"
    elif isinstance(values, Iterator):
        advice = "it can be read once only: pass a list of it"
    elif hasattr(values, "predict"):
        advice = "pass what the model predicts, or ask about the model itself"
    elif hasattr(values, "collect"):
        advice = "pass what its collect() gives"
    return InputError(f"{what} must be a list or an array, with an entry for each row; {came}; {advice}")


def from_objects(array: NDArray[Any], *, what: str) -> NDArray[Any]:
    """Array of booleans, numbers or text of an array of objects; a mixture, or something missing, is refused."""
    import pandas as pd  # noqa: PLC0415 - a slow import that refusals do not need

    flat = array.ravel()
    if pd.isna(flat).any():
        raise InputError(f"{what} must not be missing; got NaN or None; drop or fill them")
    kind = pd.api.types.infer_dtype(flat, skipna=False)
    if flat.size and kind not in _OBJECTS:
        raise InputError(
            f"{what} must be all booleans, all real numbers or all text; got objects ({kind}); convert them"
        )
    too_large = False
    try:
        converted: NDArray[Any] = flat.astype(_OBJECTS.get(kind, np.float64))
    except OverflowError:
        too_large = True
    if too_large:
        raise InputError(f"{what} must fit 64-bit integers; got a larger one; use text for such labels")
    return converted.reshape(array.shape)
