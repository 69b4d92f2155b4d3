"""Whether rows have a budget already: the promise belongs to them, whatever ledger they are asked in."""

from __future__ import annotations

import hashlib
import warnings
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout import registry as registries
from reusable_holdout.errors import LedgerError, SecondBudgetError
from reusable_holdout.guard.chunks.rows import ChunkedRows
from reusable_holdout.guard.digests import canonical_csr, holdout_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from reusable_holdout.guard.inputs import PrivateData
    from reusable_holdout.ledger import Ledger
    from reusable_holdout.registry import Budget, Registry, Sketch, Sketcher

__all__ = ["budgeted", "sketch_of"]


@contextmanager
def budgeted(
    holdout: PrivateData, ledger: Ledger, *, another_budget: bool, next_epoch: bool = False
) -> Iterator[bool]:
    """Give rows a budget in a ledger that is new, or goes on to them; whether they have another one.

    It is taken back if no guard comes of it.

    Raises
    ------
    SecondBudgetError
        If they have one, and nobody insists.
    """
    resumed = ledger.configuration() is not None and not next_epoch
    registry = None if resumed or ledger.url is None else _registry()
    with nullcontext() if registry is None else registry.alone():
        before = len(ledger.configurations())
        if registry is None or (before and not next_epoch):  # another process has made it meanwhile
            yield False
            return
        sketch = sketch_of(registry.sketcher(), holdout)
        found = registry.claim(sketch, ledger.place, insist=another_budget)
        kept = [budget for budget in found if not budget.forgotten]
        if kept and not another_budget:
            raise SecondBudgetError(_words(kept[0], ledger.place, next_epoch=next_epoch))
        try:
            yield bool(found)
        except BaseException:
            if not _has_more(ledger, before):
                registry.release(sketch, ledger.place)
            raise


def _has_more(ledger: Ledger, before: int) -> bool:
    """Whether the guard or the epoch was made, though its making failed: its witness could not be told, perhaps."""
    try:
        return len(ledger.configurations()) > before
    except LedgerError:
        return False


def _registry() -> Registry | None:
    try:
        return registries.Registry.of_user()
    except LedgerError as error:
        if registries.Registry.is_named():
            raise
        warnings.warn(
            f"whether these rows have a budget already is not known: {error}", RuntimeWarning, stacklevel=2
        )
        return None


def _words(budget: Budget, here: str, *, next_epoch: bool) -> str:
    which = (
        "these rows have"
        if budget.share > 0.99
        else f"about {max(budget.share, 0.01):.0%} of these rows have"
    )
    where = budget.ledger
    if where == here:
        where += ", in an epoch before" if next_epoch else ", which holds no guard any more"
    return (
        f"rows must have one budget, for a second one voids the promises of both; {which} one in {where} (of "
        f"{budget.made}); nothing was made; resume that ledger with ReusableHoldout.open, ask about other metrics and "
        "slices with guard.on, guard fresh rows, or pass another_budget=True to insist: every answer will say so"
    )


def sketch_of(sketcher: Sketcher, holdout: PrivateData) -> Sketch:
    """Sketch of the features, of the names of judged rows, or of labels alone."""
    if holdout.X is not None:
        for columns in _pieces(holdout.X):
            sketcher.add(columns)
        return sketcher.sketch()
    if holdout.bound.metric.response == "judged":
        sketcher.add([np.asarray(holdout.y, dtype=object).ravel()])
        return sketcher.sketch()
    return sketcher.of_whole(holdout.rows.every.rows, holdout_digest(hashlib.blake2b, None, holdout.y))


def _pieces(X: Any) -> Iterator[list[NDArray[Any]]]:
    """Columns of each chunk of rows."""
    if isinstance(X, ChunkedRows):
        for chunk in X.chunks():
            yield from _pieces(chunk)
    elif hasattr(X, "tocsr"):
        matrix = canonical_csr(X)
        parts = (np.split(part, matrix.indptr[1:-1]) for part in (matrix.indices, matrix.data))
        words = [indices.tobytes() + data.tobytes() for indices, data in zip(*parts, strict=True)]
        yield [np.array(words, dtype=object)]
    elif hasattr(X, "columns"):
        yield [np.asarray(X[name].to_numpy()) for name in X.columns]
    else:
        array = np.asarray(X)
        yield list(array.reshape(len(array), -1).T)
