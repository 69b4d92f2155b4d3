"""An honest search and one that overfits, judged in ten ways on three real sets: what is told, and what is true.

Two analysts work with the same 100 candidate models on each random split of a set into training rows, a holdout and
fresh rows that nobody has seen.

honest
    Asks how good each candidate is, and takes the best by what is told.
overfitting
    Takes the best by cross-validation, divides the rows into 100 cells, and asks for each cell, one after the other,
    whether one of the five next best models would do better there; she keeps what is told to be better. On a plain
    holdout that is 501 questions of which each is reasonable.

`searches/judges.py` has the ways to ask: cross-validation alone, or with one look at the holdout at the end; a plain
holdout, with the interval of one look; the same with Bonferroni's over all questions; sample splitting; a tenth of the
holdout set aside for a last look; the best of all candidates by the holdout, with Bonferroni's interval; and the guard:
a check of each question with the analyst's own estimate, which is free as long as the holdout agrees, and one final of
the best; or one final of all candidates, without checks, by a default guard or by one that is made for it.

The table has, for the rule that each analyst ends with: what is told less the fresh rows' score, and its size; the
interval's half-width; in how many splits it contains the fresh score, and holds; in how many all intervals that were
told hold, also those of rules that were dropped; what the rule loses on the fresh rows against the best candidate
there, with its standard error; the questions answered, and the charges. The fresh rows have an error of their own: an
interval is said not to hold only where it lies apart from the fresh score's own exact interval, at a level of 0.01 for
all questions of a split together. So few fresh rows convict nobody: there look at what contains the fresh score.

Where the guard is not worth it:

- A search that cross-validation decides as well as the holdout needs one look at the end, whose interval is the
  narrowest there is: the guard's final is 1.1 times as wide, and wider the more candidates it is asked about.
- Who wants no interval before the end, and can bear one that is two to three times as wide, can set a tenth of the
  holdout aside: the choice by the rest is as good.
- On a few hundred rows (breast cancer) its interval is so wide that it says little; so is every other that is valid.
- Checks of many candidates of all kinds, some much worse than the estimate, make charges (digits) that the final pays
  for; a final of all candidates does without.

    python examples/honest_search.py             # about ten minutes on one core, most of it fits
    python examples/honest_search.py --quick
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from searches.candidates import Fitted, Rows, Split, fit, load, propose, split
from searches.judges import JUDGES, BudgetSpent, Judge, Told, exact_interval
from tqdm import tqdm

from reusable_holdout.plotting import INK, pyplot

DOUBT = 0.01  # of the fresh rows' own intervals, for all questions of a split together


class Case(NamedTuple):
    """A set, and how it is split."""

    name: str
    train: int
    holdout: int
    estimate: float  # that models are known to reach


CASES = [
    Case("adult", 2_000, 5_000, 0.85),
    Case("digits", 400, 700, 0.95),
    Case("breast cancer", 120, 220, 0.95),
]


class Sizes(NamedTuple):
    """How much is searched."""

    splits: int
    candidates: int
    best: int  # of them are compared at the end
    side: int  # of the grid of cells
    rivals: int


FULL, QUICK = Sizes(20, 100, 33, 10, 5), Sizes(1, 20, 7, 4, 3)
CHECKPOINTS = 8


class Found(NamedTuple):
    """What one analyst ended with."""

    asked: int
    answered: int
    judge: Judge
    last: Told


class Work(NamedTuple):
    """One split: rows and candidates."""

    case: Case
    rows: Rows
    parts: Split
    fitted: Fitted
    sizes: Sizes
    seed: int

    def judge(self, kind: type[Judge], *, questions: int, best: int) -> Judge:
        """Someone to ask."""
        return kind(self.rows.y, self.parts, questions=questions, best=best, estimate=self.case.estimate)


def honest(work: Work, kind: type[Judge]) -> Found:
    """Ask about every candidate, the best by cross-validation first, and take the best."""
    rules = list(work.fitted.predictions[np.argsort(-work.fitted.means, kind="stable")])
    judge = work.judge(kind, questions=len(rules), best=work.sizes.best)
    values: list[float] = []
    with contextlib.suppress(BudgetSpent):
        values.extend(map(judge.ask, rules))
    return Found(len(rules), len(values), judge, judge.settle(rules[: len(values)], values))


def overfitting(work: Work, kind: type[Judge]) -> Found:
    """Ask which model is best in every cell, and put the best together."""
    order, sizes = np.argsort(-work.fitted.means, kind="stable"), work.sizes
    rivals = work.fitted.predictions[order[1 : sizes.rivals + 1]]
    rule = work.fitted.predictions[order[0]]
    questions = 1 + sizes.side**2 * len(rivals)
    judge = work.judge(kind, questions=questions, best=CHECKPOINTS)
    answered, places = 0, cells(work.rows.X, sizes.side, work.seed)
    kept: list[tuple[NDArray[np.int8], float]] = []
    try:
        kept.append((rule, judge.ask(rule)))
        answered = 1
        for cell in range(sizes.side**2):
            for rival in rivals:
                tried = np.where(places == cell, rival, rule)
                value = judge.ask(tried)
                answered += 1
                if value > judge.believed(rule, kept[-1][1]):
                    rule = tried
                    kept.append((rule, value))
    except BudgetSpent:
        pass
    spread = sorted({round(place) for place in np.linspace(0, len(kept) - 1, CHECKPOINTS)})
    rules = [kept[place][0] for place in spread]
    believed = [judge.believed(*kept[place]) for place in spread]
    return Found(questions, answered, judge, judge.settle(rules, believed))


def cells(X: NDArray[np.float64], side: int, seed: int) -> NDArray[np.int64]:
    """Cell of every row: by its place along two random directions of the features."""
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    along = scaled @ np.random.default_rng(seed).standard_normal((X.shape[1], 2))
    ranks = along.argsort(axis=0).argsort(axis=0) * side // len(X)
    return np.asarray(ranks[:, 0] * side + ranks[:, 1], dtype=np.int64)


ANALYSTS: dict[str, Callable[[Work, type[Judge]], Found]] = {"honest": honest, "overfitting": overfitting}


def line(work: Work, analyst: str, kind: type[Judge]) -> dict[str, Any]:
    """What came of one analyst who asked one judge."""
    found = ANALYSTS[analyst](work, kind)
    fresh, labels = work.parts.fresh, work.rows.y[work.parts.fresh]
    told = [one for one in [*found.judge.told, found.last] if not np.isnan(one.low)]

    def holds(one: Told) -> bool:
        right = int(np.count_nonzero(one.rule[fresh] == labels))
        low, high = exact_interval(right, len(fresh), DOUBT / len(told))
        return one.low <= high and low <= one.high

    best = (work.fitted.predictions[:, fresh] == labels).mean(axis=1).max()
    score = float(np.mean(found.last.rule[fresh] == labels))
    return {
        "set": work.case.name,
        "analyst": analyst,
        "judge": kind.name,
        "told": found.last.value,
        "fresh": score,
        "half-width": (found.last.high - found.last.low) / 2.0,
        "contains": found.last.low <= score <= found.last.high,
        "holds": holds(found.last),
        "all hold": all(map(holds, told)),
        "regret": best - score,
        "asked": found.asked,
        "answered": found.answered,
        "charges": found.judge.charges_made,
    }


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits."""
    lines = lines.assign(off=lines["told"] - lines["fresh"], size=(lines["told"] - lines["fresh"]).abs())
    grouped = lines.groupby(["set", "analyst", "judge"], sort=False)
    table = grouped[
        ["off", "size", "half-width", "contains", "holds", "all hold", "regret", "answered", "charges"]
    ].mean()
    table.insert(7, "+-", grouped["regret"].sem())
    return table.rename(columns={"off": "told - fresh", "size": "|told - fresh|"})


