"""Microseconds of the processor per query of each mechanism, beside a plain NumPy Laplace draw.

Noise here is exact, discrete and keyed by the question, so it costs more than a floating-point draw; the table says how
much more. All columns are measured in one run, medians over rounds.
Run with ``python examples/benchmarks/mechanisms.py``; ``--json`` for programs, ``--quick`` for a rough look.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from hashlib import shake_256
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reusable_holdout.mechanisms import (
    AboveThreshold,
    ConditionalStream,
    DiscreteExponential,
    DiscreteLaplace,
    GaussianSVT,
    KeyedNoise,
    NumericSparse,
    RoundedNormal,
    Sparse,
    StandardSVT,
    TargetCharging,
    exponential_mechanism,
    exponential_top,
    key_from_seed,
    laplace_mechanism,
    one_shot_top_k,
    permute_and_flip,
    report_noisy_max,
    retraversal,
)
from reusable_holdout.mechanisms.samplers.numbered import NumberedNoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from reusable_holdout.mechanisms.sparse_vector.real_stream import WhetherStream

_MANY = 10_000
_SINGLE = 300


class Cost(NamedTuple):
    """Microseconds per query, asked one by one and in a batch of 10,000; None where there is no such way."""

    mechanism: str
    single: float | None
    batch: float | None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    rounds = 3 if options.quick else 11
    costs = [plain(rounds), hashing(rounds), *noise(rounds), *streams(rounds), *selections(rounds)]
    if options.json:
        print(json.dumps([cost._asdict() for cost in costs], indent=2))
        return
    print("| mechanism | one by one, us | batch of 10,000, us per query |\n|---|---|---|")
    for cost in costs:
        print(f"| {cost.mechanism} | {_shown(cost.single)} | {_shown(cost.batch)} |")


def plain(rounds: int) -> Cost:
    """NumPy's floating-point Laplace draw: the least anything could cost."""
    rng = np.random.default_rng(0)
    return Cost(
        "NumPy Laplace draw",
        _median(lambda: [rng.laplace() for _ in range(_SINGLE)], rounds) / _SINGLE,
        _median(lambda: rng.laplace(size=_MANY), rounds) / _MANY,
    )


def hashing(rounds: int) -> Cost:
    """One call of the hash function for a question: the least that noise keyed by the question could cost."""
    head, size = bytes(71), DiscreteLaplace(1_000_000).stream_bytes
    questions = [number.to_bytes(32, "big") for number in range(_MANY)]
    batch = _median(lambda: [shake_256(head + question).digest(size) for question in questions], rounds)
    return Cost("SHAKE-256 of each question, no noise", None, batch / _MANY)


def noise(rounds: int) -> list[Cost]:
    """Exact keyed noise alone."""
    ways = (
        ("", KeyedNoise(key_from_seed(0)), 32),  # as a guard draws: a hash for each question
        (
            ", numbered questions",
            NumberedNoise(key_from_seed(0)),
            8,
        ),  # as a stream draws: a hash for 64 of them
    )
    costs = []
    for name, keyed, size in ways:
        questions = [number.to_bytes(size, "big") for number in range(_MANY)]
        for law in (DiscreteLaplace(1_000_000), DiscreteExponential(1_000_000), RoundedNormal(1_000_000)):
            single = _median(
                lambda law=law, keyed=keyed, asked=questions[:_SINGLE]: [
                    keyed.draw(law, label="query", question=question) for question in asked
                ],
                rounds,
            )
            batch = _median(
                lambda law=law, keyed=keyed, asked=questions: keyed.draw_many(
                    law, label="query", questions=asked
                ),
                rounds,
            )
            costs.append(Cost(type(law).__name__ + name, single / _SINGLE, batch / _MANY))
    return costs


def streams(rounds: int) -> list[Cost]:
    """Sparse vector mechanisms and target charging on queries far below the threshold."""
    makers: dict[str, Callable[[], WhetherStream | NumericSparse]] = {
        "AboveThreshold": lambda: AboveThreshold(1e6, epsilon=1.0, seed=0),
        "Sparse": lambda: Sparse(1e6, charges=10, epsilon=1.0, seed=0),
        "NumericSparse": lambda: NumericSparse(1e6, charges=10, epsilon=1.0, seed=0),
        "StandardSVT": lambda: StandardSVT(1e6, charges=10, epsilon=1.0, seed=0),
        "StandardSVT, exponential noise": lambda: StandardSVT(
            1e6, charges=10, epsilon=1.0, noise="exponential", seed=0
        ),
        "GaussianSVT": lambda: GaussianSVT(1e6, queries=10**9, charges=10, epsilon=1.0, delta=1e-6, seed=0),
        "ConditionalStream": lambda: ConditionalStream(1e6, charges=10, epsilon=1.0, delta=1e-6, seed=0),
    }
    values = np.zeros(_MANY)
    costs = []
    for name, make in makers.items():
        stream = make()
        single = _median(lambda stream=stream: [stream.ask(0.0) for _ in range(_SINGLE)], rounds)
        batch = _median(lambda stream=stream: stream.ask_many(values), rounds)
        costs.append(Cost(name, single / _SINGLE, batch / _MANY))
    held = TargetCharging(charges=10, epsilon=1.0, delta=1e-6, seed=0)
    single = _median(lambda: [held.above(0.0, 1e6) for _ in range(_SINGLE)], rounds)
    costs.append(Cost("TargetCharging.above", single / _SINGLE, None))
    return costs


def selections(rounds: int) -> list[Cost]:
    """Noise on 10,000 scores, and selections from them, per score."""
    scores = 1e6 / np.arange(1, _MANY + 1)
    makers: dict[str, Callable[[], object]] = {
        "laplace_mechanism": lambda: laplace_mechanism(scores, epsilon=0.1, seed=0),
        "exponential_mechanism": lambda: exponential_mechanism(scores, epsilon=0.1, seed=0),
        "exponential_top, 100 selected": lambda: exponential_top(scores, 100, epsilon=0.1, seed=0),
        "report_noisy_max": lambda: report_noisy_max(scores, epsilon=0.1, seed=0),
        "permute_and_flip": lambda: permute_and_flip(scores, epsilon=0.1, seed=0),
        "one_shot_top_k, 100 selected": lambda: one_shot_top_k(scores, 100, epsilon=1.0, delta=1e-6, seed=0),
        "retraversal, 100 selected": lambda: retraversal(
            scores, 10_000.0, charges=100, epsilon=1.0, monotonic=True, seed=0
        ),
    }
    return [Cost(name, None, _median(work, rounds) / _MANY) for name, work in makers.items()]


def _median(work: Callable[[], object], rounds: int) -> float:
    """Microseconds of one call; of the processor, for other programs may run."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e6 * statistics.median(times)


def _shown(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:.3g}"


if __name__ == "__main__":
    main()
