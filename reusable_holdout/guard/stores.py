"""Where the budget of a guard's rows lies: its ledger, key and witness, and whether they have one elsewhere.

The promise belongs to the rows, whatever ledger they are asked in.
"""

from __future__ import annotations

import hashlib
import warnings
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from reusable_holdout import ledger as ledgers
from reusable_holdout import registry as registries
from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import (
    InputError,
    LedgerError,
    LedgerKeyError,
    NoWitnessWarning,
    SecondBudgetError,
)
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.guard.digests import canonical_csr, holdout_digest, is_chunked
from reusable_holdout.guard.row_sets import columns_of
from reusable_holdout.ledger import create_key_file, read_key_file
from reusable_holdout.mechanisms import key_from_seed, new_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from reusable_holdout import witness as witnesses
    from reusable_holdout.guard.inputs import PrivateData
    from reusable_holdout.ledger import Ledger, SqlLedger
    from reusable_holdout.registry import Budget, Registry, Sketch, Sketcher
else:  # of a ledger that is to have one
    (witnesses,) = modules_on_first_use("reusable_holdout", "witness")

__all__ = ["begin_witness", "budgeted", "find_key", "new_or_kept", "sql_ledger", "watched"]

_KEY_BYTES = 32


def find_key(ledger: Ledger, *, key: bytes | Path | None, seed: int | None) -> tuple[bytes, Path | None]:
    """Key of a guard, and its file if it has one; by default the file beside the ledger where the configuration lies.

    A new ledger gets a new key, or that which a seed makes; a ledger in use must come with its own, or a
    LedgerKeyError says so. An InputError says that both are given, or the key has the wrong length.
    """
    _check(key, seed)
    if isinstance(key, bytes):
        return key, None
    chosen = None if seed is None else key_from_seed(seed)
    if key is not None:
        path = Path(key)
    elif ledger.path is not None:
        path = ledger.path.with_name(ledger.path.name + ".key")
    elif chosen is None and ledger.url is not None:
        raise LedgerKeyError("the key of a ledger on a server must be given; pass key=Path(...)")
    else:
        return chosen or new_key(), None
    if path.exists():
        found = read_key_file(path)
        if chosen is not None and chosen != found:
            raise LedgerKeyError(
                f"the seed must be the one {path} was made from; it is another; leave it out"
            )
        return found, path
    if ledger.configuration() is None:
        return create_key_file(path, key=chosen), path
    return (read_key_file(path), path) if chosen is None else (chosen, None)


def _check(key: object, seed: object) -> None:
    if key is not None and seed is not None:
        raise InputError("give a key or a seed, not both")
    if isinstance(seed, bool):
        raise InputError("a seed must be an integer; got a boolean")
    if isinstance(key, bytes) and len(key) != _KEY_BYTES:
        raise InputError(f"a key must have {_KEY_BYTES} bytes; got {len(key)}; leave it out to have one made")
    if key is not None and not isinstance(key, bytes | str | Path):
        raise InputError(f"a key must be bytes or a Path; got {type(key).__name__}")


def watched(ledger: Ledger, witness: str | Path | Literal[False] | None, key: bytes) -> str:
    """Let a ledger's witness see it, and say where that is; empty if it has none.

    Without a word on it, the witness is the one that stands in the ledger; for a new ledger it is said then what goes
    without one. An InputError says that there can be none, or one is refused that the ledger has; a RolledBackError,
    that the ledger does not go on from what it has seen.
    """
    if ledger.url is None:
        if witness:
            raise InputError(
                "a witness is for a ledger on disk or on a server; this budget is in memory; nothing was made; pass "
                "ledger=, or leave witness out"
            )
        return ""
    text = ledger.configuration()
    kept = "" if text is None else Configuration.parse(text).witness
    if witness is False and kept:
        raise InputError(
            f"a ledger that has a witness must be opened with it; got witness=False; its own is {kept}; nothing was "
            "asked; leave witness out"
        )
    place = witness or kept
    if not place:
        if text is None and witness is None:
            warnings.warn(
                f"whoever can restore an older copy of {ledger.place} gets budget back that was spent, and nobody can "
                "see it; pass as witness= a file of another owner, a git note or a server, which remembers how far "
                "it had come, or witness=False to accept it",
                NoWitnessWarning,
                stacklevel=4,
            )
        return ""
    chosen = witnesses.witness_at(place, key)
    if kept and chosen.place != kept:
        _check_is_gone(kept, key, chosen.place)
    cast("SqlLedger", ledger).watched_by(chosen, may_begin=not kept)
    return kept or chosen.place


