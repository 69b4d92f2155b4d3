"""A client's connection to a leaderboard. It repeats requests where that is safe, and raises a guard's exceptions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from reusable_holdout.errors import BudgetError, Halted, HoldoutError, InputError, PlanError
from reusable_holdout_leaderboard.files.forms import SubmissionError
from reusable_holdout_leaderboard.store.records import ClosedError, InvitationError, LimitError, StoreError

__all__ = ["Connection", "raised_by"]

_ANSWER_SECONDS = 150.0  # longer than a server waits for its database
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 5.0
_GATEWAY = {502, 503, 504}
_KINDS: dict[str, type[HoldoutError]] = {
    "bad_input": InputError,
    "budget": BudgetError,
    "closed": ClosedError,
    "invitation": InvitationError,
    "limit": LimitError,
    "unavailable": StoreError,
}


class Connection:
    """An HTTP connection to a leaderboard.

    Parameters
    ----------
    url : str
        Address of the server, or of one of its competitions: ``http://host:8000`` or ``http://host:8000/c/name``.
    token : str
        Token of a team or of the administrator. No token is needed to read public content.
    patience_seconds : float
        How long a request is tried again while the server cannot be reached, is busy or asks to wait.
    """

    def __init__(self, url: str, token: str = "", *, patience_seconds: float = 60.0) -> None:
        parts = urlsplit(url)
        place = parts.path.rstrip("/")
        if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in parts.netloc:
            raise InputError("url must be http://host:port or https://host, or a competition's address there")
        base = f"{parts.scheme}://{parts.netloc}"
        prefix, _, slug = place.rpartition("/c/")
        self.url = url
        self._prefix = f"{prefix}/api/v1/c/{slug}" if slug else f"{place}/api/v1"
        token = token.strip()  # a copied token may end with a line break
        self._patience = patience_seconds
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=base, headers=headers, timeout=_ANSWER_SECONDS)

    def __repr__(self) -> str:
        return f"<Connection: {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def get(self, path: str, **params: Any) -> Any:
        """Send a GET request, and return the content of the answer: parsed JSON, or text if it is not JSON.

        Raises
        ------
        HoldoutError
            If the server refuses or cannot be reached.
        """
        given = {name: value for name, value in params.items() if value is not None}
        return self._send("GET", path, repeatable=True, params=given)

    def post(self, path: str, *, repeatable: bool = False, **content: Any) -> Any:
        """Send a POST request, and return the content of the answer.

        Parameters
        ----------
        path : str
        repeatable : bool
            True if the request may be sent twice. A submission may: the second answer repeats the first one, free.
        **content
            Body of the request, as arguments for httpx: ``json=``, or ``files=`` and ``data=``.

        Raises
        ------
        Halted, HoldoutError
            If the server refuses or cannot be reached.
        """
        return self._send("POST", path, repeatable=repeatable, **content)

    # ---- inside

    def _send(self, method: str, path: str, *, repeatable: bool, **content: Any) -> Any:
        deadline, pause = time.monotonic() + self._patience, _FIRST_PAUSE_SECONDS
        while True:
            response, wait = self._try(method, path, repeatable=repeatable, **content)
            if response is not None and wait is None:
                return _content(response)
            wait = pause if wait is None else max(wait, pause)
            if time.monotonic() + wait > deadline:
                if response is not None:
                    return _content(response)
                raise StoreError(
                    f"{self.url} cannot be reached; you may send the same again: it is charged at most once"
                )
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _try(
        self, method: str, path: str, *, repeatable: bool, **content: Any
    ) -> tuple[httpx.Response | None, float | None]:
        """Send a request once; return the response and the seconds to wait before it is sent again.

        The response is None if the server could not be reached. The time is None if the request is not to be repeated.
        """
        try:
            response = self._client.request(method, f"{self._prefix}/{path}", **content)
        except httpx.ConnectError:  # nothing was sent
            return None, 0.0
        except httpx.TransportError:
            if repeatable:
                return None, 0.0
            problem = f"{self.url} did not answer; it is unknown if this was done; look at the status"
        else:
            again = response.status_code == 429 and _error(response)["code"] == "rate"
            if again or (repeatable and response.status_code in _GATEWAY):
                return response, _seconds(response.headers)
            return response, None
        raise StoreError(problem)


def raised_by(error: Mapping[str, Any]) -> BaseException:
    """Return the exception for an error of the API: the one that a guard on this machine would have raised."""
    code, message, details = error["code"], error["message"], error["details"]
    if code == "halted":
        unknown: Any = None  # the caller adds the history
        return Halted(message, reason=details.get("reason", ""), history=unknown)
    if code == "bad_submission":
        return SubmissionError(details.get("problems", []))
    if code == "plan":
        return PlanError(message, details.get("nearest"))
    return _KINDS.get(code, HoldoutError)(message)


def _content(response: httpx.Response) -> Any:
    if response.is_success:
        is_json = response.headers.get("content-type", "").startswith("application/json")
        return response.json() if is_json else response.text
    raise raised_by(_error(response))


def _error(response: httpx.Response) -> dict[str, Any]:
    """Return the error that a response describes, or an unknown error if a proxy made the response."""
    try:
        error = response.json()["error"]
        return {"code": error["code"], "message": error["message"], "details": error["details"]}
    except (ValueError, KeyError, TypeError):
        return {
            "code": "unknown",
            "message": f"the server must answer as a leaderboard does; got status {response.status_code}",
            "details": {},
        }


def _seconds(headers: Mapping[str, str]) -> float:
    stated = headers.get("retry-after", "")
    return float(stated) if stated.isascii() and stated.isdigit() else 0.0
