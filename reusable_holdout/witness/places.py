"""The places of witnesses: files and git notes."""

from __future__ import annotations

import re
from pathlib import Path

from reusable_holdout.errors import InputError
from reusable_holdout.witness.git_note import GitWitness
from reusable_holdout.witness.head import FileWitness, Witness

# a place may come from a ledger that somebody sent: no part of it is taken for an option of git's
_GIT = re.compile(r"git:(?P<repository>.+?)(@(?P<remote>\w[\w.-]*))?(#(?P<name>\w[\w-]*))?", re.DOTALL)


def witness_at(place: str | Path) -> Witness:
    """Return the witness at a place.

    Parameters
    ----------
    place : str or Path
        A file; or ``git:repository``, with ``@remote`` and ``#name``.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if isinstance(place, Path):
        return FileWitness(place)
    git = _GIT.fullmatch(place) if isinstance(place, str) else None
    if git is not None:
        return GitWitness(Path(git["repository"]), git["remote"] or "", git["name"] or "")
    got = "" if isinstance(place, str) else type(place).__name__
    if not got and (not place.strip() or place == "git:"):
        got = "an empty place"
    if not got and "://" in place:
        got = "a URL"
    if got:
        raise InputError(
            f"a witness must be a file, or git:repository@remote#name; got {got}; nothing was made; name a file that "
            "another user owns"
        )
    return FileWitness(Path(place))
