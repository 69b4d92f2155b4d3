"""Who is asking, from where, how often, and from which form: tokens, networks, rates, sessions."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from reusable_holdout_leaderboard.settings import Settings

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["Networks", "Problem", "Rates", "Sessions", "address_of", "bearer_token", "network_of"]

_VISITOR = "rh_visitor"
FORM_KEY = "form"  # part of a form's address, so that it can be checked before the form's body is read
_MOST_TOKEN = 200
_ELSEWHERE = {"cross-site", "same-site"}  # what browsers say of forms of other origins


class Problem(Exception):  # noqa: N818 - it is the answer to a request, not always an error of ours
    """A request that is refused; it becomes ``{"error": {"code", "message", "details"}}``.

    Attributes
    ----------
    status : int
        Of HTTP.
    code : str
        For programs.
    message : str
        For people; nothing in it depends on the labels.
    details : dict
        More for programs, by code: "problems" of a submission, "reason" of a halt, "nearest" of a plan.
    headers : dict of str to str
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: dict[str, object] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.details, self.headers = details or {}, headers or {}

    def as_dict(self) -> dict[str, dict[str, object]]:
        """The one shape of all errors."""
        return {"error": {"code": self.code, "message": self.message, "details": self.details}}


# ---- rates


class Rates:
    """Rate limits of many askers: each has a bucket that refills steadily.

    They are of this process alone: with several workers the limit is that many times as high. Those asked least
    recently are forgotten, so memory is bounded.

    Parameters
    ----------
    per_minute : int
        0 for any number.
    burst : float, optional
        How much a bucket holds; a quarter of a minute's worth by default.
    most : int
        Buckets kept.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        burst: float | None = None,
        most: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._size = per_minute / 60, max(1.0, per_minute / 4 if burst is None else burst)
        self._most, self._clock, self._lock = most, clock, Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, amount: float = 1.0) -> None:
        """Take from a bucket; what is more than it can hold counts as all it can hold.

        Raises
        ------
        Problem
            429, naming when to ask again.
        """
        if not self._rate:
            return
        now, amount = self._clock(), min(amount, self._size)
        with self._lock:
            left, before = self._buckets.pop(key, (self._size, now))
            left = min(self._size, left + (now - before) * self._rate)
            enough = left >= amount
            self._buckets[key] = (left - amount if enough else left, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        if not enough:
            seconds = int((amount - left) / self._rate) + 1
            raise Problem(
                429,
                "rate",
                f"too many requests; nothing was asked and nothing was charged; wait {seconds} s",
                headers={"Retry-After": str(seconds)},
            )


class Networks:
    """Addresses that are trusted to say for whom they ask.

    Parameters
    ----------
    stated : sequence of str
        IP addresses and networks.

    Raises
    ------
    ValueError
        If one is neither.
    """

    def __init__(self, stated: Sequence[str]) -> None:
        self._all = [ipaddress.ip_network(one, strict=False) for one in stated]
        self._known: dict[str, bool] = {}

    def __contains__(self, host: str) -> bool:
        known = self._known.get(host)
        if known is None:
            try:
                address = ipaddress.ip_address(host)
            except ValueError:
                return False
            known = any(address in one for one in self._all)
            if len(self._known) < 10_000:
                self._known[host] = known
        return known


def network_of(host: str) -> str:
    """Whose an address is: itself, or of IPv6 the network of 64 bits, which is one customer's."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host


def address_of(request: Request) -> str:
    """Whose rate a request counts to: an IPv4 address, or an IPv6 network of 64 bits, which is one customer's.

    Headers of proxies are believed where the server is told which to trust, for anyone can send them.
    """
    return network_of(request.client.host if request.client else "")


def bearer_token(request: Request) -> str | None:
    """Token of the Authorization header; None if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip()[:_MOST_TOKEN] if scheme.lower() == "bearer" and token.strip() else None


# ---- browsers


class Sessions:
    """Cookies of browsers, and the keys of their forms.

    A session cookie holds the number of a session that the board keeps, and nothing else: it is worth nothing after the
    session. Scripts cannot read it, and other sites cannot send it.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._seconds, self._secure = settings.session_seconds, settings.secure_cookies

    def begin(self, request: Request, response: Response, slug: str, session: str) -> None:
        """Give a browser the number of its session."""
        self._set(request, response, _cookie(slug), session, seconds=int(self._seconds))

    def end(self, request: Request, response: Response, slug: str) -> None:
        """Have a browser forget it."""
        response.delete_cookie(
            _cookie(slug), httponly=True, samesite="strict", secure=self._is_secure(request)
        )

    def of(self, request: Request, slug: str) -> str | None:
        """Number of a request's session, which may be over or invented; None if there is none."""
        return request.cookies.get(_cookie(slug), "")[:_MOST_TOKEN] or None

    # ---- forms

    def form_key(self, request: Request, response: Response, scope: str, secret: bytes) -> str:
        """Return the key of a page's forms, which stands in their address as "form".

        It fits the browser it is sent to, and nobody else's: without that browser's cookies it is worth nothing.

        Call it once for each page, before the page is made, with the response whose headers it will have.

        Parameters
        ----------
        request : Request
        response : Response
        scope : str
            Whose session the forms fit: a competition's, or its organisers'.
        secret : bytes
            That the board's database keeps, so that it is one for all servers and after a restart.
        """
        visitor = request.cookies.get(_VISITOR, "")
        if not _is_visitor(visitor):
            visitor = secrets.token_hex(16)
            self._set(request, response, _VISITOR, visitor, seconds=None)
        return _signed(secret, scope, visitor + request.cookies.get(_cookie(scope), ""))

    def check_form(self, request: Request, scope: str, secret: bytes) -> None:
        """Refuse a form that another site has sent; its body is not needed for that.

        Raises
        ------
        Problem
            403.
        """
        visitor, stated = request.cookies.get(_VISITOR, ""), request.query_params.get(FORM_KEY, "")
        right = _signed(secret, scope, visitor + request.cookies.get(_cookie(scope), ""))
        fits = hmac.compare_digest(stated.encode("utf-8", "surrogatepass"), right.encode())
        if not fits or not _is_visitor(visitor) or request.headers.get("sec-fetch-site") in _ELSEWHERE:
            raise Problem(
                403, "form", "the form is too old or from elsewhere; load the page again and send it again"
            )

    # ---- inside

    def _is_secure(self, request: Request) -> bool:
        return self._secure or request.url.scheme == "https"

    def _set(
        self, request: Request, response: Response, name: str, value: str, *, seconds: int | None
    ) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            httponly=True,
            samesite="strict",
            secure=self._is_secure(request),
            path="/",
        )


def _signed(secret: bytes, scope: str, content: str) -> str:
    text = f"form\0{scope}\0{content}".encode("utf-8", "surrogatepass")
    return hmac.new(secret, text, hashlib.sha256).hexdigest()


def _cookie(slug: str) -> str:
    return f"rh_session_{slug}"


def _is_visitor(value: str) -> bool:
    return len(value) == 32 and all(one in "0123456789abcdef" for one in value)
