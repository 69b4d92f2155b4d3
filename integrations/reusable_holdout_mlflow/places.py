"""The experiment that a run belongs to, and the reach of its server."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

__all__ = ["active_run", "check_reachable", "experiment_id"]

_DEFAULT_EXPERIMENT = "0"
_PATIENCE = 5.0  # seconds


def active_run(tracking_uri: str) -> mlflow.ActiveRun | None:
    """Return the active run of this thread, if it lies on this server."""
    return mlflow.active_run() if _is_current(tracking_uri) else None


def experiment_id(client: MlflowClient, name: str | None, tracking_uri: str) -> str:
    """Return the id of an experiment.

    Parameters
    ----------
    client : MlflowClient
    name : str or None
        Made if there is none of this name; None means the active run's, MLflow's current one, or the default one.
    tracking_uri : str
        The client's server. The active run and the current experiment count only if they lie there.
    """
    if name is None:
        run = active_run(tracking_uri)
        if run is not None:
            return str(run.info.experiment_id)
        current = os.environ.get("MLFLOW_EXPERIMENT_ID")  # mlflow.set_experiment() sets it
        if current and _is_current(tracking_uri):
            return current
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME")
    return _DEFAULT_EXPERIMENT if not name else _named(client, name)


def _named(client: MlflowClient, name: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:  # another process made it first
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return str(found.experiment_id)


def _is_current(tracking_uri: str) -> bool:
    return bool(tracking_uri.rstrip("/") == str(mlflow.get_tracking_uri()).rstrip("/"))


def check_reachable(tracking_uri: str) -> None:
    """Check in seconds that a server is up; MLflow's own retries take minutes.

    Raises
    ------
    OSError
        If nothing listens there.
    """
    parts = urlsplit(tracking_uri)
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        return
    if parts.scheme in getproxies() and not proxy_bypass(parts.hostname):
        return  # the proxy knows
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    socket.create_connection((parts.hostname, port), timeout=_PATIENCE).close()
