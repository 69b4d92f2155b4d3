"""Do the intervals hold? Every attack, on several metrics, asked in three ways, a thousand times each.

A run misses if one interval of one of its answers does not contain the population value, which is known exactly: labels
are coins, or the models are linear and the features normal. At confidence 0.95 at most one run in twenty may miss.

    python examples/coverage.py                        # 1,000 runs a cell; about an hour of processor time
    python examples/coverage.py --quick                # 100 runs a cell
    python examples/coverage.py --runs 10000 --holdouts guarded --metrics accuracy --ways mixed

The attacks ask by checks; or each question states a tolerance of its own, as coins decide; or their submissions are
asked about by reveals and choices and on a slice of the rows, too, and the run ends with a final (`asking/ways.py`).

Half of the runs are of a guard whose threshold no honest prior passes by chance. The others are of one that talks: its
threshold is less than two standard deviations, it has next to no noise and many charges, so that an attacker learns as
much as she can, and only the certificate stands in her way. Where evidence decides its
plan expects rows that spread a third as much as they do, or a ratio near one.

Beside them stand plain holdouts with the textbook's interval for so many questions (normal, Bonferroni), which is valid
for questions that were fixed in advance: the attacks break it.

The exit status is 1 if a guard's cell misses more often than promised and that is no chance: a probability below one in
a million for all cells together.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from asking.ways import EXPECTED, WAYS, Way
from attacks import (
    AttackResult,
    PlainHoldout,
    SearchProblem,
    boosting_attack,
    budget_burning_attack,
    coin_truth,
    flip_attack,
    freedman_attack,
    hyperparameter_search,
    log_loss_attack,
    threshold_probing_attack,
)
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import beta, binom
from tqdm import tqdm

from reusable_holdout import Plan, ReusableHoldout, Rows
from reusable_holdout.plotting import INK, pyplot

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

TEXTBOOK = "none (textbook)"
HOLDOUTS = ("guarded", TEXTBOOK)
METRICS = ("accuracy", "brier", "roc_auc", "log_loss", "balanced_accuracy", "average_precision")
CONFIDENCE = 0.95
FALSE_ALARM = 1e-6  # of all cells together
ROWS, QUESTIONS = 1_000, 60
DEVIATION = {
    "accuracy": 0.5,
    "brier": 0.25,
    "roc_auc": 0.577,
    "log_loss": 0.55,
    "balanced_accuracy": 0.5,
    "average_precision": 0.6,
}  # times sqrt(rows), of random votes
RATIOS = frozenset({"balanced_accuracy", "average_precision"})
ESTIMATE = {"brier": 0.31, "log_loss": 0.84}  # of random votes, by the metrics that are decided by evidence


class TextbookAnswer(NamedTuple):
    """Score with the interval of a question that was fixed in advance."""

    value: float
    low: float
    high: float
    charged: bool = False


class TextbookHoldout:
    """A plain holdout with an interval that is valid for so many questions, if they do not depend on its answers."""

    def __init__(self, labels: Any, metric: str) -> None:
        self._holdout = PlainHoldout(labels, metric)
        quantile = NormalDist().inv_cdf(1.0 - (1.0 - CONFIDENCE) / (2.0 * (QUESTIONS + 1)))
        self._width = quantile * DEVIATION[metric] / math.sqrt(ROWS)

    def evaluate(self, subject: Any, *, prior: Any) -> Any:
        """Score of predictions, or of each of a list, give or take the width."""
        if isinstance(subject, list):
            return [self.evaluate(each, prior=prior) for each in subject]
        value = self._holdout.evaluate(subject, prior=prior).value
        return TextbookAnswer(value, value - self._width, value + self._width)


class Setup(NamedTuple):
    """One run: what is attacked, and how it is asked."""

    holdout: str
    metric: str
    way: str
    seed: int

    @property
    def talkative(self) -> bool:
        """Whether the guard is one that talks."""
        return self.seed % 2 == 1

    @property
    def by_evidence(self) -> bool:
        """Whether the rows' evidence decides, not a distance."""
        return self.metric in ESTIMATE

    @property
    def deviation(self) -> float:
        """Standard deviation of the score of random votes."""
        return DEVIATION[self.metric] / math.sqrt(ROWS)

    def guard(self, labels: Any) -> Any:
        """Guard of these labels; there are questions enough for all attacks."""
        if self.holdout == TEXTBOOK:
            return TextbookHoldout(labels, self.metric)
        chosen: dict[str, Any] = {}
        if self.by_evidence:  # a guess that is far too low makes a tolerance that few honest questions keep
            guess, charges = (0.3, 40) if self.talkative else (1.0, 4)
            chosen = {
                "spread": guess * DEVIATION[self.metric],
                "charges": charges,
                "estimate": ESTIMATE[self.metric],
            }
        elif self.metric in RATIOS:
            chosen = {"charges": 40, "estimate": 0.97} if self.talkative else {"charges": 4}
        elif self.way == "tolerances":  # where a threshold stands fast no question has a tolerance of its own
            chosen = {"charges": 40, "noise": 1e-5} if self.talkative else {"charges": 4}
        elif self.talkative:
            chosen = {"threshold": 1.6 * self.deviation, "charges": 40, "noise": 1e-5}
        else:
            chosen = {"threshold": 4.0 * self.deviation, "charges": 4}
        return ReusableHoldout(
            Rows(None, labels, classes=[0, 1]),
            metric=self.metric,
            seed=self.seed,
            plan=Plan(confidence=CONFIDENCE, queries=2 * QUESTIONS, **chosen, **WAYS[self.way].settings),
            allow={"vacuous"},
        )

    def ask(self, labels: Any) -> Way:
        """Way to ask a guard of these labels."""
        return WAYS[self.way](self.guard(labels), seed=self.seed)


