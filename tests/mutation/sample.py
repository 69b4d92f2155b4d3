"""A sample of the mutants that is the same every time, and nearly the same after a change of the source."""

from __future__ import annotations

import hashlib
import math

from mutation.operators import Mutant

__all__ = ["sample"]


def sample(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """So many of each file as its share of all mutants; which, their identities and the seed decide.

    Lines that move change nothing, and a mutant that is added or goes takes at most a few others along.
    """
    by_file: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_file.setdefault(mutant.file, []).append(mutant)
    counts = _shares({file: len(found) for file, found in by_file.items()}, min(size, len(mutants)))
    chosen = []
    for file, found in by_file.items():
        ranked = sorted(found, key=lambda mutant: _rank(mutant, seed))
        chosen += sorted(ranked[: counts[file]], key=lambda mutant: mutant.start)
    return chosen


def _rank(mutant: Mutant, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {mutant.identity!r}".encode()).digest()


def _shares(counts: dict[str, int], size: int) -> dict[str, int]:
    """Split a size in proportion to counts; what rounding down leaves goes to the largest remainders."""
    total = sum(counts.values())
    exact = {file: size * count / total for file, count in counts.items()}
    shares = {file: math.floor(share) for file, share in exact.items()}
    by_remainder = sorted(counts, key=lambda file: (shares[file] - exact[file], file))
    for file in by_remainder[: size - sum(shares.values())]:
        shares[file] += 1
    return shares
