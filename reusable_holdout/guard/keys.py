"""Which noise key a guard uses, and where it lies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reusable_holdout.errors import InputError, LedgerKeyError
from reusable_holdout.ledger import create_key_file, read_key_file
from reusable_holdout.mechanisms import key_from_seed, new_key

if TYPE_CHECKING:
    from reusable_holdout.ledger import Ledger

__all__ = ["find_key"]

_KEY_BYTES = 32


def find_key(ledger: Ledger, *, key: bytes | Path | None, seed: int | None) -> tuple[bytes, Path | None]:
    """Key of a guard, and its file if it has one.

    A new ledger gets a new key; a ledger that is in use must come with its own.

    Parameters
    ----------
    ledger : Ledger
        Where the configuration lies.
    key : bytes, Path or None
        The key, or its file; by default the file beside the ledger.
    seed : int or None
        Makes the key instead.

    Raises
    ------
    LedgerKeyError
        If the key of a ledger in use is missing.
    InputError
        If the key has the wrong length, or both are given.
    """
    _check(key, seed)
    if isinstance(key, bytes):
        if len(key) != _KEY_BYTES:
            raise InputError(
                f"a key must have {_KEY_BYTES} bytes; got {len(key)}; leave it out to have one made"
            )
        return key, None
    if key is not None and not isinstance(key, str | Path):
        raise InputError(f"a key must be bytes or a Path; got {type(key).__name__}")
    path = _beside(ledger) if key is None else Path(key)
    if path is None:
        if seed is not None:
            return key_from_seed(seed), None
        if ledger.url is not None:
            raise LedgerKeyError("the key of a ledger on a server must be given; pass key=Path(...)")
        return new_key(), None
    chosen = None if seed is None else key_from_seed(seed)
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


def _beside(ledger: Ledger) -> Path | None:
    return None if ledger.path is None else ledger.path.with_name(ledger.path.name + ".key")
