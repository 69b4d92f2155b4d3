"""The exact loss of published wrong sparse vectors: Lyu, Su and Li (2017), Algorithms 3 to 6.

Each promises epsilon; the script adds up the probabilities of one transcript on two neighbouring data sets and prints
the logarithm of their ratio, next to Algorithm 1 on transcripts of the same kind. Sensitivity 1, threshold 0.

    3  releases the very number that was compared: t queries below, then one above with its number
    4  noise for one query above, used for c of them: t below, c above
    5  no noise on the queries: one below and one above, at values 0, 1 and 1, 0
    6  never stops: t below, t above

    python examples/published_mistakes.py                  # about a second

Noise is discrete, on a grid of 8 steps per sensitivity; every probability is a finite sum over the threshold's noise.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reusable_holdout.mechanisms import standard_svt_scales
from reusable_holdout.noise import DiscreteLaplace

STEPS = 8  # per sensitivity
REACH = 60  # threshold scales
FAR = 40  # distance of a query from the threshold, in scales of its noise
LENGTHS = (1, 10, 100, 1_000)


class Stream:
    """The noises of a stream, in grid steps, and log probabilities of answers given the threshold's noise."""

    def __init__(self, threshold: Fraction, query: Fraction) -> None:
        self.query = DiscreteLaplace(query * STEPS)
        law = DiscreteLaplace(threshold * STEPS)
        reach = math.ceil(REACH * law.scale)
        self.places = range(-reach, reach + 1)
        self.weights = np.array([law.log_pmf(z) for z in self.places])

    def above(self, value: float) -> NDArray[np.float64]:
        """Return the log probability that the query is at least the noisy threshold."""
        return np.array([self.query.log_tail(z - round(STEPS * value)) for z in self.places])

    def below(self, value: float) -> NDArray[np.float64]:
        """Return the log probability that the query is below it."""
        return np.array([self.query.log_tail(1 - z + round(STEPS * value)) for z in self.places])

    def released(self, value: float, number: int) -> NDArray[np.float64]:
        """Return the log probability that the query is above and the compared number is `number`."""
        density = self.query.log_pmf(STEPS * number - round(STEPS * value))
        return np.array([density if STEPS * number >= z else -math.inf for z in self.places])

    def loss(self, here: NDArray[np.float64], there: NDArray[np.float64]) -> float:
        """Return the log of the ratio of two transcripts' probabilities."""
        return log_sum(self.weights + here) - log_sum(self.weights + there)


def log_sum(logs: NDArray[np.float64]) -> float:
    """Return the log of the sum of exponentials; minus infinity if there are none."""
    highest = float(logs.max())
    return highest + math.log(float(np.exp(logs - highest).sum())) if math.isfinite(highest) else -math.inf


def mixed(stream: Stream, belows: int, aboves: int) -> float:
    """Compute the loss of queries below, which fall, and of queries above, which rise and are far below."""
    far = -FAR * float(stream.query.scale) / STEPS
    here = belows * stream.below(0.0) + aboves * stream.above(far + 1)
    there = belows * stream.below(1.0) + aboves * stream.above(far)
    return stream.loss(here, there)


def losses(epsilon: float, charges: int) -> pd.DataFrame:
    """Return the table, with a row for each number of queries below."""
    exact = Fraction(epsilon)
    right = standard_svt_scales(charges=charges, epsilon=epsilon, ratio=1.0, sensitivity=1)
    first = Stream(right.threshold, right.query)
    third = Stream(2 / exact, 2 * charges / exact)
    fourth = Stream(4 / exact, 4 / (3 * exact))
    fifth = Stream(2 / exact, Fraction(0))
    sixth = Stream(2 / exact, 2 / exact)
    apart = fifth.loss(fifth.below(0.0) + fifth.above(1.0), fifth.below(1.0) + fifth.above(0.0))
    rows = []
    for t in LENGTHS:
        number = (
            t * third.below(0.0) + third.released(0.0, 0),
            t * third.below(1.0) + third.released(-1.0, 0),
        )
        rows.append(
            {
                "t": t,
                f"1 (c = {charges})": mixed(first, t, charges),
                "3": third.loss(*number),
                f"4 (c = {charges})": mixed(fourth, t, charges),
                "5": apart,
                "6": mixed(sixth, t, t),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Print the losses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--charges", type=int, default=3)
    options = parser.parse_args()
    print(f"loss of one transcript, epsilon {options.epsilon:g} promised")
    print(losses(options.epsilon, options.charges).to_string(index=False, float_format="%.4f"))
    limit = (1 + 6 * options.charges) / 4 * options.epsilon
    print(f"\nAlgorithm 4 loses up to (1 + 6c)/4 epsilon = {limit:g}; 3 and 6 without end; 5 at once")


if __name__ == "__main__":
    main()
