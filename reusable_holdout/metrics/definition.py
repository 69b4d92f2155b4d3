"""The definition of a metric: its name, its bounds, and the function that computes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import as_floats
from reusable_holdout.metrics.scoring import Family, MeanLoss, Statistic

Response = Literal["judged", "labels", "probabilities", "scores", "values"]
Kernel = Callable[["Definition", Any], Statistic]

_DESCRIBED = ("name", "response", "lower", "upper", "greater_is_better", "family")

_OVER_OUTPUTS = {"accuracy", "hamming_loss", "mae", "mse", "quantile_loss", "zero_one_loss"}
_OVER_OUTPUTS |= {"mean_absolute_error", "mean_squared_error"}  # scikit-learn's names of the negated losses


@dataclass(frozen=True, kw_only=True)
class Definition:
    """The fields of a :class:`Metric` and their checks, without the methods that bind it to labels."""

    name: str
    lower: float
    upper: float
    greater_is_better: bool
    response: Response = "values"
    family: Family = "bounded"
    parameters: Mapping[str, float] = field(default_factory=dict, hash=False)
    loss: Callable[[NDArray[Any], NDArray[Any]], Any] | None = None
    statistic: Callable[[NDArray[Any], NDArray[Any]], Any] | None = None
    differences: Callable[[NDArray[Any]], Any] | Sequence[float] | NDArray[Any] | None = None
    kernel: Kernel | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.statistic is not None and self.family == "bounded":  # default; a statistic has one family
            object.__setattr__(self, "family", "bounded-difference")
        self._check_words()
        self._check_numbers()
        self._check_functions()
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))
        object.__setattr__(self, "parameters", {key: float(value) for key, value in self.parameters.items()})
        if self.differences is not None and not callable(self.differences):
            # a tuple, unlike an array, cannot change and can be compared
            object.__setattr__(self, "differences", tuple(as_floats(self.differences).ravel().tolist()))

    def describe(self) -> dict[str, Any]:
        """Return the fields that distinguish two metrics, as values that JSON can represent.

        Functions are not included: give a metric of your own another name when its code changes.

        Examples
        --------
        >>> from reusable_holdout.metrics import resolve_metric
        >>> resolve_metric("accuracy").describe()["family"]
        'binomial'
        """
        described = {name: getattr(self, name) for name in _DESCRIBED}
        return described | {"parameters": dict(sorted(self.parameters.items()))}

    def mean_of(self, losses: Callable[[NDArray[Any]], NDArray[Any]], rows: int) -> MeanLoss:
        """Return the statistic that is the mean over `rows` rows of losses within the metric's bounds."""
        return MeanLoss(self, losses, rows)

    def check_over_outputs(self, outputs: int) -> None:
        """Refuse labels with several outputs per row, unless the metric is defined for them."""
        own = self.kernel is None and self.response in {"labels", "values"}
        if own or self.name.removeprefix("neg_") in _OVER_OUTPUTS:
            return
        advice = '"accuracy" or "hamming_loss"'
        if self.response == "values":
            advice = "mae, mse or quantile_loss, which are means over the outputs"
        raise InputError(
            f"for {self.name} y must be one column; got {outputs}; use {advice}, or a Metric with a loss of your own"
        )

    def _check_words(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"a metric's name must be text; got {self.name!r}; name it")
        for name, allowed in {"response": get_args(Response), "family": get_args(Family)}.items():
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"a metric's {name} must be one of {allowed}; got {getattr(self, name)!r}; choose one"
                )
        if not isinstance(self.greater_is_better, bool):
            raise InputError(
                f"greater_is_better must be True or False; got {self.greater_is_better!r}; pass a bool"
            )

    def _check_numbers(self) -> None:
        checked_bounds(self.lower, self.upper, "a metric's bounds", "clip the losses and state the bounds")
        if not isinstance(self.parameters, Mapping) or not all(
            isinstance(key, str) and is_finite(value) for key, value in self.parameters.items()
        ):
            raise InputError(
                f"a metric's parameters must map names to finite numbers; got {self.parameters!r}; "
                "leave out other values"
            )
        if self.family == "binomial" and (self.lower, self.upper) != (0, 1):
            raise InputError(
                f"a binomial metric's bounds must be 0 and 1; got {self.lower} and {self.upper}; "
                "rescale the loss, or use family 'bounded'"
            )

    def _check_functions(self) -> None:
        functions = {"loss": self.loss, "statistic": self.statistic, "kernel": self.kernel}
        given = [name for name, function in functions.items() if function is not None]
        if len(given) != 1 or not callable(functions[given[0]]):
            raise InputError(
                f"a metric must have either a loss or a statistic, a function; got {given or 'neither'}; "
                "pass loss= for a mean of per-row losses, else statistic= and differences="
            )
        if self.response == "judged" and self.kernel is None:
            raise InputError(
                'a metric of your own must be of labels or targets; got response "judged"; use score(lower=..., '
                "upper=...) of reusable_holdout.metrics, and pass the scores that the judge gave"
            )
        if (self.statistic is None) != (self.differences is None):
            raise InputError(
                f"a metric with a statistic must have differences, one with a loss must not; got a {given[0]} "
                f"{'without' if self.differences is None else 'with'} them; for a statistic pass, for each row, the "
                "most that replacing this row can change it; for a mean of per-row losses pass loss= alone"
            )
        if self.kernel is None and (self.statistic is None) != (self.family != "bounded-difference"):
            raise InputError(
                "a statistic's family must be 'bounded-difference', a loss's 'bounded' or 'binomial'; "
                f"got a {given[0]} of family {self.family!r}; leave family out"
            )


def is_finite(value: object) -> bool:
    """Return True if a value is a finite real number, of Python or NumPy, that a float can hold."""
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        return False


def checked_number(value: Any, allowed: Callable[[float], bool], must: str, advice: str) -> float:
    """Return a number as a float; raise an InputError with `must` and `advice` if it is not finite or allowed."""
    if not (is_finite(value) and allowed(value)):
        raise InputError(f"{must}; got {value!r}; {advice}")
    return float(value)


def checked_bounds(
    lower: Any, upper: Any, what: str, advice: str, *, widest: float = math.inf
) -> tuple[float, float]:
    """Return bounds as floats; raise an InputError if they are not finite, in order, and closer than `widest`."""
    if not (is_finite(lower) and is_finite(upper) and 0 < float(upper) - float(lower) < widest):
        apart = f" and less than {widest:g} apart" if widest < math.inf else ""
        raise InputError(
            f"{what} must be finite with lower < upper{apart}; got {lower!r} and {upper!r}; {advice}"
        )
    return float(lower), float(upper)
