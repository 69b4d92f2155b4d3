"""Who may hold a connection open: so many below the limit of open files, so many of one address, and not for ever."""

from __future__ import annotations

import ipaddress
import resource
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Door", "Guest", "Networks", "network_of"]

_RESERVED_FILES = 256  # for databases, what is listened on, and connections that are just being accepted


class Guest(Protocol):
    """An open connection."""

    @property
    def owes(self) -> bool:
        """Whether the next step is the client's: the rest of a request, or another one."""

    def turn_out(self) -> None:
        """Close it at once."""


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


class Door:
    """Open connections of one process.

    When there is no room for a newcomer, who has been waited for longest makes some: of the newcomer's own address if
    that has too many, else of the address that has most. So a thousand requests that never end keep nobody else out.
    Who is being answered is left alone.

    Parameters
    ----------
    per_address : int
        Connections of one address.
    trusted : sequence of str
        Addresses and networks of proxies, which may have any number.
    """

    def __init__(self, *, per_address: int, trusted: Sequence[str] = ()) -> None:
        self._per_address, self._trusted = per_address, Networks(trusted)
        self._of: dict[str, dict[Guest, None]] = {}  # the oldest first
        self._homes: dict[Guest, str] = {}

    def __len__(self) -> int:
        return len(self._homes)

    def enter(self, guest: Guest, host: str) -> None:
        """Count a connection; perhaps another one is closed for it, or it itself."""
        home = network_of(host)
        own = self._of.setdefault(home, {})
        own[guest], self._homes[guest] = None, home
        if len(own) > self._per_address and host not in self._trusted:
            self._make_room(own, guest)
        elif len(self._homes) > most_connections():
            self._make_room(self._of[max(self._of, key=self._held)], guest)

    def leave(self, guest: Guest) -> None:
        """Count it no more; nothing happens if it was turned out."""
        home = self._homes.pop(guest, None)
        if home is None:
            return
        del self._of[home][guest]
        if not self._of[home]:
            del self._of[home]

    def _held(self, home: str) -> int:
        return len(self._of[home])

    def _make_room(self, among: Iterable[Guest], newcomer: Guest) -> None:
        out = next((one for one in among if one is not newcomer and one.owes), newcomer)
        self.leave(out)
        out.turn_out()


def most_connections() -> int:
    """Connections that leave enough of the open files this process may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        limit = 1 << 20
    return max(limit - _RESERVED_FILES, limit // 2)
