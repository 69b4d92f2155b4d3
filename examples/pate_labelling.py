"""Label public data by the votes of private teachers, in three ways that pay for few of the labels.

PATE: private rows are dealt to many teachers, each fits a model on its own rows, and the teachers vote on public rows.
One private row changes one vote. Labels are drawn by the exponential mechanism over the votes, query by query, until
the charges are spent; the declared epsilon is that of all labels together. Cohen and Lyu (2023), section 2.7.1, charge

    (i)    "boundary", the outcome of the boundary wrapper if no label dominates: agreement is free;
    (ii)   the same with the outcome "low" if no label has enough votes: "low" is free, too;
    (iii)  a label that was not predicted by a student of the labels so far.

They are compared with plain labels of all queries, which have more noise in each call at the same epsilon, and with
the cost of a way's calls by the best composition. This is the composition of bounded range: a draw of the exponential
mechanism costs about half as much as a pure release of its epsilon. If the calls of a way cost less by composition than
declared, target charging gains nothing. A way leaves the hard queries out, so its labels are compared with the plain
labels of the same queries. A student is fitted from the labels of each way, and tested on other rows.

    python examples/pate_labelling.py                      # about two minutes
    python examples/pate_labelling.py --data digits        # too few rows: weak agreement, little saving
    python examples/pate_labelling.py --data strange       # drawn: every second query belongs to no class

The draws are exact. Votes are integers, and the mechanism's weights are powers of one rational number, exp(-epsilon/2)
rounded up at the 64th binary digit: they are the exact weights of a marginally smaller epsilon.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from teachers.voting import SETTINGS, Votes, predictions, vote
from teachers.ways import DELTA, LOW, Run, by_agreement, by_agreement_or_low, by_student, plainly

from reusable_holdout.mechanisms.accounting import bounded_range_composition
from reusable_holdout.plotting import INK, pyplot

STYLES = {"(i)": "-", "(ii)": "--", "(iii)": ":"}


def plain_epsilon(epsilon: float, calls: int) -> float:
    """Compute the epsilon of draws of the exponential mechanism, by the composition of bounded range."""
    return min(calls * epsilon, bounded_range_composition(epsilon=epsilon, count=calls, delta=DELTA))


def ways(
    name: str, votes: Votes, *, epsilon: float, charges: int, seeds: list[int | None]
) -> dict[str, list[Run]]:
    """Run all ways at one budget, each once for each seed."""
    counts = votes.counts

    def budget(seed: int | None) -> dict[str, float | int | None]:
        return {"epsilon": epsilon, "charges": charges, "seed": seed}

    threshold = SETTINGS[name].threshold
    return {
        "(i)": [by_agreement(counts, **budget(seed)) for seed in seeds],
        "(ii)": [by_agreement_or_low(counts, threshold=threshold, **budget(seed)) for seed in seeds],
        "(iii)": [by_student(counts, votes.features, **budget(seed)) for seed in seeds],
        "plain": [plainly(counts, epsilon=epsilon, seed=seed) for seed in seeds],
    }


def measured(run: Run, votes: Votes, plain: Run) -> dict[str, float]:
    """Count the answers of one run, and measure the accuracy of its labels and of a student of them."""
    asked = len(run.labels)
    labelled = run.labels >= 0
    truth = votes.truth[:asked][labelled]
    student = predictions(votes.features[:asked][labelled], run.labels[labelled], votes.tests)
    right = run.labels[labelled] == truth
    return {
        "asked": asked,
        "labelled": int(labelled.sum()),
        "low": int((run.labels == LOW).sum()),
        "charged": run.charged,
        "accuracy": float(right.mean()) if len(right) else float("nan"),
        "plain's": float((plain.labels[:asked][labelled] == truth).mean()) if len(right) else float("nan"),
        "student": float((student == votes.test_truth).mean()),
        "plainly": plain_epsilon(run.epsilon_inside, asked),
    }


def report(
    name: str, votes: Votes, seeds: list[int | None]
) -> tuple[list[dict[str, object]], list[dict[str, list[Run]]]]:
    """Make one row of the table for each budget and way: means over the runs, and the counts of outcomes."""
    rows, released = [], []
    for epsilon, charges in SETTINGS[name].budgets:
        found = ways(name, votes, epsilon=epsilon, charges=charges, seeds=seeds)
        for way, runs in found.items():
            pairs = zip(runs, found["plain"], strict=True)
            means = pd.DataFrame([measured(run, votes, plain) for run, plain in pairs]).mean()
            whole = {key: f"{means[key]:.0f}" for key in ("asked", "labelled", "low")}
            charged = "" if way == "plain" else f"{means['charged']:.0f} of {charges}"
            shares = {key: f"{means[key]:.3f}" for key in ("accuracy", "plain's", "student")}
            rows.append(
                {"data": name, "epsilon": epsilon, "way": way, **whole, "charged": charged, **shares}
                | {"by composition": f"{means['plainly']:.1f}"}
            )
        released.append(found)
    return rows, released


def picture(released: dict[str, list[dict[str, list[Run]]]], path: Path) -> None:
    """Draw the cost of each way's calls by plain composition against the declared epsilon, at the last budget."""
    figure, axes = pyplot().subplots(
        1, len(released), figsize=(5.5 * len(released), 4), squeeze=False, layout="constrained"
    )
    for ax, (name, budgets) in zip(axes[0], released.items(), strict=True):
        epsilon, charges = SETTINGS[name].budgets[-1]
        longest = max(len(budgets[-1][way][0].labels) for way in STYLES)
        for way, style in STYLES.items():
            run = budgets[-1][way][0]
            calls = np.unique(np.linspace(1, len(run.labels), 12).astype(int))
            plain = [plain_epsilon(run.epsilon_inside, int(count)) for count in calls]
            ax.plot(calls, plain, style, color=INK["charge"], label=f"{way} by plain composition")
        ax.plot([1, longest], [epsilon] * 2, color=INK["answer"], label="declared, by target charging")
        ax.set(
            title=f"{name}, {charges} charges",
            xlabel="queries asked",
            ylabel=f"epsilon at delta = {DELTA:g}",
            yscale="log",
        )
        ax.grid(alpha=0.2)
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def main(argv: list[str] | None = None) -> None:
    """Label the public part of real data sets, and print the cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=[*SETTINGS, "all"], default="all")
    parser.add_argument("--split-seed", type=int, default=0, help="seed of the public rows (default 0)")
    parser.add_argument("--seed", type=int, help="for reproducible labels, which are not private")
    parser.add_argument("--runs", type=int, default=1, help="runs whose means are printed (default 1)")
    parser.add_argument("--out", type=Path, default=Path("pate_labelling.png"))
    options = parser.parse_args(argv)
    seeds = [None if options.seed is None else options.seed + 1000 * run for run in range(options.runs)]
    rows: list[dict[str, object]] = []
    released: dict[str, list[dict[str, list[Run]]]] = {}
    for name in SETTINGS if options.data == "all" else [options.data]:
        votes = vote(name, seed=options.split_seed)
        unprotected = float((votes.counts.argmax(axis=1) == votes.truth).mean())
        commonest = float(np.bincount(votes.truth).max() / len(votes.truth))
        print(
            f"{name}: {SETTINGS[name].teachers} teachers, {len(votes.truth):,} queries; accuracy of the unprotected "
            f"plurality {unprotected:.3f}, of always the commonest class {commonest:.3f}; low: below "
            f"{SETTINGS[name].threshold} votes"
        )
        found, released[name] = report(name, votes, seeds)
        rows += found
    print(f"\nall labels of a way together are (epsilon, {DELTA:g})-differentially private")
    print(pd.DataFrame(rows).to_string(index=False))
    print('\n"by composition" is what as many calls of the same exponential mechanism cost by the best one;')
    print(
        '"accuracy" is that of the labels, "plain\'s" of plain labels of the same queries, "student" of a model'
    )
    print("fitted to a way's labels, on other rows.")
    picture(released, options.out)
    print(f"\nwrote {options.out}")


if __name__ == "__main__":
    main()