class Run(NamedTuple):
    """What came of one run."""

    result: AttackResult
    covered: bool
    told: Mapping[str, int]

    @classmethod
    def of(cls, way: Way, result: AttackResult) -> Self:
        """Run after its attack."""
        return cls(result, way.covered(result), way.told)


def on_coins(attack: Callable[..., AttackResult]) -> Callable[[Setup], Run]:
    """Run of an attack on a guard of coins; each seed has its own variant of the attack."""

    def run(setup: Setup) -> Run:
        labels = np.random.default_rng([2016, setup.seed]).integers(0, 2, ROWS)
        variant = VARIANTS[attack](setup) if attack in VARIANTS else {"questions": QUESTIONS}
        way = setup.ask(labels)
        result = attack(
            way.holdout,
            rows=ROWS,
            truth=coin_truth(ROWS, setup.metric),
            metric=setup.metric,
            seed=setup.seed,
            **variant,
        )
        return Run.of(way, result)

    return run


def boosting_variant(setup: Setup) -> dict[str, Any]:
    """Votes that scored worse join reversed; the prior of the majority is hopeful in every other pair of runs."""
    hope = (
        2.0
        * math.sqrt(QUESTIONS)
        * setup.deviation
        * (-1.0 if setup.metric in {"brier", "log_loss"} else 1.0)
    )
    base = EXPECTED[setup.metric]
    return {
        "questions": QUESTIONS,
        "reverse": True,
        "claim": base + hope / 4.0 if setup.seed % 4 < 2 else None,
    }


