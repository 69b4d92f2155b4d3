"""Search for the runs on a tracking server that hold answers about one holdout, by their tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mlflow.entities import Experiment, Run, ViewType
from mlflow.tracking import MlflowClient

from reusable_holdout_mlflow.identity import tag

__all__ = ["experiments", "pages_of", "runs_of"]

_T = TypeVar("_T")
_EXPERIMENTS_OF_A_SEARCH = 200  # so many experiments are searched in one request
_RUNS_OF_A_PAGE = 1_000


def runs_of(client: MlflowClient, digest: str) -> list[Run]:
    """Return the runs with answers about the holdout that has this digest, the oldest first.

    The holdout's page, which is a run as well, is left out.
    """
    return [run for run in _tagged(client, "digest", digest) if tag("page") not in run.data.tags]


def pages_of(client: MlflowClient, digest: str) -> list[Run]:
    """Return the runs that are a holdout's page, the oldest first.

    There is one; for a moment there are several if processes made one at the same time.
    """
    return _tagged(client, "page", digest)


def experiments(client: MlflowClient) -> dict[str, Experiment]:
    """Return all experiments of the server that are not deleted, with their ids as keys."""
    found: list[Experiment] = _all(
        lambda token: client.search_experiments(view_type=ViewType.ACTIVE_ONLY, page_token=token)
    )
    return {str(one.experiment_id): one for one in found}


def _tagged(client: MlflowClient, name: str, value: str) -> list[Run]:
    places = list(experiments(client))
    runs: list[Run] = []
    for start in range(0, len(places), _EXPERIMENTS_OF_A_SEARCH):
        some = places[start : start + _EXPERIMENTS_OF_A_SEARCH]
        runs += _all(
            lambda token, some=some: client.search_runs(  # type: ignore[misc]
                some,
                filter_string=f"tags.`{tag(name)}` = '{value}'",
                max_results=_RUNS_OF_A_PAGE,
                page_token=token,
            )
        )
    return sorted(runs, key=lambda run: (run.info.start_time, run.info.run_id))


def _all(search: Callable[[str | None], list[_T]]) -> list[_T]:
    """Return the results of all pages of a search."""
    found: list[_T] = []
    token: str | None = None
    while True:
        some = search(token)
        found += some
        token = getattr(some, "token", None)
        if not token:
            return found
