"""Heads of ledgers on other machines, for which this server is the witness.

A head is the epoch of a ledger, and the number and seal of its last answer. If somebody puts an older copy of a ledger
back, the copy lacks that answer and is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

from reusable_holdout.errors import InputError
from reusable_holdout.witness import FileWitness, Head
from reusable_holdout_leaderboard.private_files import write_private
from reusable_holdout_leaderboard.store.records import AccessError, LimitError

__all__ = ["NAME", "advance_head", "check_free", "held_head", "is_owned", "make_name"]

NAME = "[a-z0-9][a-z0-9-]{0,63}"
"""Pattern for the name under which this server stores the head of a ledger."""

_MOST = 10_000


def make_name(folder: Path, name: str) -> None:
    """Make a name under which this server stores the head of one ledger. The first ledger that uses it owns it.

    Raises
    ------
    InputError
        If the name does not fit the pattern, or exists already.
    LimitError
        If this server is the witness of too many ledgers.
    """
    if not re.fullmatch(NAME, name):
        raise InputError(
            "a witness's name must be 1 to 64 small letters, digits and hyphens, not a hyphen first; nothing was made"
        )
    made = _path(folder, name, "made")
    if made.exists() or _path(folder, name, "owner").exists():
        raise InputError(f"there is a witness {name!r} already; nothing was made; choose another name")
    if made.parent.exists() and sum(1 for _ in made.parent.glob("*.made")) >= _MOST:
        raise LimitError(
            f"this server is the witness of {_MOST:,} ledgers, and takes no more; nothing was made"
        )
    write_private(made, "")


def held_head(folder: Path, name: str) -> Head | None:
    """Return the latest head that was stored under a name, or None if none was sent yet."""
    return FileWitness(_path(folder, name, "heads")).read()


def advance_head(folder: Path, name: str, token: str, head: Head, after: Head | None) -> Head:
    """Store a new head of a ledger, if the stored head is still `after`. Return the head that is stored then.

    Raises
    ------
    AccessError
        If the administrator has not made the name, or the token is not that of the name's owner.
    """
    owner = _path(folder, name, "owner")
    if not owner.exists():
        check_free(folder, name)
        _own(owner, _digest(token))
    if not is_owned(folder, name, token):
        raise _taken()
    return FileWitness(_path(folder, name, "heads")).advance(head, after=after)


def is_owned(folder: Path, name: str, token: str) -> bool:
    """Return True if a name has an owner and `token` is the owner's token."""
    try:
        return hmac.compare_digest(_path(folder, name, "owner").read_text(), _digest(token))
    except FileNotFoundError:
        return False


def check_free(folder: Path, name: str) -> None:
    """Refuse a name that the administrator has not made, or that has an owner already.

    Raises
    ------
    AccessError
    """
    if _path(folder, name, "owner").exists():
        raise _taken()
    if not _path(folder, name, "made").exists():
        raise AccessError(
            "the administrator of this server must make a witness's name first; nothing was changed; ask for it: "
            f"reusable-holdout board witness {name}"
        )


def _taken() -> AccessError:
    return AccessError("this name belongs to another ledger; nothing was changed; choose another name")


def _own(owner: Path, digest: str) -> None:
    """Record the owner of a name, unless another ledger became the owner first."""
    mine = owner.with_name(f"{owner.name}.{secrets.token_hex(8)}")
    write_private(mine, digest)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(mine, owner)
    finally:
        mine.unlink()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _path(folder: Path, name: str, kind: str) -> Path:
    return folder / "witness" / f"{name}.{kind}"
