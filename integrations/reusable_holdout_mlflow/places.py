"""Look-ups on a tracking server: the active run, the experiment of a new run, and whether the server is up."""

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
    """Return the active run of this thread, if it is on this server; else None."""
    return mlflow.active_run() if _is_current(tracking_uri) else None


def experiment_id(client: MlflowClient, name: str | None, tracking_uri: str) -> str:
    """Return the id of the experiment in which a new run is made.

    Parameters
    ----------
    client : MlflowClient
    name : str or None
        Name of the experiment; it is made if it does not exist. None takes the active run's experiment, else MLflow's
        current one, else MLflow's default.
    tracking_uri : str
        The client's server. The active run and the current experiment are used only if they are on this server.
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
    """Check within seconds that a server is up. MLflow itself would try again for minutes.

    Raises
    ------
    OSError
        If no connection can be made.
    """
    parts = urlsplit(tracking_uri)
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        return
    if parts.scheme in getproxies() and not proxy_bypass(parts.hostname):
        return  # only the proxy can reach the server
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    socket.create_connection((parts.hostname, port), timeout=_PATIENCE).close()
