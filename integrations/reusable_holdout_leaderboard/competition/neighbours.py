"""Neighbours on a board of claims, compared by what they were told and by the rows on which their files differ."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.guard.claiming import Pairs
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.rows import Best

__all__ = ["Neighbours", "compares", "differing", "guard_confidence", "packed_codes", "pairs_beta"]

_SHARE = 0.05  # of the failure probability, that pairs have; the guard's intervals have the rest

_MOST_COUNTED = 100  # pairs of files that one look at the board counts; the rest is counted by the next
_MOST_KEPT = 20_000  # counts


def compares(rules: Rules) -> bool:
    """Whether neighbours are compared row by row: on boards of claims about a mean of rows that are right or wrong."""
    metric = rules.made_metric()
    return rules.policy == "claims" and metric.family == "binomial" and metric.response == "labels"


def guard_confidence(rules: Rules) -> float:
    """Confidence of a guard that leaves pairs their share."""
    return rules.confidence + _SHARE * (1.0 - rules.confidence) if compares(rules) else rules.confidence


def pairs_beta(rules: Rules, confidence: float) -> float:
    """What a guard of some confidence leaves for pairs; 0 where none are compared, as on boards of earlier versions."""
    left = confidence - rules.confidence
    return left if compares(rules) and left > 1e-9 else 0.0


def packed_codes(codes: NDArray[Any], classes: int) -> bytes:
    """Codes of classes as the store keeps them: one bit for each row, or one or two bytes, which differ where they do.

    Parameters
    ----------
    codes : numpy.ndarray of int64 and shape (rows,)
    classes : int
    """
    head = struct.pack("<II", classes, len(codes))
    if classes == 2:
        return head + np.packbits(codes.astype(bool)).tobytes()
    return head + codes.astype(_width(classes)).tobytes()


def differing(first: bytes, second: bytes) -> int | None:
    """Rows on which two files differ; None if they are not of the same rows."""
    if first[:8] != second[:8] or len(first) != len(second):
        return None
    classes, _ = struct.unpack("<II", first[:8])
    width = np.uint8 if classes == 2 else _width(classes)
    one, other = (np.frombuffer(content, width, offset=8) for content in (first, second))
    if classes == 2:
        return int(np.bitwise_count(one ^ other).sum())
    return int(np.count_nonzero(one != other))


def _width(classes: int) -> Any:
    return np.uint8 if classes <= 1 << 8 else np.uint16 if classes <= 1 << 16 else np.uint32


class Neighbours:
    """What files say of neighbours, counted once for each pair and process.

    Parameters
    ----------
    pairs : Pairs
        Of the guard.
    contents : callable
        Predictions of submissions, of those that have some kept.
    """

    def __init__(self, pairs: Pairs, contents: Callable[[Sequence[int]], dict[int, bytes]]) -> None:
        self._pairs, self._contents = pairs, contents
        self._counts: dict[tuple[int, int], int | None] = {}

    def better(self, bests: Sequence[Best]) -> Callable[[Best, Best], bool]:
        """Whether the first of two standings is certified to be better: files are read where that decides.

        Parameters
        ----------
        bests : sequence of Best
            All that may be compared.
        """
        told = self._pairs.reached([one.query for one in bests])
        known = {one.submission_id: ends for one, ends in zip(bests, told, strict=True)}
        left, apart = _MOST_COUNTED, self._pairs.apart

        def is_better(first: Best, second: Best) -> bool:
            nonlocal left
            one, other = known[first.submission_id], known[second.submission_id]
            if one is None or other is None or not apart(one, other) or not self._pairs.may_lead(one, other):
                return False
            names = _in_order(first.submission_id, second.submission_id)
            if names not in self._counts:
                if not left:
                    return False
                left -= 1
                self._count(names)
            rows = self._counts[names]
            return rows is not None and self._pairs.leads(one, other, rows)

        return is_better

    def _count(self, names: tuple[int, int]) -> None:
        if len(self._counts) >= _MOST_KEPT:
            self._counts.clear()
        found = self._contents(names)
        both = [found[name] for name in names if name in found]
        self._counts[names] = differing(*both) if len(both) == 2 else None


def _in_order(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)
