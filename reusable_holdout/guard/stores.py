"""The place of a guard's budget: its ledger, key and witness, and the search for another budget of the same rows.

The promise belongs to the rows, not to one ledger.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import ledger as ledgers
from reusable_holdout import registry as registries
from reusable_holdout import witness as witnesses
from reusable_holdout.errors import (
    InputError,
    LedgerError,
    LedgerKeyError,
    NoWitnessWarning,
    SecondBudgetError,
    SecondBudgetWarning,
)
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.guard.digests import canonical_csr, holdout_digest, is_chunked
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.row_sets import columns_of
from reusable_holdout.guard.views import VIEW, Counts
from reusable_holdout.ledger import Ledger, MemoryLedger, SqlLedger, create_key_file, read_key_file
from reusable_holdout.noise.keyed import KEY_BYTES, key_from_seed, new_key
from reusable_holdout.registry import Budget, InMemory, Registry, Sketch, Sketcher
from reusable_holdout.slips import warn


def declared_classes(place: str | Path | None) -> list[Any] | str | None:
    """Return the classes in a ledger, which may be from a time when all labels were public; None if it has none."""
    if place is None or ("://" not in str(place) and not Path(place).exists()):
        return None
    with closing(SqlLedger(place, must_exist=True)) as ledger:
        text = ledger.configuration()
    return None if text is None else Configuration.parse(text).classes


def find_key(ledger: Ledger, *, key: bytes | Path | None, seed: int | None) -> tuple[bytes, Path | None]:
    """Return the key of a guard, and its file if it has one; by default the file beside the ledger.

    A new ledger gets a new key, or the key of a seed. For a ledger in use, its own key must be given, or a
    LedgerKeyError is raised. An InputError is raised if both key and seed are given, or if the key has the wrong
    length.
    """
    _check(key, seed)
    if ledger.url is not None:
        return _found_key(ledger, key, seed)
    stated = not (key is None and seed is None)
    return cast("MemoryLedger", ledger).keep_key(_found_key(ledger, key, seed), stated=stated)


def _found_key(ledger: Ledger, key: bytes | Path | None, seed: int | None) -> tuple[bytes, Path | None]:
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
    if isinstance(key, bytes) and len(key) != KEY_BYTES:
        raise InputError(f"a key must have {KEY_BYTES} bytes; got {len(key)}; leave it out to have one made")
    if key is not None and not isinstance(key, bytes | str | Path):
        raise InputError(f"a key must be bytes or a Path; got {type(key).__name__}")


def watched(ledger: Ledger, witness: str | Path | Literal[False] | None) -> str:
    """Let a ledger's witness see it, and return the witness's place; empty if it has none.

    By default, the witness is the one named in the ledger. A user of a new ledger without a witness is told what is
    lost without one. An InputError says that there can be no witness, or that the ledger's own is refused. A
    RolledBackError says that the ledger does not continue from the state that the witness has seen.
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
            f"a ledger that has a witness must be opened with it; this one has {kept}; got allow={{'no witness'}}; "
            "nothing was asked; leave 'no witness' out, and the ledger's own witness is used"
        )
    place = witness or kept
    if not place:
        if text is None and witness is None:
            warn(
                f"whoever can restore an older copy of {ledger.place} gets spent budget back, and nobody can see that; "
                "pass witness=, a file of another owner or a git note, which remembers how far the ledger "
                "had come; or pass allow={'no witness'} to accept the risk",
                NoWitnessWarning,
            )
        return ""
    chosen = witnesses.witness_at(place)
    if kept and chosen.place != kept:
        _check_is_gone(kept, chosen.place)
    cast("Any", ledger).watched_by(chosen, may_begin=not kept)
    return kept or chosen.place


def _check_is_gone(kept: str, place: str) -> None:
    """Refuse a second witness while the first one still remembers the ledger."""
    try:
        seen = witnesses.witness_at(kept).read()
    except (InputError, LedgerError):  # the first is an address that only earlier versions knew
        return
    if seen is not None:
        raise InputError(
            f"a ledger must keep its own witness while that can be reached; got {place}; its own is {kept}; "
            "nothing was asked; leave witness out, or move the whole witness"
        )


