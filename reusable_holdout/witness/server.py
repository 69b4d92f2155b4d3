"""A witness on a server such as `reusable-holdout serve`, which can serve many ledgers under their names."""

from __future__ import annotations

import hashlib
import json

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness.head import Head, highest

__all__ = ["ServerWitness", "token_of"]

_SECONDS = 30.0
_MOST_BYTES = 10_000
_ASK = ": its administrator must make the name first, and another ledger must not have it"


def token_of(key: bytes) -> str:
    """Return the token of a guard at a witness server; a copy of the ledger without its key does not have it."""
    return hashlib.blake2b(b"witness", key=key, digest_size=32).hexdigest()


class ServerWitness:
    """An address at a server that holds a head, and replaces it by a later one alone.

    The URL ends in a name, as ``https://host/api/v1/witness/name`` does. The server's administrator makes the name
    (``reusable-holdout board witness name``); the first ledger that comes with a token owns it.
    """

    def __init__(self, url: str, token: str) -> None:
        self.place, self._token = url, token

    def read(self) -> Head | None:
        """Return the highest head that the server has seen; None if none came."""
        return self._sent("GET")

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Send a head; the server takes it if it still holds the one that was seen."""
        body = {"head": head.record().decode(), "after": "" if after is None else after.record().decode()}
        return self._sent("PUT", json.dumps(body).encode()) or head

    def _sent(self, method: str, body: bytes | None = None) -> Head | None:
        """Send a request; return the head in its answer."""
        from http.client import HTTPException  # noqa: PLC0415 - few guards need HTTP, which loads much
        from urllib.error import HTTPError  # noqa: PLC0415
        from urllib.request import Request, urlopen  # noqa: PLC0415

        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = Request(self.place, data=body, headers=headers, method=method)  # noqa: S310 - http or https
        try:
            with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                head = json.loads(answer.read(_MOST_BYTES))["head"].encode()
        except HTTPError as error:
            why = f"it answered {error.code}{_ASK if error.code == 401 else ''}"
        except (TypeError, KeyError, AttributeError):
            why = "its answer holds no head"
        except (OSError, ValueError, HTTPException) as error:
            why = type(getattr(error, "reason", error)).__name__
        else:
            return highest(head, self.place)
        raise LedgerError(
            f"the ledger's witness must be a server that can be reached, where this ledger's name is its own; "
            f"{self.place} is not ({why}); ask again when it is there"
        )
