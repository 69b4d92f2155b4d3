"""A witness that is a server: `reusable-holdout serve` is one, for as many ledgers as there are names."""

from __future__ import annotations

import hashlib
import json
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness.head import Head, highest

__all__ = ["ServerWitness", "token_of"]

_SECONDS = 30.0
_MOST_BYTES = 10_000
_ASK = ": its administrator must make the name first, and another ledger must not have it"


def token_of(key: bytes) -> str:
    """Token of a guard at a witness server: who has the ledger alone does not have it."""
    return hashlib.blake2b(b"witness", key=key, digest_size=32).hexdigest()


class ServerWitness:
    """Address at a server that holds a head, and gives it up for a later one alone.

    The URL ends in a name, as ``https://host/api/v1/witness/name`` does. The server's administrator makes the name
    (``reusable-holdout board witness name``); the first ledger that comes with a token owns it.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token

    @property
    def place(self) -> str:
        """The URL."""
        return self._url

    def read(self) -> Head | None:
        """Highest head the server has seen; None if none came."""
        return highest(self._sent("GET").encode(), self._url)

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Send a head; the server takes it if it still holds that which was seen."""
        heads = {"head": head, "after": after}
        body = {name: "" if one is None else one.record().decode() for name, one in heads.items()}
        return highest(self._sent("PUT", json.dumps(body).encode()).encode(), self._url) or head

    def _sent(self, method: str, body: bytes | None = None) -> str:
        """Send a request; the head in its answer."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = Request(self._url, data=body, headers=headers, method=method)  # noqa: S310 - http or https
        why = ""
        try:
            with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                found = json.loads(answer.read(_MOST_BYTES))
            if isinstance(found, dict) and isinstance(found.get("head"), str):
                return str(found["head"])
            why = "its answer holds no head"
        except HTTPError as error:
            why = f"it answered {error.code}{_ASK if error.code == 401 else ''}"
        except (URLError, OSError, ValueError, HTTPException) as error:
            why = type(getattr(error, "reason", error)).__name__
        raise LedgerError(
            f"the ledger's witness must be a server that can be reached, where this ledger's name is its own; "
            f"{self._url} is not ({why}); ask again when it is there"
        )
