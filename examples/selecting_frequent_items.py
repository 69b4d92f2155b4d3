"""The experiments of Lyu, Su and Li (2017) on frequent items, with this library's mechanisms.

The c items with the largest counts are selected at epsilon = 0.1, by versions of the sparse vector technique and by the
exponential mechanism. Counts are monotonic of sensitivity 1; the threshold is the average of the c-th and the
(c+1)-th largest count; the items come in a new random order in each run. Error rates: SER, one less the average count
of the selected items in units of the average of the top c, and FNR, the fraction of the top c that is missed. The
paper's methods have delta 0; they are compared with the exponential mechanism with a delta of 1e-6.

    python examples/selecting_frequent_items.py                    # 100 runs; a few minutes on two cores
    python examples/selecting_frequent_items.py --quick
    python examples/selecting_frequent_items.py --counts my_counts.txt.gz    # one count a line

Data: Zipf's law, and pairs of values in UCI Adult, which ships with the library. The paper's other data (BMS-POS,
Kosarak, AOL) have no licence to ship; --counts reads them.

Retraversal with a high threshold takes thousands of passes. Its selections are drawn from their law without making the
passes; --every-pass makes them, with `reusable_holdout.mechanisms.sparse_vector.retraverse`, and takes hours.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pandas as pd
from frequent_items.claims import FINEST, OVERALL, WORST, Finding, findings
from frequent_items.experiment import experiment, summary
from frequent_items.item_counts import BUILT_IN, from_file
from frequent_items.picture import picture

SIZES = tuple(range(25, 301, 25))
PRINTED = (25, 50, 75, 100, 150, 200, 300)
RATES = {"ser": "score error rate", "fnr": "false negative rate"}


def main() -> None:
    """Run the experiments, print the tables and findings, and write table and figures."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    started, tables = time.perf_counter(), []
    for items in [*(BUILT_IN[name]() for name in options.data), *map(from_file, options.counts)]:
        start = time.perf_counter()
        runs = experiment(
            items,
            sizes=options.sizes,
            runs=options.runs,
            seed=options.seed,
            jobs=options.jobs,
            passes=options.every_pass,
        )
        table = summary(runs)
        tables.append(table)
        print(f"\n{items.title}: {options.runs} runs, {time.perf_counter() - start:.1f} s")
        for rate in RATES:
            _print_rates(table, rate)
        _print_findings(findings(runs))
        picture(table, title=items.title, runs=options.runs, path=options.output / f"{items.name}.png")
    pd.concat(tables).to_csv(options.output / "rates.csv", index=False, float_format="%.6f")
    print(
        f"\n{time.perf_counter() - started:.1f} s in all; rates.csv and the figures are in {options.output}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", choices=list(BUILT_IN), help="built-in data (default: all)")
    parser.add_argument("--counts", nargs="+", type=Path, default=[], help="files of counts, one a line")
    parser.add_argument("--runs", type=int, help="default 100, quick 10")
    parser.add_argument("--quick", action="store_true", help="10 runs, c in 25, 100, 200, Zipf only")
    parser.add_argument("--every-pass", action="store_true", help="retraversal pass by pass: hours")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("frequent_items"), help="folder to write to")
    options = parser.parse_args()
    options.sizes = (25, 100, 200) if options.quick else SIZES
    options.runs = options.runs or (10 if options.quick else 100)
    if options.runs < 2:
        parser.error("a standard deviation needs at least 2 runs")
    if options.data is None:
        options.data = ["zipf"] if options.quick else list(BUILT_IN)
    return options


def _print_rates(table: pd.DataFrame, rate: str) -> None:
    shown = table[table["c"].isin(PRINTED)].copy()
    shown["cell"] = [
        f"{mean:.3f} ±{std:.3f}"
        for mean, std in zip(shown[f"{rate}_mean"], shown[f"{rate}_std"], strict=True)
    ]
    cells = shown.pivot_table(index="method", columns="c", values="cell", aggfunc="first", sort=False)
    print(f"\n{RATES[rate]}, mean ± standard deviation")
    print(cells.rename_axis(index=None).to_string())


def _print_findings(found: list[Finding]) -> None:
    print(
        "\nthe paper says; difference of the closest pair, averaged over c, ± standard error; c at which it is so"
    )
    for finding in found:
        worse, better = finding.pair
        print(
            f"  {finding.rate:<6} {finding.verdict:<9} {finding.claim.text}: {worse} less {better} "
            f"{finding.difference:+.4f} ±{finding.standard_error:.4f}; {finding.sizes}"
        )
    for rate, name in RATES.items():
        verdicts = {finding.claim: finding.verdict for finding in found if finding.rate == rate}
        order = [verdicts[claim] for claim in (WORST, FINEST, OVERALL)]
        seen = "is seen" if all(verdict == "holds" for verdict in order) else "is not fully seen"
        print(
            f"by {name} the paper's order {seen}: SVT-DPBook worst {order[0]}, "
            f"1:c^(2/3) best interactive {order[1]}, EM best {order[2]}"
        )


if __name__ == "__main__":
    main()
