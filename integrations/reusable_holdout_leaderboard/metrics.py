"""The metrics of a competition: the one that ranks teams, and additional ones for the final standings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric, log_loss, mae, mse, quantile_loss, r2, resolve_metric, rmse

__all__ = ["also_of", "metric_of"]

_MOST_ALSO = 10
_PARAMETRIC: dict[str, Callable[..., Metric]] = {
    "log_loss": log_loss,
    "mae": mae,
    "mse": mse,
    "quantile_loss": quantile_loss,
    "r2": r2,
    "rmse": rmse,
}


def metric_of(name: str, parameters: Mapping[str, float]) -> Metric:
    """Return the metric that has this name in the catalogue, made with these parameters.

    Raises
    ------
    InputError
        If there is no such metric, the parameters do not fit it, or it does not compare predictions with labels.
    """
    if name in _PARAMETRIC and parameters:
        try:
            return _PARAMETRIC[name](**parameters)
        except TypeError:
            raise InputError(
                f"metric_parameters must be parameters of {name}; got {', '.join(map(str, parameters))}"
            ) from None
    if parameters:
        raise InputError(f"{name} takes no metric_parameters; got some; leave them out")
    metric = resolve_metric(name)
    if metric.response == "judged":
        raise InputError(
            f"the metric of a competition must compare predictions with labels; {metric.name} takes scores that "
            "somebody else has given; choose another"
        )
    return metric


def also_of(names: object, ranking: str, parameters: Mapping[str, float]) -> tuple[Metric, ...]:
    """Return the metrics that the final standings show in addition to the ranking metric.

    The bounds that the ranking metric sets for the targets apply to these metrics, too.

    Raises
    ------
    InputError
        If a name occurs twice or is that of the ranking metric, or if a metric needs another kind of predictions than
        the ranking metric does.
    """
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(f"the rule 'also' must be names of metrics; got {names!r}; name each once, or none")
    if len({ranking, *names}) <= len(names) or len(names) > _MOST_ALSO:
        raise InputError(
            f"the rule 'also' must name at most {_MOST_ALSO} metrics, each once, and not {ranking}, because it ranks "
            f"the teams; got {', '.join(names)}"
        )
    ranks = metric_of(ranking, parameters)
    bounds = {name: value for name, value in parameters.items() if name in {"lower", "upper"}}
    found = tuple(metric_of(name, bounds if name in _PARAMETRIC else {}) for name in names)
    for metric in found:
        if metric.response != ranks.response:
            raise InputError(
                f"a metric in addition to {ranks.name} must need {ranks.response}, because teams send only these; "
                f"{metric.name} needs {metric.response}; choose another"
            )
    return found
