"""Metrics of a competition: the one that ranks, and others that the final standings show beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric, log_loss, mae, mse, quantile_loss, r2, resolve_metric, rmse

__all__ = ["MOST_ALSO", "also_of", "metric_of"]

MOST_ALSO = 10
_PARAMETRIC: dict[str, Callable[..., Metric]] = {
    "log_loss": log_loss,
    "mae": mae,
    "mse": mse,
    "quantile_loss": quantile_loss,
    "r2": r2,
    "rmse": rmse,
}


def metric_of(name: str, parameters: Mapping[str, float]) -> Metric:
    """Metric of a name.

    Raises
    ------
    InputError
        If there is none, or its parameters do not fit.
    """
    if name in _PARAMETRIC and parameters:
        try:
            return _PARAMETRIC[name](**parameters)
        except TypeError:
            raise InputError(
                f"metric_parameters must be those of {name}; got {', '.join(map(str, parameters))}"
            ) from None
    if parameters:
        raise InputError(f"{name} takes no metric_parameters; got some; leave them out")
    metric = resolve_metric(name)
    if metric.response == "judged":
        raise InputError(
            f"a competition's metric must compare predictions with labels; got {metric.name}, of scores that are "
            "given already; choose another"
        )
    return metric


def also_of(names: object, ranking: str, parameters: Mapping[str, float]) -> tuple[Metric, ...]:
    """Metrics of the final standings beside the one that ranks; bounds of the targets are the same for all.

    Raises
    ------
    InputError
        If one is named twice or ranks, or needs other predictions than teams send.
    """
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(f"also must be names of metrics; got {names!r}; name each once, or none")
    if len({ranking, *names}) <= len(names) or len(names) > MOST_ALSO:
        raise InputError(
            f"also must be at most {MOST_ALSO} metrics, each once, and not {ranking}, which ranks; got "
            f"{', '.join(names)}"
        )
    ranks = metric_of(ranking, parameters)
    bounds = {name: value for name, value in parameters.items() if name in {"lower", "upper"}}
    found = tuple(metric_of(name, bounds if name in _PARAMETRIC else {}) for name in names)
    for metric in found:
        if metric.response != ranks.response:
            raise InputError(
                f"a metric beside {ranks.name} must need {ranks.response}, for these are what teams send; got "
                f"{metric.name}, which needs {metric.response}; choose another"
            )
    return found
