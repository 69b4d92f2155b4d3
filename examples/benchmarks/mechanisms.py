"""Microseconds of the processor per query of each mechanism, beside a plain NumPy Laplace draw.

Exact, discrete noise that is keyed by the question costs more than a floating-point draw; the table shows by how much.
All mechanisms run in each round, and each figure is the smallest over rounds: other programs can only add to it.
Run with ``python examples/benchmarks/mechanisms.py``; ``--json`` for programs, ``--quick`` for a rough look.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import shake_256
from typing import Any, NamedTuple

import numpy as np

from reusable_holdout.mechanisms import (
    AboveThreshold,
    ConditionalStream,
    DiscreteExponential,
    NumericSparse,
    Sparse,
    StandardSVT,
    TargetCharging,
    exponential_mechanism,
    exponential_top,
    laplace_mechanism,
    one_shot_top_k,
    permute_and_flip,
    report_noisy_max,
    retraversal,
)
from reusable_holdout.mechanisms.samplers.numbered import NumberedNoise
from reusable_holdout.mechanisms.sparse_vector.real_stream import YesNoStream
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, key_from_seed
from reusable_holdout.noise.discrete_laplace import GeometricNoise

_MANY = 10_000
_SINGLE = 300


class Way(NamedTuple):
    """A mechanism asked `_SINGLE` times one by one and `_MANY` times in a batch; None if it has no such call."""

    mechanism: str
    single: Callable[[], object] | None
    batch: Callable[[], object] | None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    ways = [plain(), hashing(), *noise(), *streams(), *selections()]
    costs = measured(ways, rounds=3 if options.quick else 40)
    if options.json:
        print(json.dumps(costs, indent=2))
        return
    print("| mechanism | one by one, us | batch of 10,000, us per query |\n|---|---|---|")
    for cost in costs:
        print(f"| {cost['mechanism']} | {_shown(cost['single'])} | {_shown(cost['batch'])} |")


def measured(ways: list[Way], *, rounds: int) -> list[dict[str, Any]]:
    """Measure microseconds of processor time per query of each way, the smallest over rounds."""
    least: list[dict[str, Any]] = [way._asdict() | {"single": None, "batch": None} for way in ways]
    for _ in range(rounds):
        for way, cost in zip(ways, least, strict=True):
            for name, work, queries in (("single", way.single, _SINGLE), ("batch", way.batch, _MANY)):
                if work is not None:
                    start = time.process_time()
                    work()
                    taken = 1e6 * (time.process_time() - start) / queries
                    cost[name] = taken if cost[name] is None else min(taken, cost[name])
    return least


def plain() -> Way:
    """Return NumPy's floating-point Laplace draw, the smallest possible cost."""
    rng = np.random.default_rng(0)
    return Way(
        "NumPy Laplace draw", lambda: [rng.laplace() for _ in range(_SINGLE)], lambda: rng.laplace(size=_MANY)
    )


def hashing() -> Way:
    """Return one hash for a question, the smallest possible cost of noise that is keyed by the question."""
    head, size = bytes(71), DiscreteLaplace(1_000_000).stream_bytes
    questions = [number.to_bytes(32, "big") for number in range(_MANY)]

    def chunk(asked: list[bytes]) -> bytes:
        return b"".join([shake_256(head + question).digest(size) for question in asked])

    return Way(
        "SHAKE-256 of each question, no noise",
        lambda: chunk(questions[:_SINGLE]),
        lambda: [chunk(questions[at : at + 1024]) for at in range(0, _MANY, 1024)],
    )


def noise() -> Iterator[Way]:
    """Yield exact keyed noise: a hash for each question, as in a guard, or one for 64 questions, as in a stream."""
    for name, kind, size in (("", KeyedNoise, 32), (", numbered questions", NumberedNoise, 8)):
        questions = [number.to_bytes(size, "big") for number in range(_MANY)]
        for law in (DiscreteLaplace(1_000_000), DiscreteExponential(1_000_000)):
            keyed = kind(key_from_seed(0))
            draw = partial(_draw, keyed, law)
            batch = partial(keyed.draw_many, law, label="query", questions=questions)
            yield Way(type(law).__name__ + name, _each(draw, questions[:_SINGLE]), batch)


def streams() -> Iterator[Way]:
    """Yield sparse vector mechanisms and target charging on queries far below the threshold."""
    alike: dict[str, Any] = {"charges": 10, "epsilon": 1.0, "seed": 0}
    with_delta = alike | {"delta": 1e-6}
    made: dict[str, YesNoStream | NumericSparse] = {
        "AboveThreshold": AboveThreshold(1e6, epsilon=1.0, seed=0),
        "Sparse": Sparse(1e6, **alike),
        "NumericSparse": NumericSparse(1e6, **alike),
        "StandardSVT": StandardSVT(1e6, **alike),
        "StandardSVT, exponential noise": StandardSVT(1e6, noise="exponential", **alike),
        "ConditionalStream": ConditionalStream(1e6, **with_delta),
    }
    values, below = np.zeros(_MANY), [0.0] * _SINGLE
    for name, stream in made.items():
        yield Way(name, _each(stream.ask, below), partial(stream.ask_many, values))
    held = TargetCharging(**with_delta)
    yield Way("TargetCharging.above", _each(lambda value: held.above(value, 1e6), below), None)


def selections() -> Iterator[Way]:
    """Yield noise on 10,000 scores and selections from them, per score."""
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
    for name, select in makers.items():
        yield Way(name, None, select)


def _draw(keyed: KeyedNoise, law: GeometricNoise, question: bytes) -> int:
    return keyed.draw(law, label="query", question=question)


def _each(ask: Callable[[Any], object], values: list[Any]) -> Callable[[], object]:
    """Return the work of one question for each value."""
    return lambda: [ask(value) for value in values]


def _shown(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:.3g}"


if __name__ == "__main__":
    main()
