"""Rows of a ledger and the hash chain that seals them."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import TYPE_CHECKING, NamedTuple

from reusable_holdout.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Row", "Tail", "check_follows", "genesis", "seal"]

_SEAL_BYTES = 32
_ROUNDING = 1e-9  # of sums that were added up in another order
_NUMBERS = struct.Struct(">qq32sddqddddqdd")  # all columns but the name, in their order


class Row(NamedTuple):
    """One released answer. Sums run over the whole ledger up to and including this row.

    Attributes
    ----------
    query : int
        From 1, without gaps.
    batch : int
        Query at which the row's batch began.
    digest : bytes
        32 bytes that name the question.
    prior, value, threshold, low, high : float
        In the metric's unit.
    charged : int
        0 or 1.
    nats : float
        Description length of the value.
    charges, spent_nats : int, float
        Sums of `charged` and `nats`.
    asked_at : float
        Unix seconds.
    name : str
        What the analyst called it.
    """

    query: int
    batch: int
    digest: bytes
    prior: float
    value: float
    charged: int
    threshold: float
    low: float
    high: float
    nats: float
    charges: int
    spent_nats: float
    asked_at: float
    name: str


class Tail(NamedTuple):
    """Sums at the end of a ledger, and the seal of its last commit."""

    query: int
    charges: int
    spent_nats: float
    seal: bytes


def genesis(configuration: str) -> bytes:
    """Seal of an empty ledger: of its configuration."""
    return hashlib.blake2b(configuration.encode(), digest_size=_SEAL_BYTES, person=b"genesis").digest()


def seal(previous: bytes, rows: Sequence[Row]) -> bytes:
    """Seal of a commit: of the seal before it and every column of its rows.

    Different rows have different encodings: their number, all numbers in fixed widths, the lengths of the names, the
    names.
    """
    numbers = b"".join([_NUMBERS.pack(*row[:-1]) for row in rows])
    names = [row.name.encode() for row in rows]
    lengths = struct.pack(f">{len(rows) + 1}q", len(rows), *map(len, names))
    digest = hashlib.blake2b(previous, digest_size=_SEAL_BYTES, person=b"commit")
    digest.update(lengths)
    digest.update(numbers)
    digest.update(b"".join(names))
    return digest.digest()


def check_follows(tail: Tail, rows: Sequence[Row]) -> None:
    """Refuse rows that do not continue the ledger.

    Raises
    ------
    LedgerError
        If numbers have gaps, sums are wrong, or a value is not finite.
    """
    number, charges, nats = tail.query, tail.charges, tail.spent_nats
    for row in rows:
        query, _, _, prior, value, charged, threshold, low, high, cost, sum_charged, sum_cost, _, _ = row
        number += 1
        charges += charged
        nats += cost
        sound = (
            query == number and sum_charged == charges and abs(sum_cost - nats) <= _ROUNDING * (1.0 + nats)
        )
        if not sound or not math.isfinite(prior + value + threshold + low + high + nats):
            raise LedgerError(
                f"a new row must continue the ledger after query {tail.query}; the one for query {query} does not; "
                "nothing was written"
            )
