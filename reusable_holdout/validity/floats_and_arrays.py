"""The same formula for a float and for an array: what differs between the two, and nothing else."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EPS", "Number", "Real", "functions", "pair", "solve_where"]

Real = TypeVar("Real", float, npt.NDArray[np.float64])
Number: TypeAlias = Any  # a float, or an array of floats; no line below depends on which

EPS = 2.0**-52


# What differs between a float and an array; a standard Gaussian exceeds ``deviations`` at a log level.
_FLOATS = SimpleNamespace(
    exp=math.exp,
    log=math.log,
    log1p=math.log1p,
    sqrt=math.sqrt,
    ceil=lambda x: float(math.ceil(x)),
    lgamma=math.lgamma,
    deviations=lambda level: -float(special.ndtri_exp(level)),
    least=lambda a, b: a if a < b else b,
    most=lambda a, b: a if a > b else b,
    where=lambda condition, a, b: a if condition else b,
    every=bool,
)
_ARRAYS = SimpleNamespace(
    exp=np.exp,
    log=np.log,
    log1p=np.log1p,
    sqrt=np.sqrt,
    ceil=np.ceil,
    lgamma=lambda x: special.gammaln(x),  # noqa: PLW0108 - SciPy is imported when it is called
    deviations=lambda level: -special.ndtri_exp(level),
    least=np.minimum,
    most=np.maximum,
    where=np.where,
    every=np.all,
)


def functions(x: Number) -> SimpleNamespace:
    """Mathematical functions for the kind of number this is."""
    return _FLOATS if isinstance(x, float) else _ARRAYS


def solve_where(
    wanted: Number, solve: Callable[..., Number], otherwise: Number, *arguments: Number
) -> Number:
    """Solve where wanted and answer otherwise elsewhere, so that solvers never meet a degenerate case."""
    if not isinstance(wanted, np.ndarray):
        return solve(*arguments) if wanted else otherwise
    result = np.array(np.broadcast_to(otherwise, wanted.shape), dtype=np.float64)
    if wanted.any():
        result[wanted] = solve(*(argument[wanted] for argument in arguments))
    return result


def pair(first: Number, second: Number) -> tuple[Number, Number]:
    """Two floats, or two arrays of one shape."""
    if np.ndim(first) == 0 and np.ndim(second) == 0:
        return float(first), float(second)
    first, second = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    return first, second
