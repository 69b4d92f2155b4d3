"""Settings of a server: read once, shared by all its worker processes through a file that only their user can read."""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Self

import sqlalchemy as sa

from reusable_holdout.errors import InputError

__all__ = ["ENVIRONMENT", "Settings", "check_private", "checked_database", "read_token", "write_private"]

ENVIRONMENT = "REUSABLE_HOLDOUT_LEADERBOARD"  # names the file; it is no secret itself
_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a server.

    Attributes
    ----------
    folder : Path
        Of the competitions.
    database : str or None
        SQLAlchemy URL of a PostgreSQL server; None for SQLite files in the folder.
    slug : str or None
        Competition that is meant where none is named; None if there is only one.
    key_file : Path or None
        Noise key; None where it lies beside the labels.
    witness : str or None
        What remembers how far the ledger of the server's own competition has come; None for the one it was made with.
    admin_digest : str
        SHA-256 of the administrator's token, hex; empty if there is none, and then nobody is one.
    max_body_bytes : int
        Largest request.
    answer_seconds : float
        Answers to submissions leave at multiples of this time after they came, so that it does not tell what was done
        for them; 0 for at once.
    requests_per_minute : int
        Of one client address, for each worker process; 0 for any number.
    submissions_per_minute : int
        Of one team, for each worker process; 0 for any number.
    newcomers_per_minute : int
        Teams that sign up, and witness names that are taken, of one client address, for each worker process; ten times
        as many of all addresses together; 0 for any number.
    body_seconds : float
        Longest time that a body may take to come.
    poll_seconds : float
        How often a worker looks whether the board has changed.
    streams, streams_per_address : int
        Event streams at most, for each worker process.
    session_seconds : float
        How long a browser stays signed in.
    secure_cookies : bool
        Whether browsers send cookies by HTTPS alone, however they came; who came by HTTPS gets such cookies anyway.
    trusted_proxies : tuple of str
        Addresses and networks whose word is taken for whom they ask: X-Forwarded-For and X-Forwarded-Proto.
    connections_per_address : int
        Open at a time, for each worker process; of trusted proxies any number.
    head_seconds : float
        Longest time that the head of a request may take to come, and that a connection may be idle.
    """

    folder: Path
    database: str | None = field(default=None, repr=False)
    slug: str | None = None
    key_file: Path | None = None
    witness: str | None = None
    admin_digest: str = field(default="", repr=False)
    max_body_bytes: int = 16 * _MEGABYTE
    answer_seconds: float = 0.05
    requests_per_minute: int = 1200
    submissions_per_minute: int = 300
    newcomers_per_minute: int = 12
    body_seconds: float = 60.0
    poll_seconds: float = 0.5
    streams: int = 500
    streams_per_address: int = 50
    session_seconds: float = 12 * 3600.0
    secure_cookies: bool = False
    trusted_proxies: tuple[str, ...] = ()
    connections_per_address: int = 100
    head_seconds: float = 10.0

    def __post_init__(self) -> None:
        for one in self.trusted_proxies:
            try:
                ipaddress.ip_network(one, strict=False)
            except ValueError:
                raise InputError(
                    f"a trusted proxy must be an IP address or a network such as 10.0.0.0/8; got {one!r}"
                ) from None

    def with_changes(self, **changes: object) -> Self:
        """Copy of the settings in which some are changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    # ---- for worker processes

    def save(self, path: Path) -> None:
        """Write them where only their owner can read them."""
        values = {name: str(one) if isinstance(one, Path) else one for name, one in asdict(self).items()}
        write_private(path, json.dumps(values))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InputError
            If it is missing, others can read it, or it is something else.
        """
        try:
            values = json.loads(check_private(path).read_text())
            known = {one.name for one in fields(cls)}
            given = {name: value for name, value in values.items() if name in known}
            if given.get("key_file") is not None:
                given["key_file"] = Path(given["key_file"])
            given["trusted_proxies"] = tuple(given.get("trusted_proxies", ()))
            return cls(**{**given, "folder": Path(given["folder"])})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} must hold settings of a server; it does not") from None

    @classmethod
    def from_environment(cls) -> Self:
        """Settings of this worker process.

        Raises
        ------
        InputError
            If there are none.
        """
        named = os.environ.get(ENVIRONMENT)
        if not named:
            raise InputError(
                f"{ENVIRONMENT} must name a file of settings; start with 'reusable-holdout serve'"
            )
        return cls.load(Path(named))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, all or nothing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_private(path: Path) -> Path:
    """Refuse a file of secrets that others can read or change.

    Raises
    ------
    InputError
        If they can, or it is not there.
    """
    try:
        status = path.stat()
    except OSError:
        raise InputError(f"there must be a file {path}; there is none") from None
    if status.st_mode & 0o077 or status.st_uid != os.getuid():
        raise InputError(f"only its owner may read {path}; got mode {status.st_mode & 0o777:o}; chmod 600 it")
    return path


def read_token(path: Path) -> str:
    """Token that a file holds.

    Raises
    ------
    InputError
        If it is not there, others can read it, or it is empty.
    """
    try:
        token = check_private(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        raise InputError(f"{path} must hold a token; it does not")
    return token


def checked_database(url: str, *, secret: bool) -> str:
    """URL of a PostgreSQL database.

    Parameters
    ----------
    url : str
    secret : bool
        Whether it came where a password may stand. A command line is none: everyone on the machine can read it.

    Raises
    ------
    InputError
        If it is not one, or holds a password in the wrong place.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or not parsed.drivername.startswith("postgresql"):
        raise InputError(
            "a database must be postgresql+psycopg://user@host/name; leave it out for SQLite files in the folder"
        )
    if not secret and (parsed.password is not None or "password" in parsed.query):
        raise InputError(
            "a command line must hold no password, for everyone on the machine can read it; put the password into "
            "~/.pgpass, or the whole URL into a file and name that with --database-file"
        )
    return url
