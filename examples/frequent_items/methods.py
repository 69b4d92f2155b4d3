"""The paper's methods: mechanisms of the library at the paper's parameters for counting queries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.mechanisms import Sparse, StandardSVT, retraversal
from reusable_holdout.mechanisms.selection.exponential import exponential_top
from reusable_holdout.noise import KeyedNoise, key_from_seed
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

EPSILON, DELTA = 0.1, 1e-6
_BLOCK = 500  # queries asked at once
Scores, Indices = NDArray[np.float64], NDArray[np.int64]
Setting = Literal["interactive", "non-interactive"]


class Method(NamedTuple):
    """A way to select, from scores in the order in which they are asked, the threshold, c and a seed."""

    name: str
    setting: Setting
    select: Callable[[Scores, float, int, int], Indices]


def book(scores: Scores, threshold: float, c: int, seed: int) -> Indices:
    """Select by SVT-DPBook: Algorithm 2 of Dwork and Roth, which renews the threshold's noise of scale 2c/e."""
    stream = Sparse(threshold, charges=c, epsilon=EPSILON, seed=seed)
    return _above(stream, scores)


def standard(
    scores: Scores, threshold: float, c: int, seed: int, *, exponent: float, factor: float
) -> Indices:
    """Select by SVT-S: one threshold noise; the ratio of the parts of epsilon is ``factor * c**exponent``."""
    stream = _standard_stream(threshold, c, seed, ratio=factor * c**exponent)
    return _above(stream, scores)


def every_pass(scores: Scores, threshold: float, c: int, seed: int, *, raised_by: float) -> Indices:
    """Select by SVT-ReTr of the library, pass by pass: thousands of passes if c and the noise are small."""
    return retraversal(
        scores,
        threshold,
        charges=c,
        epsilon=EPSILON,
        raised_by=raised_by,
        passes=1_000_000,
        monotonic=True,
        seed=seed,
    )


def race(scores: Scores, threshold: float, c: int, seed: int, *, raised_by: float) -> Indices:
    """Select by SVT-ReTr from its law, without the passes.

    Given the threshold's noise, every pass selects an item with the same probability, independently of the others. So
    the pass that selects it is a geometric variable, and the first c items by pass, then by place, are selected.
    """
    stream = _standard_stream(threshold, c, seed, ratio=None)
    deviation = 2**0.5 * float(stream.scales.query)
    noise = KeyedNoise(key_from_seed(seed)).draw(
        DiscreteLaplace(stream.scales.threshold), label="threshold", question=bytes(8)
    )
    needed = np.ceil((threshold - scores) / stream.step + raised_by * deviation + noise)
    waiting = np.random.default_rng(seed).standard_exponential(len(scores))
    passes = np.floor(waiting / -log_missed(needed, float(stream.scales.query)))
    return np.argsort(passes, kind="stable")[:c]


def log_missed(needed: Scores, scale: float) -> Scores:
    """Compute the log of the probability that discrete Laplace noise is below the needed number of steps."""
    log_norm = np.log1p(np.exp(-1.0 / scale))
    far = np.log1p(-np.exp(-np.maximum(needed, 1.0) / scale - log_norm))
    return np.where(needed >= 1.0, far, (np.minimum(needed, 0.0) - 1.0) / scale - log_norm)


def exponential(scores: Scores, threshold: float, c: int, seed: int) -> Indices:
    """Select by EM: c rounds of the exponential mechanism, weights ``exp(e q / c)``; it needs no threshold."""
    del threshold
    return exponential_top(scores, c, epsilon=EPSILON, monotonic=True, seed=seed)


def exponential_delta(scores: Scores, threshold: float, c: int, seed: int) -> Indices:
    """Select by EM at delta 1e-6: c rounds by the optimal composition of bounded range; the paper has none."""
    del threshold
    return exponential_top(scores, c, epsilon=EPSILON, delta=DELTA, monotonic=True, seed=seed)


def methods(*, passes: bool) -> list[Method]:
    """Return all methods of the paper's Table 2, and the exponential mechanism with a delta.

    Parameters
    ----------
    passes : bool
        True if retraversal makes its passes; otherwise its selection is drawn from its law.
    """
    allocations = {"1:1": (0.0, 1.0), "1:3": (0.0, 3.0), "1:c": (1.0, 1.0), "1:c^(2/3)": (2 / 3, 1.0)}
    return [
        Method("SVT-DPBook", "interactive", book),
        *(
            Method(f"SVT-S-{name}", "interactive", partial(standard, exponent=exponent, factor=factor))
            for name, (exponent, factor) in allocations.items()
        ),
        *(
            Method(
                f"SVT-ReTr-{raised}D",
                "non-interactive",
                partial(every_pass if passes else race, raised_by=float(raised)),
            )
            for raised in range(1, 6)
        ),
        Method("EM", "non-interactive", exponential),
        Method("EM, delta 1e-6", "non-interactive", exponential_delta),
    ]


def _standard_stream(threshold: float, c: int, seed: int, *, ratio: float | None) -> StandardSVT:
    return StandardSVT(threshold, charges=c, epsilon=EPSILON, ratio=ratio, monotonic=True, seed=seed)


def _above(stream: Sparse | StandardSVT, scores: Scores) -> Indices:
    """Ask until the stream halts, in blocks: queries behind the halt need no noise."""
    answers = [np.zeros(0, dtype=np.bool_)]
    for start in range(0, len(scores), _BLOCK):
        answers.append(stream.ask_many(scores[start : start + _BLOCK]))
        if stream.halted:
            break
    return np.flatnonzero(np.concatenate(answers))
