"""Which items are most frequent? This library's selections beside OpenDP's noisy top-k, at one guarantee.

c items with the largest counts are to be found; counts are monotonic of sensitivity 1. The figure is the false negative
rate, the fraction of the c largest that is missed: mean over runs and its standard error. OpenDP's measurement adds
noise to all counts and peels; its scale is the smallest at which its own privacy map, converted by its own means, keeps
the guarantee: rounds of the exponential mechanism by zero-concentrated divergence where delta is above 0, rounds of
permute-and-flip where it is 0. This library has both, so that the noises' standard deviations compare without chance.

    pip install opendp
    python examples/benchmarks/selection_peers.py    # Zipf's law, and pairs of values in Adult: an hour, OpenDP's
    python examples/benchmarks/selection_peers.py --sizes 50 100 --runs 20 --ways
    python examples/benchmarks/selection_peers.py --counts t10i4d100k_counts.txt.gz            # one count a line
    python examples/benchmarks/selection_peers.py --without-peers      # where OpenDP is not installed

Counts of T10I4D100K (http://fimi.uantwerpen.be/data/) have no licence that lets them ship; --counts takes them.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from reusable_holdout.mechanisms import compare_selections, select_top

sys.path.append(str(Path(__file__).parent.parent))

from collections.abc import Callable

from frequent_items.error_rates import false_negative_rate
from frequent_items.item_counts import BUILT_IN, ItemCounts, from_file
from numpy.typing import NDArray

Select = Callable[[NDArray[np.float64], int], NDArray[np.int64]]

SIZES = (10, 25, 50, 100, 200, 300)
WAYS = ("exponential_top", "permute_and_flip_top", "noisy_top_k_gaps", "one_shot_top_k")
PEER = "OpenDP make_noisy_top_k"
GUMBEL = np.pi / np.sqrt(6)  # standard deviation at scale 1; that of exponential noise is 1
_SURE = 3  # standard errors of a difference


class Rate(NamedTuple):
    """The false negative rate of one way on one data set: mean over runs, standard error, and the noise."""

    data: str
    c: int
    way: str
    mean: float
    error: float
    sd: float


def main() -> None:
    """Run, and print a table for each data set as soon as it is measured."""
    options = _options()
    peer = None if options.without_peers else opendp()
    if not options.json:
        print(f"false negative rate +- standard error, epsilon {options.epsilon:g}, delta {options.delta:g}, "
              f"{options.runs} runs")  # fmt: skip
    rates: list[Rate] = []
    for items in [*(BUILT_IN[name]() for name in options.data), *map(from_file, options.counts)]:
        found = of_items(items, peer, options)
        rates.extend(found)
        if not options.json:
            _print_rates(items.title, found)
    if options.json:
        print(json.dumps([rate._asdict() for rate in rates], indent=2))
    elif peer is not None:
        _print_verdict(pd.DataFrame(rates))


def of_items(items: ItemCounts, peer: Any, options: argparse.Namespace) -> list[Rate]:
    """Measure the rates of every way on one data set."""
    rates = []
    for c in (size for size in options.sizes if size < len(items.counts)):
        ways = {
            name: (partial(ours, c=c, name=name, options=options), sd)
            for name, sd in deviations(c, len(items.counts), options).items()
        }
        if peer is not None:
            ways[PEER] = opendp_top(peer, c, epsilon=options.epsilon, delta=options.delta)
        rates.extend(measured(items, c, way, *ways[way], runs=options.runs) for way in ways)
    return rates


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", choices=list(BUILT_IN), default=list(BUILT_IN))
    parser.add_argument("--counts", nargs="+", type=Path, default=[], help="files of counts, one a line")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="numbers of items to select")
    parser.add_argument(
        "--ways", nargs="*", choices=WAYS, default=WAYS, help="of this library, beside the tightest"
    )
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--without-peers", action="store_true", help="this library alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error("a standard error needs at least 2 runs")
    return options


def deviations(c: int, candidates: int, options: argparse.Namespace) -> dict[str, float]:
    """Return the standard deviation of the noise of each way of this library that is compared."""
    rows = compare_selections(
        epsilon=options.epsilon, delta=options.delta, count=c, candidates=candidates, monotonic=True
    )
    found = {row.selection: row.sd for row in rows}
    return {"tightest": rows[0].sd, **{name: found[name] for name in options.ways}}


def measured(items: ItemCounts, c: int, way: str, select: Select, sd: float, *, runs: int) -> Rate:
    """Measure the rates of one way over runs."""
    top = items.counts[:c]
    found = [false_negative_rate(items.counts[select(items.counts, seed)], top) for seed in range(runs)]
    return Rate(items.title, c, way, float(np.mean(found)), float(np.std(found, ddof=1) / runs**0.5), sd)


def ours(
    counts: NDArray[np.float64], seed: int, *, c: int, name: Any, options: argparse.Namespace
) -> NDArray[np.int64]:
    """Select by one of this library's ways."""
    return select_top(
        counts, c, epsilon=options.epsilon, delta=options.delta, monotonic=True, mechanism=name, seed=seed
    )


