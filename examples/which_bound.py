"""Which bound is the narrowest? Half-widths of adaptively chosen means, this library's beside everybody else's.

For rows n, queries K and charges c the table has the half-width of the last query's confidence bound after c charges,
from the transcript code that the guard runs on, at the description length that a plan sets aside for each charge (a
charge that costs more makes it wider). Beside it stand, for the same rows, queries and confidence:

- fixed queries: the exact width if all queries had been written down before the first answer; an oracle's, not a rival;
- Hoeffding's: the textbook's width for the same oracle, sqrt(ln(2K/beta) / 2n), which knows nothing of the estimate;
- Bonferroni: what most people use, the normal interval at level beta/K, for questions written down beforehand, too; its
  level is only about right, and the smaller beta/K, the less;
- bootstrap: the percentile interval at level beta/K, with endless resamples; the same holds of it;
- splitting: a fresh share of the rows per query, by exact binomial bounds, and by Hoeffding's as the literature has it;
- Gaussian: every answer with Gaussian noise, the best noise and the best of four analyses;
- Jung et al. (2020) and Bassily et al. (2016): the transfer theorems, with the best noise, the exact delta of the
  Gaussian mechanism, and the best free parameters;
- rounding: a union bound over all transcripts of rounded answers.

The goal at 10 charges, three times Hoeffding's width from 1,000 queries on, is kept to 100,000 queries and missed at a
million (3.019 at an estimate of 0.5): a charge of edition 4 costs 2.12 nats, and not 2.

The others do not depend on the charges. A half-width of 0.5 is the whole range. The guard's own promise is wider than
its confidence bound, by the threshold: the column "promise" of the CSV is the tolerance of the plan, which holds for
the answers that agree with their priors too.

    python examples/which_bound.py             # about 10 s
    python examples/which_bound.py --quick
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import pandas as pd
from alternatives.gaussian_width import gaussian_width
from alternatives.hoeffding_widths import hoeffding_splitting_half_width, rounded_answers_half_width
from alternatives.sample_splitting import sample_splitting_half_width
from scipy.stats import binom, norm
from tqdm import tqdm

from reusable_holdout import Plan
from reusable_holdout.certainty import fixed_queries_half_width
from reusable_holdout.plotting import INK, pyplot

BETA = 0.05
ROWS = [10**3, 10**4, 10**5, 10**6]
QUERIES = [10, 31, 10**2, 10**3, 10**4, 10**5, 10**6]
CHARGES = [0, 1, 10, 30, 100]
ESTIMATES = [0.9, 0.5]
FEW_QUERIES = 30  # up to here nobody claims that a reusable holdout is worth it
RATIO_CHARGES, RATIO_LIMIT = 10, 3.4
HOEFFDING_QUERIES, HOEFFDING_LIMIT = 1_000, 3.0  # from so many queries on; the textbook's oracle is wider

RIVALS = ["splitting", "splitting (Hoeffding)", "Gaussian", "Jung", "Bassily", "rounding"]
ORACLES = ["fixed queries", "Bonferroni", "bootstrap"]
STYLES = {
    "fixed queries": {"color": "black", "ls": ":"},
    "bootstrap": {"color": INK["interval"], "ls": ":"},
    "splitting": {"color": INK["budget"], "ls": "-"},
    "Gaussian": {"color": INK["charge"], "ls": "-"},
    "Jung": {"color": INK["prior"], "ls": "-"},
    "Bassily": {"color": INK["prior"], "ls": "--"},
}


def others(rows: int, queries: int, estimate: float) -> dict[str, float]:
    """Half-widths that do not depend on charges; 1 where there is none."""
    bound = Plan(rows=rows, queries=queries, charges=1, estimate=estimate).scores.bound
    asked = {"rows": rows, "queries": queries, "beta": BETA}
    widths = {
        "fixed queries": fixed_queries_half_width(bound, queries=queries, beta=BETA, estimate=estimate),
        "Bonferroni": bonferroni_half_width(rows, queries, estimate),
        "bootstrap": bootstrap_half_width(rows, queries, estimate),
        "splitting": sample_splitting_half_width(bound, queries=queries, beta=BETA, estimate=estimate),
        "splitting (Hoeffding)": hoeffding_splitting_half_width(**asked),
        "Gaussian": gaussian_width(**asked).half_width,
        "Jung": gaussian_width(**asked, analysis="transfer").half_width,
        "Bassily": gaussian_width(**asked, analysis="bassily").half_width,
        "rounding": rounded_answers_half_width(**asked),
    }
    return {name: min(1.0, width) for name, width in widths.items()}


def bonferroni_half_width(rows: int, queries: int, estimate: float) -> float:
    """Normal interval of one of so many fixed questions."""
    return float(norm.isf(BETA / (2.0 * queries))) * math.sqrt(estimate * (1.0 - estimate) / rows)


def bootstrap_half_width(rows: int, queries: int, estimate: float) -> float:
    """Percentile interval of one of so many fixed questions: resampled 0/1 rows are binomial."""
    tail = BETA / (2.0 * queries)
    resampled = binom(rows, estimate)
    return float(resampled.isf(tail) - resampled.ppf(tail)) / (2.0 * rows)


def cells(rows: list[int], queries: list[int], charges: list[int]) -> pd.DataFrame:
    """One line per cell: rows, queries, charges, estimate, all half-widths."""
    found: list[dict[str, float]] = []
    sizes = [(estimate, n, k) for estimate in ESTIMATES for n in rows for k in queries]
    for estimate, n, k in tqdm(sizes, leave=False, disable=None):
        rivals = others(n, k, estimate)
        for c in (each for each in charges if each < k):
            # the guard stops at charge c + 1, so that c is the dearest state in which it still answers
            plan = Plan(rows=n, queries=k, charges=c + 1, confidence=1.0 - BETA, estimate=estimate)
            ours = plan.half_width(query=k, charges=c)
            where = {"estimate": estimate, "rows": n, "queries": k, "charges": c}
            hoeffding = math.sqrt(math.log(2.0 * k / BETA) / (2.0 * n))
            promise = min(1.0, plan.tolerance)
            found.append({**where, "ours": ours, "promise": promise, "Hoeffding's": hoeffding, **rivals})
    table = pd.DataFrame(found)
    table["narrowest rival"] = table[RIVALS].idxmin(axis=1)
    table["narrowest"] = table["ours"] < table[RIVALS].min(axis=1)
    table["promise narrowest"] = table["promise"] < table[RIVALS].min(axis=1)
    table["ratio to fixed"] = table["ours"] / table["fixed queries"]
    table["ratio to Hoeffding's"] = table["ours"] / table["Hoeffding's"]
    return table


def show(table: pd.DataFrame) -> None:
    """Print a table per estimate, charges side by side."""
    for estimate, part in table.groupby("estimate", sort=False):
        wide = part.pivot_table(index=["rows", "queries"], columns="charges", values="ours")
        wide.columns = [f"c={c}" for c in wide.columns]
        rest = part.groupby(["rows", "queries"])[[*ORACLES, *RIVALS]].first()
        print(
            f"\nhalf-widths at an estimate of {estimate}; ours by charges c, then the oracles and the rivals"
        )
        text = wide.join(rest).rename(columns={"splitting (Hoeffding)": "(Hoeffding)"})
        print(text.to_string(float_format=lambda width: f"{width:.4f}", na_rep="-"))


def verdict(table: pd.DataFrame) -> None:
    """Say where ours is the narrowest, and how far it is from the oracle."""
    many = table[table["queries"] > FEW_QUERIES]
    for name, column in (("the confidence bound", "narrowest"), ("the promise", "promise narrowest")):
        everywhere = f"narrower in every cell with more than {FEW_QUERIES} queries: "
        everywhere += "yes" if many[column].all() else "NO"
        print(f"\n{name}: narrowest in {table[column].sum()} of {len(table)} cells; {everywhere}")
        lost = table[~table[column]]
        if len(lost):
            print("not in:")
            width = "ours" if column == "narrowest" else "promise"
            best = lost.assign(rival=lost[RIVALS].min(axis=1))
            shown = best[["estimate", "rows", "queries", "charges", width, "narrowest rival", "rival"]]
            print(shown.to_string(index=False, float_format=lambda number: f"{number:.4g}"))
    at = table[table["charges"] == RATIO_CHARGES]
    ratio_verdict(at, "fixed", "exact", RATIO_LIMIT)
    long = at[at["queries"] >= HOEFFDING_QUERIES]
    if len(long):
        ratio_verdict(
            long, "Hoeffding's", f"Hoeffding's (from {HOEFFDING_QUERIES:,} queries on)", HOEFFDING_LIMIT
        )


def ratio_verdict(table: pd.DataFrame, name: str, oracle: str, limit: float) -> None:
    """Say how far ours is at most from an oracle's width."""
    column = f"ratio to {name}"
    worst = table.loc[table[column].idxmax()]
    print(
        f"\nlargest ratio to the fixed-query oracle at {RATIO_CHARGES} charges, {oracle}: {worst[column]:.3f}, at "
        f"{worst['rows']:,.0f} rows, {worst['queries']:,.0f} queries and an estimate of {worst['estimate']} "
        f"({'within' if worst[column] <= limit else 'ABOVE'} {limit})"
    )


