"""Find the pages with many visitors by tests on private sketches; only a released estimate is charged.

Each page has a sketch, 256 small numbers in place of a list of its visitors (`DistinctSketch`). A sketch is private by
its randomness: one visitor more or less changes the odds of every estimate by at most a factor of exp(epsilon). Page by
page, an estimate is released if it is above a threshold, and only then is it charged (Cohen and Lyu 2023, section 2.2,
use (iv)). It is compared with the same sketches where every page is charged, by the best composition, and with exact
counts with Laplace noise, which need a list of all visitors.

    python examples/distinct_visitors.py                   # some seconds

A large page has at least twice the threshold, a small one less than half of it. Errors are relative, root mean square.
Visitors are drawn at random; the pages' numbers of visits follow Zipf's law.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reusable_holdout.mechanisms import DistinctSketch, TargetCharging, TargetInteraction
from reusable_holdout.mechanisms.accounting import optimal_epsilon_each

PEOPLE = 1_000_000
REGISTERS = 256
DELTA = 1e-6


class Run(NamedTuple):
    """The released estimate of each page asked, or None, and the epsilon of one page's count."""

    told: list[float | None]
    epsilon_each: float


def visits(*, pages: int, largest: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Draw the visitors of each page, some more than once, in a random order of pages."""
    counts = np.maximum(1, largest // np.arange(1, pages + 1))
    return [rng.integers(PEOPLE, size=int(count)) for count in rng.permutation(counts)]


def sketch_of(items: NDArray[np.int64], *, epsilon: float, seed: int | None) -> DistinctSketch:
    sketch = DistinctSketch(epsilon=epsilon, registers=REGISTERS, seed=seed)
    sketch.add(items.tolist())
    return sketch


def tested_sketches(
    pages: list[NDArray[np.int64]], *, threshold: float, epsilon: float, charges: int, seed: int | None
) -> Run:
    """Release sketches conditionally: a page below the threshold is free."""
    tests = TargetInteraction(charges=charges, epsilon=epsilon, delta=DELTA)
    told: list[float | None] = []
    for place, items in enumerate(pages):
        if tests.halted:
            break
        sketch = sketch_of(items, epsilon=tests.epsilon_each, seed=None if seed is None else seed + place)
        enough = lambda count: count >= threshold  # noqa: E731 - the condition of a release
        told.append(tests.release_if(sketch.estimate, enough, epsilon=tests.epsilon_each))
    return Run(told, tests.epsilon_each)


def all_sketches(
    pages: list[NDArray[np.int64]], *, threshold: float, epsilon: float, seed: int | None
) -> Run:
    """Release the estimate of every page, and pay for each."""
    each = optimal_epsilon_each(epsilon=epsilon, count=len(pages), delta=DELTA)
    counts = [
        sketch_of(items, epsilon=each, seed=None if seed is None else seed + place).estimate()
        for place, items in enumerate(pages)
    ]
    return Run([count if count >= threshold else None for count in counts], each)


def tested_lists(
    pages: list[NDArray[np.int64]], *, threshold: float, epsilon: float, charges: int, seed: int | None
) -> Run:
    """Release exact counts with Laplace noise conditionally."""
    tests = TargetCharging(charges=charges, epsilon=epsilon, delta=DELTA, seed=seed)
    told: list[float | None] = []
    for items in pages:
        if tests.halted:
            break
        told.append(tests.conditional_release(float(len(np.unique(items))), low=threshold))
    return Run(told, tests.epsilon_each)


def row(way: str, run: Run, truth: NDArray[np.int64], *, threshold: float) -> dict[str, object]:
    """Return the pages that a way found above the threshold, and the error of its counts."""
    asked = len(run.told)
    released = np.array([count is not None for count in run.told])
    large, small = truth >= 2 * threshold, truth[:asked] < threshold / 2
    told = np.array([np.nan if count is None else count for count in run.told])
    errors = (told / truth[:asked] - 1)[large[:asked] & released]
    return {
        "way": way,
        "epsilon a page": f"{run.epsilon_each:.4f}",
        "pages asked": asked,
        "released": int(released.sum()),
        "large": f"{int((large[:asked] & released).sum())} of {int(large.sum())}",
        "small": f"{int((small & released).sum())} of {int(small.sum())}",
        "error of the large": f"{float(np.sqrt(np.mean(errors**2))):.4f}" if len(errors) else "",
    }


def main() -> None:
    """Print the findings of each way at one epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--charges", type=int, default=40)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--largest", type=int, default=100_000, help="visits of the most visited page")
    parser.add_argument("--threshold", type=float, default=5_000.0, help="distinct visitors")
    parser.add_argument("--seed", type=int, help="for a reproducible run, which is not private")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    pages = visits(pages=options.pages, largest=options.largest, rng=rng)
    truth = np.array([len(np.unique(items)) for items in pages])
    common = {"threshold": options.threshold, "epsilon": options.epsilon, "seed": options.seed}
    charges = {"charges": options.charges}
    found = {
        "sketches, tested": tested_sketches(pages, **common, **charges),
        "sketches, all paid for": all_sketches(pages, **common),
        "lists, tested": tested_lists(pages, **common, **charges),
    }
    print(
        f"{len(pages):,} pages, {int((truth >= options.threshold).sum())} of them with {options.threshold:,.0f} "
        f"distinct visitors or more, {int((truth >= 2 * options.threshold).sum())} large: with twice as many; "
        f"{int((truth < options.threshold / 2).sum()):,} are small: with less than half"
    )
    print(
        f"({options.epsilon:g}, {DELTA:g})-differentially private for one visitor of one page; "
        f"{options.charges} charges\n"
    )
    rows = [row(way, run, truth, threshold=options.threshold) for way, run in found.items()]
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