def opendp() -> Any:
    """Return OpenDP's Python module, or exit with a message on the missing package."""
    try:
        import opendp.prelude as dp  # noqa: PLC0415 - it is asked for here alone
    except ImportError:
        raise SystemExit("this compares with OpenDP, which is not installed; run pip install opendp, or "
                         "add --without-peers") from None  # fmt: skip
    dp.enable_features("contrib")
    return dp


def opendp_top(dp: Any, c: int, *, epsilon: float, delta: float) -> tuple[Select, float]:
    """Select by OpenDP's noisy top-k at the smallest scale that keeps the guarantee, by its own privacy map."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float, monotonic=True)
    measure = dp.zero_concentrated_divergence() if delta else dp.max_divergence()

    def at(scale: float) -> Any:
        return dp.m.make_noisy_top_k(*space, measure, k=c, scale=scale)

    def kept(scale: float) -> bool:
        if not delta:
            return bool(at(scale).map(1.0) <= epsilon)
        return bool(dp.c.make_zCDP_to_approxDP(at(scale)).map(1.0).epsilon(delta) <= epsilon)

    least = (c / 8) ** 0.5 / (1 + epsilon)  # (1 + epsilon)**2-zCDP, which is not private enough
    scale = float(dp.binary_search(kept, bounds=(least, 1e9)))
    measurement = at(scale)
    return lambda counts, _: np.array(measurement(counts.tolist()), dtype=np.int64), scale * (
        GUMBEL if delta else 1.0
    )


def _print_rates(title: str, rates: list[Rate]) -> None:
    table = pd.DataFrame(rates)
    table["cell"] = [f"{rate.mean:.3f} +-{rate.error:.3f}" for rate in rates]
    cells = table.pivot_table(index="way", columns="c", values="cell", aggfunc="first", sort=False)
    print(f"\n{title}\n{cells.rename_axis(index=None).to_string()}", flush=True)


def _print_verdict(table: pd.DataFrame) -> None:
    """Print the cases where one has a lower rate by three standard errors, and the smaller noise."""
    mean, error, sd = (
        table.pivot_table(index=["data", "c"], columns="way", values=value, sort=False)[["tightest", PEER]]
        for value in ("mean", "error", "sd")
    )
    ahead = (mean[PEER] - mean["tightest"]) / np.hypot(error["tightest"], error[PEER]).replace(0.0, np.inf)
    print(f"\nselect_top beside {PEER}, at {len(mean)} places: misses fewer at {(ahead > _SURE).sum()}, "
          f"more at {(ahead < -_SURE).sum()}, by {_SURE} standard errors")  # fmt: skip
    ratios = (sd["tightest"] / sd[PEER]).groupby("c").mean()
    print("its noise over OpenDP's: " + ", ".join(f"c = {c}: {ratio:.3f}" for c, ratio in ratios.items()))


if __name__ == "__main__":
    main()
