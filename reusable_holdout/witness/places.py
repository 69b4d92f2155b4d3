"""Which witness a place names."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from reusable_holdout.errors import InputError
from reusable_holdout.witness import git_note
from reusable_holdout.witness.head import FileWitness, Witness

__all__ = ["witness_at"]

_GIT = re.compile(r"(?P<repository>.+?)(@(?P<remote>\w[\w.-]*))?(#(?P<name>\w[\w-]*))?", re.DOTALL)


def witness_at(place: str | Path, key: bytes = b"") -> Witness:
    """Witness at a place.

    Parameters
    ----------
    place : str or Path
        A file; ``git:repository``, with ``@remote`` and ``#name``; or an http or https URL.
    key : bytes
        The guard's noise key: a server's token comes of it.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if isinstance(place, Path):
        return FileWitness(place)
    if not isinstance(place, str) or not place.strip():
        raise InputError(
            "a witness must be a file, git:repository or a URL, or False for none; got "
            f"{type(place).__name__}; nothing was made"
        )
    if place.startswith("git:"):
        return _git_witness(place.removeprefix("git:"))
    if "://" in place:
        url = urlsplit(place)
        if url.scheme not in {"http", "https"} or not url.hostname or url.username or url.query:
            raise InputError(
                "a witness's URL must be http or https, without a user or a query; got another; nothing was made"
            )
        from reusable_holdout.witness.server import ServerWitness, token_of  # noqa: PLC0415 - loads HTTP

        return ServerWitness(place, token_of(key))
    return FileWitness(Path(place))


def _git_witness(place: str) -> git_note.GitWitness:
    """A place may come of a ledger that somebody sent: no part of it is taken for an option of git's."""
    parts = _GIT.fullmatch(place)
    if parts is None:
        raise InputError(
            "a git witness must name a repository, as git:repository@remote#name; got none; nothing was made"
        )
    return git_note.GitWitness(Path(parts["repository"]), parts["remote"] or "", parts["name"] or "")