@contextmanager
def new_or_kept(
    holdout: PrivateData, location: str | Path | None, *, allowed: bool
) -> Iterator[tuple[Ledger, bool]]:
    """Yield the ledger of a guard, and True if its rows have another budget.

    A file that is made for rows which have a budget elsewhere is removed again.
    """
    if location is None:
        with _in_memory(holdout, allowed=allowed) as found:
            yield found
        return
    ledger = SqlLedger(location)
    try:
        with budgeted(holdout, ledger, allowed=allowed) as another:
            yield ledger, another
    except SecondBudgetError:
        path = ledger.path
        empty = path is not None and ledger.configuration() is None
        ledger.close()
        if empty and path is not None:
            path.unlink(missing_ok=True)
        raise


@contextmanager
def _in_memory(holdout: PrivateData, *, allowed: bool) -> Iterator[tuple[Ledger, bool]]:
    """Yield, as :func:`new_or_kept` does, the budget of these rows in this process, or a new one."""
    ledger = ledgers.MemoryLedger()
    if registries.InMemory.is_off():
        yield ledger, False
        return
    registry, metric = registries.InMemory(ledger), holdout.bound.metric
    content = fingerprint([metric.loss, metric.statistic]) if metric.kernel is None else b""
    with registry.alone():
        for kept in registry.ledgers(_sketch_of(registry, holdout)):
            if Configuration.parse(kept.configuration() or "").another_budget is allowed:
                with registry.resumed():
                    kept.keep_metric(content)
                    yield kept, False
                return
        ledger.keep_metric(content)
        with budgeted(holdout, ledger, allowed=allowed) as another:
            yield ledger, another


# ---- a budget elsewhere


@contextmanager
def budgeted(
    holdout: PrivateData, ledger: Ledger, *, allowed: bool, next_epoch: bool = False, adds: bool = False
) -> Iterator[bool]:
    """Give rows a budget in a new ledger, in a new epoch of one, or in one that `adds` them to its rows.

    Yield True if they have another budget. The budget is removed again if no guard is made. A SecondBudgetError says
    that the rows have a budget, and that the owner has not allowed another.
    """
    resumed = ledger.configuration() is not None and not (next_epoch or adds)
    registry = None if resumed else _registry_of(ledger)
    with nullcontext() if registry is None else registry.alone():
        before = _length(ledger, adds=adds)
        if registry is None or (before and not (next_epoch or adds)):  # another process has made it meanwhile
            yield False
            return
        sketch, found = _sketch_of(registry, holdout), _on_the_other_side(ledger, holdout)
        if adds:  # the ledger knows its own rows, and an attempt to add these may have been killed
            found += [
                one for one in registry.known(sketch) if ledger.url is None or one.ledger != ledger.place
            ]
        if allowed or (not found if adds else all(budget.forgotten for budget in found)):
            before_it = registry.claim(sketch, ledger.place, insist=allowed or adds)
            found += [] if adds else before_it
        kept = [budget for budget in found if adds or not budget.forgotten]
        if kept and not allowed:
            raise SecondBudgetError(registries.refusal(kept, ledger.place, next_epoch=next_epoch))
        try:
            for one in [] if allowed else found:
                warn(registries.reminder(one), SecondBudgetWarning)
            yield bool(found)
        except BaseException:
            if not _has_more(ledger, before, adds=adds):
                registry.release(sketch, ledger.place)
            raise


def _has_more(ledger: Ledger, before: int, *, adds: bool) -> bool:
    """Return True if the guard or the epoch was made, or rows were added, although an error was raised.

    An example is a witness that could not be reached.
    """
    try:
        return _length(ledger, adds=adds) > before
    except LedgerError:
        return False


def _length(ledger: Ledger, *, adds: bool) -> int:
    return len(ledger.rows(kind=VIEW) if adds else ledger.configurations())


def _registry_of(ledger: Ledger) -> Registry | InMemory | None:
    """Return the registry of budgets for a ledger, on disk or in memory; None if it is off or unusable."""
    if ledger.url is not None:
        return _of_user(may_be_new=True)
    return None if registries.InMemory.is_off() else registries.InMemory(cast("MemoryLedger", ledger))


def _of_user(*, may_be_new: bool) -> Registry | None:
    """Return the registry of budgets on disk; None if it is off, or cannot be used."""
    try:
        return registries.Registry.of_user(may_be_new=may_be_new)
    except LedgerError as error:
        _warn_of_unknown(error, "whether these rows have a budget already")
        return None