def in_use_verdict(table: pd.DataFrame) -> None:
    """Say how far ours is from what is used for fixed questions, and that from the exact oracle."""
    print()
    for charges in (0, RATIO_CHARGES):
        at = table[table["charges"] == charges]
        ratio = at["ours"] / at["bootstrap"]
        print(f"ratio to the bootstrap at {charges} charges: {ratio.min():.3f} to {ratio.max():.3f}")
    for name in ("Bonferroni", "bootstrap"):
        ratio = table[name] / table["fixed queries"]
        print(f"{name} beside the fixed-query oracle: {ratio.min():.3f} to {ratio.max():.3f}")


def picture(table: pd.DataFrame, path: Path) -> None:
    """Draw half-width against queries: one panel per estimate and number of rows."""
    rows, estimates = sorted(table["rows"].unique()), list(table["estimate"].unique())
    figure, axes = pyplot().subplots(
        len(estimates),
        len(rows),
        figsize=(4.2 * len(rows), 7.5),
        squeeze=False,
        sharex=True,
        layout="constrained",
    )
    for line, estimate in zip(axes, estimates, strict=True):
        for ax, n in zip(line, rows, strict=True):
            part = table[(table["rows"] == n) & (table["estimate"] == estimate)]
            shown = [c for c in (0, 10, 100) if (part["charges"] == c).any()]
            for c, strength in zip(shown, (0.45, 0.7, 1.0), strict=False):
                ours = part[part["charges"] == c]
                line_of_ours = {"ms": 4, "color": INK["answer"], "alpha": strength}
                ax.plot(ours["queries"], ours["ours"], "o-", label=f"ours, {c} charges", **line_of_ours)
            rest = part.groupby("queries").first()
            for name, style in STYLES.items():
                seen = rest[name][rest[name] < 1.0]
                ax.plot(seen.index, seen, label=name, **style)
            ax.set(xscale="log", yscale="log", title=f"{n:,} rows, estimate {estimate}", ylim=(None, 1.0))
            ax.grid(alpha=0.2)
        line[0].set_ylabel("half-width")
    for ax in axes[-1]:
        ax.set_xlabel("queries")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110)
    pyplot().close(figure)


def main(argv: list[str] | None = None) -> None:
    """Print the table and what it shows; write it, and a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few cells only")
    parser.add_argument(
        "--output", type=Path, default=Path("which_bound"), help="folder for table and picture"
    )
    options = parser.parse_args(argv)
    quick = (ROWS[:2], QUERIES[:4], [0, RATIO_CHARGES])
    table = cells(*(quick if options.quick else (ROWS, QUERIES, CHARGES)))
    show(table)
    verdict(table)
    in_use_verdict(table)
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "which_bound.csv", index=False, float_format="%.6g")
    picture(table, options.output / "which_bound.png")
    print(f"\nwrote {options.output / 'which_bound.csv'} and {options.output / 'which_bound.png'}")


if __name__ == "__main__":
    main()
