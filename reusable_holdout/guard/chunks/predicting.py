"""A model's predictions for rows that are read chunk by chunk, on joblib's current backend."""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
from typing import Any

from numpy.typing import NDArray

from reusable_holdout.deferred import joblib
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import attempt, interrupts, quiet
from reusable_holdout.guard.chunks import ChunkedRows, Part
from reusable_holdout.guard.chunks.dask_rows import DaskRows
from reusable_holdout.guard.models import Needed

# a model may write into its arrays, as in one process; joblib starts new workers for a second mode
_MMAP_MODE = "c"
_THIS = secrets.token_bytes()  # another machine may have a process of the same number


def predicted_by_chunks(model: Any, X: ChunkedRows, needed: Needed) -> NDArray[Any] | None:
    """Return predictions in canonical form; None if the model fails on any chunk, or ends a worker.

    The memory needed is one chunk and its predictions as floats for each worker, and all predictions in canonical form.
    An InputError is raised before the model has seen a row if the model cannot be sent to the workers, or if they
    cannot find the rows.
    """
    _check_travels(model, X)
    _check_reachable(X)
    return attempt(lambda: _gathered(model, X, needed))


def _gathered(model: Any, X: ChunkedRows, needed: Needed) -> NDArray[Any]:
    """Return the predictions of all parts, in order; none may be missing."""
    asker = _THIS, os.getpid()
    backend, _ = joblib.parallel.get_active_backend()
    returned = "generator" if backend.supports_return_generator else "list"
    parallel = joblib.Parallel(return_as=returned, mmap_mode=_MMAP_MODE)
    results = parallel(joblib.delayed(_predict_part)(model, part, needed, asker) for part in X.parts())
    return needed.form.joined(prepared for part in results for prepared in part or ())


def _predict_part(
    model: Any, part: Part, needed: Needed, asker: tuple[bytes, int]
) -> list[NDArray[Any]] | None:
    """Predict in a worker; the model's output and errors do not leave the worker.

    Rows that can no longer be read also count as a failure of the model, because the model may have caused it.
    """
    # even an exit or a forged halt could carry a message
    with interrupts() as came, contextlib.suppress(BaseException):
        return [_prepared(model, chunk, needed, asker) for chunk in part.chunks()]
    if came:
        raise KeyboardInterrupt  # without words or frames
    return None


def _prepared(model: Any, chunk: Any, needed: Needed, asker: tuple[bytes, int]) -> NDArray[Any]:
    # At home all is quiet already, and its lock is held. Elsewhere a chunk is read before the lock is taken: Dask reads
    # it on other threads of this worker, which must not all be waiting for the lock.
    with contextlib.nullcontext() if asker == (_THIS, os.getpid()) else quiet():
        return needed.form.of_rows(len(chunk)).prepare(needed.predicted(model, chunk))


def _check_reachable(X: ChunkedRows) -> None:
    """Refuse to begin if the workers cannot find the rows."""
    parallel = joblib.Parallel(mmap_mode=_MMAP_MODE)
    parts = X.parts()[: joblib.effective_n_jobs(parallel.n_jobs)]
    try:
        parallel(joblib.delayed(part.check)() for part in parts)
    except InputError as error:
        raise InputError(f"{error}; nothing was asked and nothing was charged") from None


def _check_travels(model: Any, X: ChunkedRows) -> None:
    """Refuse a model or rows that cannot be sent to the workers, before anything is charged."""
    backend, _ = joblib.parallel.get_active_backend()
    name = type(backend).__name__.removesuffix("Backend")
    on_dask = name.startswith("Dask")
    if not on_dask and (getattr(backend, "supports_sharedmem", False) or joblib.Parallel().n_jobs == 1):
        return
    if isinstance(X, DaskRows) and X.on_a_cluster and not on_dask:
        raise InputError(
            f"rows that lie on a Dask cluster must be predicted there; joblib's backend is {name}; use "
            'joblib.parallel_config("dask"); nothing was asked and nothing was charged'
        )
    if not _is_picklable(model, plainly=name == "Multiprocessing"):
        raise InputError(
            f"a model must be picklable to predict on joblib's backend {name}; {type(model).__name__} is not; nothing "
            'was asked and nothing was charged; use joblib.parallel_config("threading")'
        )


def _is_picklable(model: Any, *, plainly: bool) -> bool:
    """Return True if a backend can pickle a model, with pickle (`plainly`) or with cloudpickle."""
    try:
        import cloudpickle  # noqa: PLC0415 - comes with joblib, since 1.6 by itself
    except ImportError:
        from joblib.externals import cloudpickle  # noqa: PLC0415
    try:
        (pickle if plainly else cloudpickle).dumps(model)
    except Exception:  # pickling can raise anything
        return False
    return True
