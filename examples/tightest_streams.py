"""Find the sparse vector stream with the least noise: the tables of docs/mechanisms.md.

A reach is the distance, in sensitivities, that the noise of no comparison exceeds in all queries of a stream, except
with probability 0.05. It is computed from the noise's exact tails; nothing is sampled.

    python examples/tightest_streams.py                    # which stream wins at which budget, ten seconds
    python examples/tightest_streams.py --monotonic        # of queries that all move in one direction, as counts do
    python examples/tightest_streams.py --charges 30       # every stream at one budget
"""

from __future__ import annotations

import argparse

from reusable_holdout.mechanisms import MechanismNoise, compare_mechanisms

CHARGES = (1, 3, 10, 30, 100, 300)
QUERIES = (100, 10_000, 1_000_000)
SHORT = {
    "StandardSVT, exponential noise": "`StandardSVT`",
    "StandardSVT of one charge, restarted, exponential noise": "`Sparse`, restarted",
    "target charging": "`ConditionalStream`",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--charges", type=int, help="every stream at this many charges")
    parser.add_argument("--queries", type=int, default=10_000, help="with --charges")
    parser.add_argument("--monotonic", action="store_true")
    options = parser.parse_args()
    if options.charges is None:
        print_winners(options.epsilon, options.delta, monotonic=options.monotonic)
    else:
        rows = compared(
            options.epsilon, options.delta, options.charges, options.queries, monotonic=options.monotonic
        )
        print_all(rows)


def compared(
    epsilon: float, delta: float, charges: int, queries: int, *, monotonic: bool
) -> tuple[MechanismNoise, ...]:
    return compare_mechanisms(
        epsilon=epsilon, delta=delta, charges=charges, queries=queries, answers=False, monotonic=monotonic
    )


def print_winners(epsilon: float, delta: float, *, monotonic: bool) -> None:
    print("| charges | " + " | ".join(f"{queries:,} queries" for queries in QUERIES) + " |")
    print("|---|" + "---|" * len(QUERIES))
    for charges in CHARGES:
        cells = []
        for queries in QUERIES:
            if charges > queries:
                cells.append("")
                continue
            best, *_ = compared(epsilon, delta, charges, queries, monotonic=monotonic)
            cells.append(f"{SHORT[best.mechanism]} {best.reach:,.0f}")
        print(f"| {charges} | " + " | ".join(cells) + " |")


def print_all(rows: tuple[MechanismNoise, ...]) -> None:
    print(
        "| mechanism | threshold's noise | queries' | deviation of a comparison | reach |\n|---|---|---|---|---|"
    )
    for row in rows:
        print(
            f"| {row.mechanism} | {row.threshold:,.1f} | {row.query:,.1f} | {row.comparison_sd:,.1f} | "
            f"{row.reach:,.0f} |"
        )


if __name__ == "__main__":
    main()
