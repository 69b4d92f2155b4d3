"""One run of every mechanism of the five source documents on a small data set.

The data are 30 counts, most of them small. Each mechanism answers at epsilon 1, and at a delta of 1e-6 if it needs one.
docs/mechanisms.md tells where each algorithm comes from.

    python examples/every_mechanism.py                     # a few seconds
    python examples/every_mechanism.py --seed 1            # the same each time, and not private
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from reusable_holdout.mechanisms import (
    AboveThreshold,
    DistinctSketch,
    IndividualCharging,
    MixedInteraction,
    NumericSparse,
    Sparse,
    StandardSVT,
    TargetCharging,
    TargetInteraction,
    boundary_wrapper,
    exponential_mechanism,
    exponential_top,
    exponential_weights,
    exponential_weights_or_low,
    gaussian_mechanism,
    laplace_mechanism,
    noisy_top_k_gaps,
    one_shot_top_k,
    permute_and_flip,
    report_noisy_max,
    retraversal,
    standard_svt_scales,
    synthetic_data,
)
from reusable_holdout.mechanisms.accounting import (
    boundary_wrapped_epsilon,
    differing_runs_q,
    not_prior_q,
    subsampled_epsilon,
)
from reusable_holdout.noise import KeyedNoise, SparseVector, key_from_seed, new_key

Say = Callable[[np.ndarray, int | None], Any]
EPSILON, DELTA = 1.0, 1e-6
COUNTS = np.array([*([3, 8, 1, 12, 5] * 5), 4_000, 900, 7_000, 2_500, 5_200], dtype=np.float64)
THRESHOLD = 1_500.0
BUDGET = {"epsilon": EPSILON, "delta": DELTA}
SAYS: dict[str, Say] = {}


def named(name: str) -> Callable[[Say], Say]:
    """Enter a mechanism in the table."""

    def enter(say: Say) -> Say:
        SAYS[name] = say
        return say

    return enter


def of_stream(stream: Any, counts: np.ndarray) -> list[Any]:
    """Return the answers of a stream other than "below", until it halts."""
    answers = []
    for place, count in enumerate(counts):
        if stream.halted:
            break
        answer = stream.ask(count)
        if answer is True:
            answers.append(place)
        elif answer is not None and answer is not False:
            answers.append((place, round(answer)))
    return answers


# Numbers, and streams of the sparse vector technique ---------------------------------------------------


@named("Laplace mechanism, first three counts")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return laplace_mechanism(counts[:3], epsilon=EPSILON, sensitivity=3.0, seed=seed).round(1).tolist()


@named("Gaussian mechanism, first three counts")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return gaussian_mechanism(counts[:3], **BUDGET, sensitivity=3**0.5, seed=seed).round(1).tolist()


@named("the same on a secret tenth of the rows: epsilon")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return round(subsampled_epsilon(EPSILON, rate=0.1), 4)


@named("AboveThreshold")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return of_stream(AboveThreshold(THRESHOLD, epsilon=EPSILON, seed=seed), counts)


@named("Sparse, 3 charges")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return of_stream(Sparse(THRESHOLD, charges=3, epsilon=EPSILON, seed=seed), counts)


@named("NumericSparse, the lecture's split")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return of_stream(NumericSparse(THRESHOLD, charges=3, **BUDGET, split="lecture", seed=seed), counts)


@named("NumericSparse, the book's split")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return of_stream(NumericSparse(THRESHOLD, charges=3, **BUDGET, split="book", seed=seed), counts)


@named("StandardSVT, monotonic")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return of_stream(StandardSVT(THRESHOLD, charges=3, epsilon=EPSILON, monotonic=True, seed=seed), counts)


@named("StandardSVT with values")
def _(counts: np.ndarray, seed: int | None) -> Any:
    stream = StandardSVT(THRESHOLD, charges=3, epsilon=EPSILON, answers=0.3, seed=seed)
    told = [stream.ask_value(count) for count in counts if not stream.halted]
    return [round(value) for value in told if value is not None]


@named("is an answer derived from earlier ones off by 300 or more? of four")
def _(counts: np.ndarray, seed: int | None) -> Any:
    noise = KeyedNoise(new_key() if seed is None else key_from_seed(seed))
    core = SparseVector(
        scales=standard_svt_scales(charges=2, epsilon=EPSILON, sensitivity=1), noise=noise, charges=2
    )
    truth = counts[[0, 25, 27, 29]].astype(int).tolist()
    return [
        core.deviates(true, derived, 300, str(derived).encode())
        for true, derived in zip(truth, (10, 4_050, 9_000, 5_100), strict=True)
    ]


@named("retraversal, best 3")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return np.asarray(retraversal(counts, THRESHOLD, charges=3, epsilon=EPSILON, seed=seed)).tolist()


# Selection ---------------------------------------------------------------------------------------------


@named("exponential mechanism")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return exponential_mechanism(counts, epsilon=EPSILON, seed=seed)


@named("exponential mechanism, monotonic, best 3")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return np.asarray(exponential_top(counts, 3, epsilon=EPSILON, monotonic=True, seed=seed)).tolist()


@named("noisy max; permute and flip")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return report_noisy_max(counts, epsilon=EPSILON, seed=seed), permute_and_flip(
        counts, epsilon=EPSILON, seed=seed
    )


@named("one-shot top 3 with their scores")
def _(counts: np.ndarray, seed: int | None) -> Any:
    best = one_shot_top_k(counts, 3, **BUDGET, seed=seed)
    return list(zip(best.indices.tolist(), best.scores.round().tolist(), strict=True))


@named("one-shot selection among algorithms, up to a wide gap")
def _(counts: np.ndarray, seed: int | None) -> Any:
    def algorithm(place: int, epsilon: float) -> tuple[str, float]:
        own = None if seed is None else seed + place
        return f"count {place}", float(laplace_mechanism([counts[place]], epsilon=epsilon, seed=own)[0])

    best = one_shot_top_k(
        list(range(len(counts))), 8, algorithm=algorithm, **BUDGET, stop_gap=600.0, seed=seed
    )
    return list(best.found)


@named("noisy top 3 and the gaps behind them")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return noisy_top_k_gaps(counts, 3, epsilon=EPSILON, seed=seed).indices.tolist()


@named("synthetic data of 4 rows, for 3 queries")
def _(counts: np.ndarray, seed: int | None) -> Any:
    rows = np.repeat([0, 1, 2], [500, 0, 500])
    return synthetic_data(rows, np.eye(3), epsilon=EPSILON, size=4, seed=seed).tolist()


# Target charging ---------------------------------------------------------------------------------------


@named("NotPrior: 0 is what is believed of each count")
def _(counts: np.ndarray, seed: int | None) -> Any:
    calls = TargetCharging(charges=6, **BUDGET, seed=seed)
    return [round(answer) for count in counts if (answer := calls.not_prior(count, 0.0, tolerance=400.0))]


@named("private tests, two targets: the rarer answer is paid for")
def _(counts: np.ndarray, seed: int | None) -> Any:
    calls = TargetCharging(charges=6, **BUDGET, targets=2, seed=seed)
    told = [calls.above(count, THRESHOLD, False, True) for count in counts]
    return f"{sum(told)} above; hits {calls.hits}"


@named("between thresholds")
def _(counts: np.ndarray, seed: int | None) -> Any:
    calls = TargetCharging(charges=6, **BUDGET, gap=800.0, seed=seed)
    told = [calls.between(count, 500.0, 1_500.0) for count in counts]
    return {side: told.count(side) for side in ("below", "between", "above")}


@named("conditional release, then a revision at a lower threshold")
def _(counts: np.ndarray, seed: int | None) -> Any:
    calls = TargetCharging(charges=8, **BUDGET, seed=seed)
    told = [calls.conditional_release(count, low=3_000.0, name=str(n)) for n, count in enumerate(counts)]
    again = [calls.revise(str(n), low=2_000.0) for n, found in enumerate(told) if found is None]
    return [round(value) for value in [*told, *again] if value is not None]


@named("conditional release of any algorithm's outcome: distinct visitors, from a sketch")
def _(counts: np.ndarray, seed: int | None) -> Any:
    calls = TargetInteraction(charges=2, **BUDGET)
    sketch = DistinctSketch(epsilon=calls.epsilon_each, registers=256, seed=seed)
    sketch.add(range(20_000))
    told = calls.release_if(sketch.estimate, lambda count: count > 5_000, epsilon=calls.epsilon_each)
    return None if told is None else round(told, -3)


@named("boundary wrapper of votes: agreement, none")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return [
        boundary_wrapper(exponential_weights(votes, epsilon=EPSILON), seed=seed)
        for votes in ([95, 5, 0], [34, 33, 33])
    ]


@named('the same with "low" (3)')
def _(counts: np.ndarray, seed: int | None) -> Any:
    return [
        boundary_wrapper(exponential_weights_or_low(votes, threshold=60, epsilon=EPSILON), seed=seed)
        for votes in ([95, 5, 0], [34, 33, 33])
    ]


@named("twice in an interaction: free if the runs agree")
def _(counts: np.ndarray, seed: int | None) -> Any:
    calls = TargetInteraction(charges=2, **BUDGET, q=lambda each: differing_runs_q(each / 2))
    own = calls.epsilon_each / 2
    return calls.twice(lambda: exponential_mechanism(counts, epsilon=own, seed=seed), epsilon=own)


@named("calls that are approximately private only")
def _(counts: np.ndarray, seed: int | None) -> Any:
    calls = TargetInteraction(charges=4, **BUDGET, calls_delta=5e-7)
    each = calls.epsilon_each
    told = calls.release_if(
        lambda: float(gaussian_mechanism([counts[-3]], epsilon=each, delta=1e-7, seed=seed)[0]),
        lambda value: value > THRESHOLD,
        epsilon=each,
        delta=1e-7,
    )
    return None if told is None else round(told), f"delta left {calls.delta_left:.1e}"


@named("calls of different epsilons: weight spent by a hit")
def _(counts: np.ndarray, seed: int | None) -> Any:
    calls = MixedInteraction(**BUDGET, largest_epsilon=0.02)
    for each in (0.02, 0.005):
        calls.run(lambda: "other", hit=lambda told: told != "prior", epsilon=each, q=not_prior_q(each))
    return f"{calls.weight - calls.weight_left:.4f} of {calls.weight:.4f}"


@named("individual charging: two predicates, one charge for each record")
def _(counts: np.ndarray, seed: int | None) -> Any:
    sums = IndividualCharging(1_000, charges=1, **BUDGET, seed=seed)
    half = np.arange(1_000) < 500
    return [sums.ask(half, 250.0), sums.ask(half, 250.0), sums.ask(np.ones(1_000, dtype=bool), 250.0)]


@named("epsilon inside a wrapper of epsilon 1")
def _(counts: np.ndarray, seed: int | None) -> Any:
    return round(boundary_wrapped_epsilon(EPSILON), 4)


def main() -> None:
    """Print the result of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="for reproducible noise, which is not private")
    options = parser.parse_args()
    print(f"counts {', '.join(f'{count:.0f}' for count in COUNTS)}; threshold {THRESHOLD:.0f}\n")
    table = pd.DataFrame(
        [{"mechanism": name, "says": str(say(COUNTS, options.seed))} for name, say in SAYS.items()]
    )
    width = int(table["mechanism"].str.len().max())
    for name, said in table.itertuples(index=False):
        print(f"{name:<{width}}  {said}")


if __name__ == "__main__":
    main()