def _on_the_other_side(ledger: Ledger, holdout: PrivateData) -> list[Budget]:
    """Return the rows' budgets on disk if this ledger is in memory; else their budgets in this process's memory."""
    other: Registry | InMemory | None = None
    if ledger.url is None:
        other = _of_user(may_be_new=False)
    elif "reusable_holdout.registry.memory" in sys.modules:  # else no guard was made in memory
        other = registries.InMemory(ledgers.MemoryLedger())
    return other.known(_sketch_of(other, holdout)) if other is not None and other.budgets() else []


def told_of(holdout: PrivateData, counts: Counts | None, metric: dict[str, Any] | None = None) -> float:
    """Return the nats of all class counts and group sizes of these rows that were released, in any ledger.

    `counts` are among them. They are recorded before they are released, so a guard of the same rows with another guess
    pays for both. `metric` is the description of the metric that they were released for; by default the holdout's own.
    """
    own, tells = (0.0, False) if counts is None else (counts.nats, counts.place is not None)
    try:
        registry = registries.Registry.of_user(may_be_new=tells)
        if registry is None or not (tells or registry.has_told()):
            return own
        now = None
        if counts is not None and tells:
            labels = registry.sketcher().of_whole(0, holdout_digest(hashlib.blake2b, None, holdout.y))
            fact = [metric or holdout.bound.describe(), counts.prevalence, counts.theory, labels.total]
            now = json.dumps(fact, sort_keys=True), own
        return registry.told(_sketch_of(registry, holdout), now)
    except LedgerError as error:
        _warn_of_unknown(error, "what was released about the class counts of these rows")
        return own


def _warn_of_unknown(error: LedgerError, what: str) -> None:
    """Warn that the registry cannot be used; if the environment names it, raise the error instead."""
    if registries.Registry.is_named():
        raise error
    warn(f"{what} is not known: {error}", RuntimeWarning)


def _sketch_of(registry: Registry | InMemory, holdout: PrivateData) -> Sketch:
    """Return the sketch of a holdout's rows, which is made once for each of the two registries."""
    known = holdout.sketches.get(type(registry))
    if known is None:
        known = holdout.sketches[type(registry)] = _sketched(registry.sketcher(), holdout)
    return known


def _sketched(sketcher: Sketcher, holdout: PrivateData) -> Sketch:
    """Return the sketch of the features; without them, of the names of judged rows, or of the labels."""
    X = holdout.X
    if X is None and holdout.bound.metric.response != "judged":
        return sketcher.of_whole(holdout.bound.rows, holdout_digest(hashlib.blake2b, None, holdout.y))
    if X is None:
        sketcher.add([np.asarray(holdout.y, dtype=object).ravel()])
    else:
        for chunk in X.chunks() if is_chunked(X) else [X]:
            sketcher.add(_of_sparse(chunk) if hasattr(chunk, "tocsr") else columns_of(chunk))
    return sketcher.sketch()


def _of_sparse(X: Any) -> list[NDArray[Any]]:
    """Return sparse rows as a single column: the positions and the values of their entries."""
    matrix = canonical_csr(X)
    parts = (np.split(part, matrix.indptr[1:-1]) for part in (matrix.indices, matrix.data))
    words = [indices.tobytes() + data.tobytes() for indices, data in zip(*parts, strict=True)]
    return [np.array(words, dtype=object)]


# ---- a witness that was lost


def begin_witness(ledger: str | Path) -> str:
    """Let a witness in the place of a lost one begin with the ledger as it is; return the witness's place.

    Parameters
    ----------
    ledger : str or Path

    Raises
    ------
    LedgerError
        If the ledger has no witness, or its witness has seen something.
    """
    with closing(SqlLedger(ledger, must_exist=True)) as store:
        place = Configuration.parse(store.configuration() or "").witness
        if not place:
            raise LedgerError(
                f"the ledger {store.place} must have a witness; it has none; open its guard with witness="
            )
        witness = witnesses.witness_at(place)
        if witness.read() is not None:
            raise LedgerError(
                f"a witness can begin anew only if it remembers nothing; {place} remembers this ledger; nothing was "
                "changed; verify says whether the ledger continues what it remembers"
            )
        store.watched_by(witness, may_begin=True)
    return place