def _check_is_gone(kept: str, key: bytes, place: str) -> None:
    """Refuse another witness than a ledger has, while its own remembers it: a copy would go on by the side of it."""
    try:
        seen = witnesses.witness_at(kept, key).read()
    except LedgerError:
        return
    if seen is not None:
        raise InputError(
            f"a ledger goes on with its own witness where that is to be reached; got {place}; its own is {kept}; "
            "nothing was asked; leave witness out, or move the witness whole"
        )


def begin_witness(ledger: str | Path, *, key: Path | None = None) -> str:
    """Let a ledger's witness that was lost, and has seen nothing, begin at the ledger as it is; where it is.

    Parameters
    ----------
    ledger : str or Path
    key : Path, optional
        Noise key, if it does not lie beside the ledger.

    Raises
    ------
    LedgerError
        If the ledger has no witness, or it has seen something.
    """
    with closing(sql_ledger(ledger, must_exist=True)) as store:
        place = Configuration.parse(store.configuration() or "").witness
        if not place:
            raise LedgerError(
                f"the ledger {store.place} must have a witness; it has none; open its guard with witness="
            )
        witness = witnesses.witness_at(place, find_key(store, key=key, seed=None)[0])
        if witness.read() is not None:
            raise LedgerError(
                f"a witness begins anew where it has seen nothing; {place} remembers this ledger; nothing was changed; "
                "verify says whether the ledger goes on from that"
            )
        store.watched_by(witness, may_begin=True)
    return place


def sql_ledger(location: str | Path, *, must_exist: bool = False) -> SqlLedger:
    """Ledger on disk or on a server."""
    from reusable_holdout.ledger import SqlLedger  # noqa: PLC0415 - loads SQLAlchemy

    return SqlLedger(location, must_exist=must_exist)


@contextmanager
def new_or_kept(location: str | Path | None) -> Iterator[Ledger]:
    """A guard's ledger; a file that is made for rows which have a budget elsewhere is taken away again."""
    ledger = ledgers.MemoryLedger() if location is None else sql_ledger(location)
    try:
        yield ledger
    except SecondBudgetError:
        path = ledger.path
        empty = path is not None and ledger.configuration() is None
        ledger.close()
        if empty and path is not None:
            path.unlink(missing_ok=True)
        raise


# ---- a budget elsewhere


@contextmanager
def budgeted(
    holdout: PrivateData, ledger: Ledger, *, another_budget: bool, next_epoch: bool = False
) -> Iterator[bool]:
    """Give rows a budget in a ledger that is new, or goes on to them; whether they have another one.

    It is taken back if no guard comes of it. A SecondBudgetError says that they have one, and nobody insists.
    """
    resumed = ledger.configuration() is not None and not next_epoch
    registry = None if resumed or ledger.url is None else _registry()
    with nullcontext() if registry is None else registry.alone():
        before = len(ledger.configurations())
        if registry is None or (before and not next_epoch):  # another process has made it meanwhile
            yield False
            return
        sketch = _sketch_of(registry.sketcher(), holdout)
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
    part = "" if budget.share > 0.99 else f"about {max(budget.share, 0.01):.0%} of "
    where = budget.ledger
    if where == here:
        where += ", in an epoch before" if next_epoch else ", which holds no guard any more"
    return (
        f"rows must have one budget, for a second one voids the promises of both; {part}these rows have one in {where} "
        f"(of {budget.made}); nothing was made; resume that ledger with ReusableHoldout.open, ask about other metrics "
        "and slices with guard.on, guard fresh rows, or pass another_budget=True to insist: every answer will say so"
    )


def _sketch_of(sketcher: Sketcher, holdout: PrivateData) -> Sketch:
    """Sketch of the features, of the names of judged rows, or of labels alone."""
    X = holdout.X
    if X is None and holdout.bound.metric.response != "judged":
        return sketcher.of_whole(holdout.rows.every.rows, holdout_digest(hashlib.blake2b, None, holdout.y))
    if X is None:
        sketcher.add([np.asarray(holdout.y, dtype=object).ravel()])
    else:
        for chunk in X.chunks() if is_chunked(X) else [X]:
            sketcher.add(_of_sparse(chunk) if hasattr(chunk, "tocsr") else columns_of(chunk))
    return sketcher.sketch()


def _of_sparse(X: Any) -> list[NDArray[Any]]:
    """A single column for sparse rows: where they are not zero, and what they are there."""
    matrix = canonical_csr(X)
    parts = (np.split(part, matrix.indptr[1:-1]) for part in (matrix.indices, matrix.data))
    words = [indices.tobytes() + data.tobytes() for indices, data in zip(*parts, strict=True)]
    return [np.array(words, dtype=object)]
