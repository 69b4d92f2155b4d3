"""Settings of a server. They are read once, and passed to its worker processes through a private file."""

from __future__ import annotations

import ipaddress
import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.private_files import check_private, write_private

__all__ = ["ENVIRONMENT", "Settings", "checked_database", "read_token"]

ENVIRONMENT = "REUSABLE_HOLDOUT_LEADERBOARD"  # variable with the path of the settings file, not a secret


def _option(default: Any, text: str) -> Any:
    """Declare a setting that is also an option of the command line, with its help text."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a server.

    The command line has an option for every setting that has a help text.

    Attributes
    ----------
    folder : Path
        Folder that contains all competitions.
    database : str or None
        SQLAlchemy URL of a PostgreSQL server. None if SQLite files in the folder are used.
    slug : str or None
        Name of the competition that is used if an address names none. None stands for the only competition.
    key_file : Path or None
        File of the noise key. None if it lies in the same folder as the labels.
    witness : str or None
        Witness of the server's own competition. None stands for the witness that the competition was made with.
    admin_digest : str
        SHA-256 of the administrator's token, as hex digits. If it is empty, there is no administrator.
    body_seconds : float
        Longest time that the body of a request may take to arrive.
    session_seconds : float
        Length of a browser's session.
    trusted_proxies : tuple of str
        Addresses and networks of proxies whose headers X-Forwarded-For and X-Forwarded-Proto are believed.
    max_body_bytes, answer_seconds, requests_per_minute, submissions_per_minute, newcomers_per_minute, \
    secure_cookies, connections_per_address, head_seconds
        See the help text of each setting.
    """

    folder: Path
    database: str | None = field(default=None, repr=False)
    slug: str | None = None
    key_file: Path | None = None
    witness: str | None = None
    admin_digest: str = field(default="", repr=False)
    body_seconds: float = 60.0
    session_seconds: float = 12 * 3600.0
    trusted_proxies: tuple[str, ...] = ()
    max_body_bytes: int = _option(16 << 20, "largest request (default 16 MiB)")
    answer_seconds: float = _option(
        0.05, "answers leave at multiples of this time, so that it does not tell what was done; 0 for at once"
    )
    requests_per_minute: int = _option(1200, "of one address, for each worker; 0 for any number")
    submissions_per_minute: int = _option(300, "of one team, for each worker; 0 for any number")
    newcomers_per_minute: int = _option(
        12, "sign-ups of one address, for each worker; ten times as many in total; 0 for any"
    )
    secure_cookies: bool = _option(
        False, "send cookies by HTTPS alone, also to visitors who seem to use HTTP"
    )
    connections_per_address: int = _option(
        100, "open at a time, for each worker; trusted proxies may have more"
    )
    head_seconds: float = _option(10.0, "for the head of a request to arrive, and for idle connections")

    def __post_init__(self) -> None:
        for one in self.trusted_proxies:
            try:
                ipaddress.ip_network(one, strict=False)
            except ValueError:
                raise InputError(
                    f"a trusted proxy must be an IP address or a network such as 10.0.0.0/8; got {one!r}"
                ) from None

    # ---- for worker processes

    def save(self, path: Path) -> None:
        """Write the settings to a file that only its owner can read."""
        values = {name: str(one) if isinstance(one, Path) else one for name, one in asdict(self).items()}
        write_private(path, json.dumps(values))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read settings that :meth:`save` wrote.

        Raises
        ------
        InputError
            If the file is missing, others can read it, or it does not contain settings.
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
        """Read the settings of this worker process from the file that an environment variable names.

        Raises
        ------
        InputError
            If the environment variable is not set.
        """
        named = os.environ.get(ENVIRONMENT)
        if not named:
            raise InputError(
                f"{ENVIRONMENT} must name a file of settings; start with 'reusable-holdout board serve'"
            )
        return cls.load(Path(named))


def read_token(path: Path) -> str:
    """Return the token that a private file contains.

    Raises
    ------
    InputError
        If the file is missing or empty, or others can read it.
    """
    try:
        token = check_private(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        raise InputError(f"{path} must hold a token; it does not")
    return token


def checked_database(url: str, *, secret: bool) -> str:
    """Check the URL of a PostgreSQL database, and return it.

    Parameters
    ----------
    url : str
    secret : bool
        True if the URL may contain a password, because only the owner can read where it came from. A URL on a command
        line may not, because everyone on a machine can read its command lines.

    Raises
    ------
    InputError
        If the URL is not that of a PostgreSQL database, or has a password although it may not.
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
            "a command line must hold no password, because everyone on the machine can read it; put the password into "
            "~/.pgpass, or the whole URL into a file and name that with --database-file"
        )
    return url
