"""The places of witnesses: files, git notes, servers."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from reusable_holdout.errors import InputError
from reusable_holdout.witness.git_note import GitWitness
from reusable_holdout.witness.head import FileWitness, Witness
from reusable_holdout.witness.server import ServerWitness, token_of

__all__ = ["witness_at"]

# a place may come from a ledger that somebody sent: no part of it is taken for an option of git's
_GIT = re.compile(r"git:(?P<repository>.+?)(@(?P<remote>\w[\w.-]*))?(#(?P<name>\w[\w-]*))?", re.DOTALL)


def witness_at(place: str | Path, key: bytes = b"") -> Witness:
    """Return the witness at a place.

    Parameters
    ----------
    place : str or Path
        A file; ``git:repository``, with ``@remote`` and ``#name``; or an http or https URL.
    key : bytes
        The guard's noise key: a server's token is derived from it.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if isinstance(place, Path):
        return FileWitness(place)
    if not isinstance(place, str) or not place.strip() or place == "git:":
        raise InputError(
            "a witness must be a file, git:repository@remote#name or a URL, or False for none; got "
            f"{'no place' if isinstance(place, str) else type(place).__name__}; nothing was made"
        )
    git = _GIT.fullmatch(place)
    if git is not None:
        return GitWitness(Path(git["repository"]), git["remote"] or "", git["name"] or "")
    if "://" not in place:
        return FileWitness(Path(place))
    url = urlsplit(place)
    if url.scheme not in {"http", "https"} or not url.hostname or url.username or url.query:
        raise InputError(
            "a witness's URL must be http or https, without a user or a query; got another; nothing was made"
        )
    return ServerWitness(place, token_of(key))