def measure(case: Case, sizes: Sizes, jobs: int) -> list[dict[str, Any]]:
    """All splits of a set."""
    rows, lines = load(case.name), []
    for seed in tqdm(range(sizes.splits), desc=case.name, leave=False, disable=None):
        parts = split(rows, train=case.train, holdout=case.holdout, seed=seed)
        models = propose(sizes.candidates, few_rows=case.train < 1_000, seed=seed)
        work = Work(case, rows, parts, fit(rows, parts, models, jobs=jobs), sizes, seed)
        lines += [
            {"split": seed, "fresh rows": len(parts.fresh)} | line(work, analyst, kind)
            for analyst in ANALYSTS
            for kind in JUDGES
        ]
    return lines


def picture(table: pd.DataFrame, path: Path) -> None:
    """Draw what is told less the fresh score, and the interval, of both analysts on each set."""
    sets = table.index.get_level_values("set").unique()
    figure, axes = pyplot().subplots(
        1, len(sets), figsize=(5 * len(sets), 4.5), sharey=True, squeeze=False, layout="constrained"
    )
    for ax, name in zip(axes[0], sets, strict=True):
        for shift, (analyst, colour) in zip(
            (0.15, -0.15), {"honest": INK["answer"], "overfitting": INK["charge"]}.items(), strict=True
        ):
            part = table.loc[(name, analyst)]
            places = np.arange(len(part))[::-1] + shift
            ax.errorbar(
                part["told - fresh"],
                places,
                xerr=part["half-width"],
                fmt="o",
                ms=4,
                color=colour,
                label=analyst,
            )
        ax.axvline(0.0, color="black", lw=0.8)
        ax.set_yticks(np.arange(len(part))[::-1], part.index)
        ax.set(title=name, xlabel="told less fresh, and the interval")
        ax.grid(alpha=0.2)
    axes[0][0].legend(fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def main(argv: list[str] | None = None) -> None:
    """Search, judge, print a table for each set; write them, and a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one split, 20 candidates, 49 questions")
    parser.add_argument("--sets", nargs="+", choices=[case.name for case in CASES], help="by default all")
    parser.add_argument("--jobs", type=int, default=2, help="processes, for fits")
    parser.add_argument("--output", type=Path, default=Path("honest_search"), help="folder for the tables")
    options = parser.parse_args(argv)
    sizes = QUICK if options.quick else FULL
    chosen = [case for case in CASES if options.sets is None or case.name in options.sets]
    lines = pd.DataFrame([one for case in chosen for one in measure(case, sizes, options.jobs)])
    table = summary(lines)
    for case in chosen:
        fresh = lines.loc[lines["set"] == case.name, "fresh rows"].iloc[0]
        print(
            f"\n{case.name}: {case.train:,} training, {case.holdout:,} holdout and {fresh:,} fresh rows; "
            f"{sizes.candidates} candidates; means over {sizes.splits} splits"
        )
        for analyst in ANALYSTS:
            part = table.loc[(case.name, analyst)]
            asked = lines.loc[(lines["set"] == case.name) & (lines["analyst"] == analyst), "asked"].iloc[0]
            print(f"\n{analyst}, {asked} questions")
            print(part.to_string(float_format="{:.4f}".format, formatters=FORMATS))
    options.output.mkdir(parents=True, exist_ok=True)
    lines.to_csv(options.output / "honest_search.csv", index=False, float_format="%.6g")
    picture(table, options.output / "honest_search.png")
    print(f"\nwrote a table and a picture to {options.output}")


FORMATS = {"contains": "{:.2f}".format, "holds": "{:.2f}".format, "all hold": "{:.2f}".format}
FORMATS |= {"answered": "{:.0f}".format}
FORMATS |= {"charges": "{:.2f}".format, "told - fresh": "{:+.4f}".format}


if __name__ == "__main__":
    main()