VARIANTS: dict[Callable[..., AttackResult], Callable[[Setup], dict[str, Any]]] = {
    boosting_attack: boosting_variant,
    flip_attack: lambda setup: {
        "questions": QUESTIONS,
        "flips": 1 + setup.seed // 2 % 2,
        "settle": False,
        "lead": (0.0, 0.5, 1.0, 1.5)[setup.seed // 4 % 4] * setup.deviation,
    },
    threshold_probing_attack: lambda setup: {
        "questions": QUESTIONS,
        "margin": (0.0, 0.5, 1.0, 1.5)[setup.seed // 2 % 4] * setup.deviation,
        "edge": (0.0, 0.9)[setup.seed // 8 % 2],
    },
    budget_burning_attack: lambda _: {"questions": QUESTIONS, "others": 2},
    freedman_attack: lambda _: {"features": QUESTIONS},
    log_loss_attack: lambda _: {},
}


def search(setup: Setup) -> Run:
    """Run of the natural search."""
    problem = SearchProblem.draw(rows=ROWS, features=30, seed=setup.seed)
    way = setup.ask(problem.y)
    result = hyperparameter_search(way.holdout, problem, metric=setup.metric, questions=QUESTIONS)
    return Run.of(way, result)


ATTACKS: dict[str, Callable[[Setup], Run]] = {
    "boosting": on_coins(boosting_attack),
    "flips": on_coins(flip_attack),
    "threshold probing": on_coins(threshold_probing_attack),
    "budget burning": on_coins(budget_burning_attack),
    "log-loss oracle": on_coins(log_loss_attack),
    "Freedman selection": on_coins(freedman_attack),
    "hyperparameter search": search,
}


def applies(attack: str, holdout: str, metric: str, way: str) -> bool:
    """Whether an attack can be made on a metric, and the holdout be asked so."""
    if holdout == TEXTBOOK and way != "checks":
        return False
    if attack == "log-loss oracle":
        return metric == "log_loss"
    return not (attack == "hyperparameter search" and metric in {"log_loss", "average_precision"})


COUNTED = ("missed", "answers", "charges", "halted", "reveal", "choose", "slice", "final", "tolerance")


def count(attack: str, holdout: str, metric: str, way: str, seeds: range) -> NDArray[np.int64]:
    """What is `COUNTED` of so many runs."""
    total = np.zeros(len(COUNTED), dtype=np.int64)
    for seed in seeds:
        run = ATTACKS[attack](Setup(holdout, metric, way, seed))
        result, told = run.result, [run.told[kind] for kind in COUNTED[4:]]
        total += [not run.covered, result.questions, result.charges, result.halted is not None, *told]
    return total


def table(cells: list[tuple[str, str, str, str]], runs: int, *, jobs: int) -> pd.DataFrame:
    """One row a cell: its coverage, and how surprising it would be if the promise held."""
    step = max(1, runs // 4)
    parts = [
        (cell, range(start, min(start + step, runs))) for cell in cells for start in range(0, runs, step)
    ]
    done = Parallel(n_jobs=jobs, return_as="generator")(delayed(count)(*cell, seeds) for cell, seeds in parts)
    totals = {cell: np.zeros(len(COUNTED), dtype=np.int64) for cell in cells}
    for (cell, _), counted in zip(
        parts, tqdm(done, total=len(parts), leave=False, disable=None), strict=True
    ):
        totals[cell] += counted
    rows = []
    for (attack, holdout, metric, way), (missed, *others) in totals.items():
        rows.append(
            {
                "attack": attack,
                "holdout": holdout,
                "metric": metric,
                "asked by": way,
                "runs": runs,
                "coverage": 1.0 - missed / runs,
                "low": float(beta.ppf(0.005, runs - missed, missed + 1)) if missed < runs else 0.0,
                "high": float(beta.ppf(0.995, runs - missed + 1, missed)) if missed else 1.0,
                "chance": float(binom.sf(missed - 1, runs, 1.0 - CONFIDENCE)),
            }
            | {name: number / runs for name, number in zip(COUNTED[1:], others, strict=True)}
        )
    return pd.DataFrame(rows)


def failures(results: pd.DataFrame) -> pd.DataFrame:
    """Guards' cells that miss more often than chance explains."""
    promised = results[results["holdout"] != TEXTBOOK]
    return promised[promised["chance"] < FALSE_ALARM / max(1, len(promised))]


def picture(results: pd.DataFrame, path: Path) -> None:
    """Draw the coverage of each cell with its 99% interval, and the promise."""
    figure, ax = pyplot().subplots(figsize=(9, 1.5 + 0.22 * len(results)), layout="constrained")
    places = np.arange(len(results))[::-1]
    ax.hlines(places, results["low"], results["high"], color=INK["interval"], lw=4, label="99% interval")
    ax.plot(results["coverage"], places, ".", color=INK["answer"], label="coverage")
    ax.axvline(CONFIDENCE, color=INK["charge"], ls="--", label="promise")
    names = results[["attack", "holdout", "metric", "asked by"]].agg(", ".join, axis=1)
    ax.set_yticks(places, names, fontsize=8)
    ax.set_xlim(min(0.94, float(results["low"].min()) - 0.005), 1.005)
    ax.set_xlabel("runs in which every interval contains the population value")
    ax.grid(alpha=0.2)
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 1.12), ncols=3)
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def main(argv: list[str] | None = None) -> int:
    """Run every cell, print the table, draw the picture; 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000, help="runs of each cell (default 1,000)")
    parser.add_argument("--quick", action="store_true", help="100 runs of each cell")
    parser.add_argument("--attacks", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--holdouts", nargs="+", choices=HOLDOUTS, default=list(HOLDOUTS))
    parser.add_argument("--metrics", nargs="+", choices=list(METRICS), default=list(METRICS))
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS), help="how they ask")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("coverage.png"))
    options = parser.parse_args(argv)
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    every = product(options.attacks, options.holdouts, options.metrics, options.ways)
    cells = [cell for cell in every if applies(*cell)]
    if not cells:
        parser.error("no such attack can be made on such a guard")
    results = table(cells, min(100, options.runs) if options.quick else options.runs, jobs=options.jobs)
    formats = {"coverage": "{:.4f}", "chance": "{:.3g}", "halted": "{:.2f}"}
    formats |= dict.fromkeys(("answers", "charges", *COUNTED[4:]), "{:.1f}")
    shown = results.drop(columns=["low", "high"])
    print(shown.to_string(index=False, formatters={name: form.format for name, form in formats.items()}))
    results.to_csv(options.output.with_suffix(".csv"), index=False, float_format="%.6g")
    picture(results, options.output)
    broken = failures(results)
    for way, guards in results[results["holdout"] != TEXTBOOK].groupby("asked by"):
        print(
            f"least coverage of a guard asked by {way}: {guards['coverage'].min():.4f} in {len(guards)} cells of "
            f"{guards['runs'].max():,} runs; promised {CONFIDENCE}"
        )
    print(f"picture: {options.output}, and a table beside it")
    for row in broken.itertuples(index=False):
        print(f"PROMISE BROKEN: {', '.join(row[:4])}: coverage {row[5]:.4f}")
    return 1 if len(broken) else 0


if __name__ == "__main__":
    sys.exit(main())
