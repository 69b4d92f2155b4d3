"""How many questions a guarded holdout answers before it halts, by rows and tolerance.

An analyst tunes hyperparameters: each candidate lies near the one with the best answer so far, its prior is its
cross-validated score, and one candidate in fifty is sent with its in-sample score instead, 0.1 too high. For each
number of rows and each tolerance the table has the charges that the plan affords, and what came of them: questions
answered before the halt (mean, and the 10% quantile over the runs), charges made, charges that only chance made, and
the intervals that hold the population's accuracy.

The guard is the real one, its budget in memory. Rows are simulated exactly: a candidate's population accuracy is known,
its mistakes on the holdout are binomial, and so are those of the cross-validation, on as many rows as the holdout has.

Beside it stands the budget rule of Dwork et al. (2015), "Generalization in Adaptive Data Analysis and Holdout Reuse",
Theorem 25: with T = 3/4 of the tolerance t and noise t / (96 ln(4K/beta)), B charges need
n >= O(ln(K/beta) / t^2) min(B, sqrt(B ln(ln(K/beta) / t))) rows. "Rule" is the B it allows if the constant it leaves
out is 1, which is no theorem; "proven" is what its argument yields with no constant left out, as reconstructed here
from the theorem's T and noise: the answers before the halt are 2B/(noise n)-differentially private, and that must be
at most t/16.

    python examples/how_long_it_lasts.py             # about nine minutes of processor time
    python examples/how_long_it_lasts.py --quick
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from tqdm import tqdm

from reusable_holdout import Answer, Plan, ReusableHoldout
from reusable_holdout.errors import Halted, PlanError
from reusable_holdout.plotting import INK, pyplot

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

BETA = 0.05
ROWS = [1_000, 3_000, 10_000, 30_000, 100_000]
TOLERANCES = [0.03, 0.04, 0.05, 0.065, 0.08, 0.10]
QUERIES = [1_000, 10_000]
CLAIM = {"rows": 10_000, "tolerance": 0.065, "least": 500}

EVERY = 50  # one question in so many has the in-sample score for a prior
BEST, START, STEP = 0.92, (1.0, 1.0), 0.5  # the accuracy of a candidate is BEST - SLOPE |candidate|^2
SLOPE = 0.02


class Setting(NamedTuple):
    """What the user chose, and what the world is like."""

    rows: int
    tolerance: float
    queries: int = 1_000
    estimate: float | None = 0.9
    noise: float | None = None
    shared: float = 0.0
    train: float = 1.0  # training rows per holdout row
    optimism: float = 0.1  # by which an in-sample prior is too high

    def plan(self) -> Plan | None:
        """Plan of the guard, or None where there is none."""
        try:
            return Plan(
                rows=self.rows,
                queries=self.queries,
                tolerance=self.tolerance,
                confidence=1.0 - BETA,
                estimate=self.estimate,
                noise=self.noise,
                choices=(),
            )
        except PlanError:
            return None


class Run(NamedTuple):
    """What one search got out of one holdout."""

    answered: int
    charges: int
    chance: int  # charges that honest priors made
    held: int
    nats: float  # description length of the charged answers
    halt: str


class Mistakes:
    """How many rows of one sample a model of known population accuracy gets wrong; exact, without the rows.

    A share of the mistakes is common to all models: a row's own difficulty decides there, else a coin for each model.
    """

    def __init__(self, rng: np.random.Generator, *, rows: int, shared: float) -> None:
        self._rng, self.rows, self._shared = rng, rows, shared
        self._difficulties = np.sort(rng.random(rows))

    def count(self, accuracy: float) -> int:
        """Draw the number of mistakes of one model; binomial over samples."""
        own = (1.0 - self._shared) * (1.0 - accuracy)
        hard = int(np.searchsorted(self._difficulties, 1.0 - accuracy))
        wrong = self._rng.binomial([hard, self.rows - hard], [self._shared + own, own])
        return int(wrong.sum())

    def score(self, accuracy: float) -> float:
        """Draw the score of one model."""
        return 1.0 - self.count(accuracy) / self.rows


class Search:
    """The analyst: population accuracies are hers to make and not to know."""

    def __init__(self, rng: np.random.Generator, train: Mistakes, optimism: float) -> None:
        self._rng, self._train, self._optimism = rng, train, optimism
        self._best, self._best_value = np.array(START), -math.inf

    def propose(self, *, overfits: bool) -> tuple[NDArray[np.float64], float, float]:
        """Next candidate, its population accuracy and its prior."""
        candidate = self._best + STEP * self._rng.standard_normal(len(START))
        accuracy = max(0.5, BEST - SLOPE * float(candidate @ candidate))
        prior = self._train.score(min(1.0, accuracy + self._optimism) if overfits else accuracy)
        return candidate, accuracy, prior

    def learn(self, candidate: NDArray[np.float64], answer: Answer) -> None:
        """Go on from the candidate with the best answer."""
        if answer.value > self._best_value:
            self._best, self._best_value = candidate, answer.value


def run(setting: Setting, seed: int) -> Run:
    """Search on one holdout until it halts."""
    rng = np.random.default_rng([seed, setting.rows])
    holdout = Mistakes(rng, rows=setting.rows, shared=setting.shared)
    train = Mistakes(rng, rows=round(setting.train * setting.rows), shared=setting.shared)
    labels = rng.permutation(setting.rows) % 2 == 0
    search = Search(rng, train, setting.optimism)
    guard = ReusableHoldout(
        None,
        labels,
        metric="accuracy",
        seed=seed,
        plan=Plan(
            queries=setting.queries,
            tolerance=setting.tolerance,
            estimate=setting.estimate,
            noise=setting.noise,
            choices=(),
            confidence=1.0 - BETA,
        ),
    )
    answered, charges, chance, held, nats = 0, 0, 0, 0, 0.0
    try:
        for query in range(1, setting.queries + 1):
            overfits = query % EVERY == 0
            candidate, accuracy, prior = search.propose(overfits=overfits)
            wrong = rng.choice(setting.rows, holdout.count(accuracy), replace=False, shuffle=False)
            predictions = labels.copy()
            predictions[wrong] ^= True  # only their number matters to the guard
            answer = guard.evaluate(predictions, prior=prior)
            search.learn(candidate, answer)
            answered += 1
            charges += answer.charged
            chance += answer.charged and not overfits
            held += answer.low <= accuracy <= answer.high
            nats += answer.nats
    except Halted as halt:
        return Run(answered, charges, chance, held, nats, halt.reason)
    return Run(answered, charges, chance, held, nats, guard.halt_reason or "none")


def published_rule(*, rows: int, queries: int, tolerance: float) -> int:
    """Charges that Theorem 25 allows if the constant that it leaves out is 1."""
    nats = math.log(queries / BETA)
    affordable = rows * tolerance**2 / nats
    return math.floor(max(affordable, affordable**2 / math.log(nats / tolerance)))


def proven_rule(*, rows: int, queries: int, tolerance: float) -> int:
    """Charges that the argument of Theorem 25 allows, its constants reconstructed.

    The error is divided into 3/4 for the threshold, 1/8 for the noise and 1/8 for the privacy's generalisation, which
    holds for ``epsilon <= tolerance / 16``; Thresholdout is ``2 B / (noise rows)``-differentially private.
    """
    noise = tolerance / (96.0 * math.log(4.0 * queries / BETA))
    return math.floor(tolerance / 16.0 * noise * rows / 2.0)


def measure(settings: list[Setting], *, runs: int, jobs: int, title: str) -> list[list[Run]]:
    """Run all settings, those with a plan, several times each."""
    tasks = [(place, seed) for place, each in enumerate(settings) if each.plan() for seed in range(runs)]
    tasks.sort(key=lambda task: -settings[task[0]].rows * settings[task[0]].tolerance)  # the longest first
    results: Iterator[Run] = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(run)(settings[place], seed) for place, seed in tasks
    )
    found: list[list[Run]] = [[] for _ in settings]
    for (place, _), result in zip(
        tasks, tqdm(results, total=len(tasks), desc=title, leave=False, disable=None), strict=True
    ):
        found[place].append(result)
    return found


def summary(setting: Setting, runs: list[Run]) -> dict[str, float | int | str]:
    """One line of a table."""
    plan = setting.plan()
    asked = {"rows": setting.rows, "queries": setting.queries, "tolerance": setting.tolerance}
    line: dict[str, float | int | str] = {
        **asked,
        "affords": 0 if plan is None else plan.charges,
        "rule": published_rule(**asked),
        "proven": proven_rule(**asked),
    }
    if not runs:
        return line
    answered = np.array([each.answered for each in runs])
    return {
        **line,
        "answered": answered.mean(),
        "10%": float(np.quantile(answered, 0.1, method="lower")),
        "charges": np.mean([each.charges for each in runs]),
        "by chance": np.mean([each.chance for each in runs]),
        "error": float(answered.std(ddof=1)) / len(runs) ** 0.5,
        "nats": sum(each.nats for each in runs) / max(1, sum(each.charges for each in runs)),
        "all asked": np.mean([each.answered == setting.queries for each in runs]),
        "held": sum(each.held for each in runs) / answered.sum(),
        "runs all held": np.mean([each.held == each.answered for each in runs]),
        "runs": len(runs),
    }


def settings_of_the_claim() -> dict[str, Setting]:
    """Other choices, and other worlds, at the rows and the tolerance of the claim."""
    plain = Setting(rows=int(CLAIM["rows"]), tolerance=CLAIM["tolerance"])
    return {
        "as in the table": plain,
        "500 questions declared": plain._replace(queries=500),
        "600 questions declared": plain._replace(queries=600),
        "2,000 questions declared": plain._replace(queries=2_000),
        "no estimate stated": plain._replace(estimate=None),
        "no noise": plain._replace(noise=0.0),
        "in-sample priors 0.05 too high": plain._replace(optimism=0.05),
        "in-sample priors 0.03 too high": plain._replace(optimism=0.03),
        "4 of 5 mistakes common to all": plain._replace(shared=0.8),
        "4 training rows per holdout row": plain._replace(train=4.0),
    }


def show(table: pd.DataFrame, columns: list[str]) -> None:
    """Print a table; a dash where there is no plan."""
    formats = {
        "tolerance": "{:g}",
        "answered": "{:,.0f}",
        "10%": "{:,.0f}",
        "rows": "{:,}",
        "queries": "{:,}",
    }
    formats |= {"charges": "{:.1f}", "by chance": "{:.1f}", "nats": "{:.1f}"}
    formats |= {"all asked": "{:.2f}", "held": "{:.4f}", "runs all held": "{:.2f}"}
    written = {
        name: (lambda value, text=text: "-" if pd.isna(value) else text.format(value))
        for name, text in formats.items()
    }
    print(table[columns].to_string(formatters=written, na_rep="-"))


COLUMNS = ["affords", "answered", "10%", "charges", "by chance", "nats", "all asked", "held", "runs all held"]


def picture(table: pd.DataFrame, path: Path) -> None:
    """Draw questions answered against rows, one line per tolerance."""
    declared = sorted(table["queries"].unique())
    figure, axes = pyplot().subplots(
        1, len(declared), figsize=(6.5 * len(declared), 5), squeeze=False, layout="constrained"
    )
    for ax, queries in zip(axes[0], declared, strict=True):
        part = table[(table["queries"] == queries) & table["answered"].notna()]
        tolerances = sorted(part["tolerance"].unique())
        for place, tolerance in enumerate(tolerances):
            line = part[part["tolerance"] == tolerance]
            strength = (place + 1) / len(tolerances)
            style = {"color": INK["answer"], "alpha": 0.25 + 0.75 * strength}
            ax.plot(line["rows"], line["answered"], "o-", label=f"tolerance {tolerance:g}", **style)
            ax.fill_between(line["rows"], line["10%"], line["answered"], lw=0, color=INK["answer"], alpha=0.1)
            rule = line[line["rule"] > 0]
            under_rule = np.minimum(EVERY * rule["rule"], queries)
            ax.plot(rule["rows"], under_rule, ls=":", color=INK["charge"], alpha=style["alpha"])
        ax.plot([], [], ls=":", color=INK["charge"], label="published rule, constant 1")
        ax.axhline(queries, color="black", lw=0.8, ls="--")
        title = f"{queries:,} questions declared"
        ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="questions answered", title=title)
        ax.grid(alpha=0.2)
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def verdict(table: pd.DataFrame, choices: pd.DataFrame) -> None:
    """Say whether the claim holds, from the numbers of this run."""
    least = CLAIM["least"]
    line = choices.iloc[0]
    enough = line["answered"] >= least
    print(
        f"\n{line['rows']:,.0f} rows, tolerance {line['tolerance']}, {line['queries']:,.0f} questions declared: "
        f"{line['answered']:.0f} answered on average (standard error {line['error']:.0f}); at least {least}: "
        f"{'yes' if enough else 'NO'}"
    )
    print(
        f"the plan promises {line['affords']:.0f} charges; {line['charges']:.1f} were made, {line['by chance']:.1f} of "
        f"them by honest priors, at {line['nats']:.1f} nats each"
    )
    reaching = choices.index[choices["10%"] >= least]
    print(f"at least {least} in nine runs of ten: {', '.join(reaching) or 'none of these'}")
    print(
        f"published rule: {line['rule']:.0f} charges if its constant is 1, used up by in-sample priors at question "
        f"{EVERY * line['rule']:,.0f}; {line['proven']:.0f} with the reconstructed constants of its proof"
    )
    more = table["rule"] > table["affords"]
    print(
        f"cells of the tables where the rule with constant 1, which is no theorem, allows more charges than this "
        f"plan: {more.sum()} of {len(table)}; with its proof's constants: {(table['proven'] > table['affords']).sum()}"
    )
    answers = (table["answered"] * table["runs"]).sum()
    held = (table["held"] * table["answered"] * table["runs"]).sum() / answers
    runs, kept = table["runs"].sum(), (table["runs all held"] * table["runs"]).sum()
    print(
        f"intervals that hold, in the tables over rows: {held:.6f} of {answers:,.0f}; runs in which all do: "
        f"{kept:.0f} of {runs:.0f} (promised: {1.0 - BETA:.0%})"
    )


def tables(options: argparse.Namespace) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure everything: lines over rows and tolerances, and lines of other choices."""
    rows, tolerances, declared = (
        ([3_000, 10_000], [0.04, 0.065, 0.10], [1_000]) if options.quick else (ROWS, TOLERANCES, QUERIES)
    )
    lines = []
    for queries in declared:
        runs = max(3, round(options.runs * min(1.0, 400 / queries**0.9)))
        settings = [Setting(n, t, queries) for n in rows for t in tolerances]
        found = measure(settings, runs=runs, jobs=options.jobs, title=f"{queries:,} declared")
        lines += [summary(*each) for each in zip(settings, found, strict=True)]
    named = settings_of_the_claim()
    if options.quick:
        named = {name: named[name] for name in ("as in the table", "600 questions declared", "no noise")}
    found = measure(list(named.values()), runs=2 * options.runs, jobs=options.jobs, title="choices")
    choices = [summary(*each) for each in zip(named.values(), found, strict=True)]
    return pd.DataFrame(lines), pd.DataFrame(choices, index=pd.Index(named, name="choice"))


def main(argv: list[str] | None = None) -> None:
    """Print the tables and what they show; write them, and a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few cells, a few runs")
    parser.add_argument("--runs", type=int, help="searches per line; fewer where they are long")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--output", type=Path, default=Path("how_long_it_lasts"), help="folder for tables and picture"
    )
    options = parser.parse_args(argv)
    options.runs = options.runs or (4 if options.quick else 20)
    table, choices = tables(options)
    for queries, part in table.groupby("queries"):
        runs = part["runs"].max()
        print(
            f"\n{queries:,} questions declared, one in {EVERY} with its in-sample score; {runs:.0f} searches each"
        )
        show(part.set_index(["rows", "tolerance"]), [*COLUMNS, "rule", "proven"])
    print(f"\nother choices and other worlds, at {CLAIM['rows']:,} rows and tolerance {CLAIM['tolerance']}")
    show(choices, COLUMNS)
    verdict(table, choices)
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "rows_and_tolerances.csv", index=False, float_format="%.6g")
    choices.to_csv(options.output / "choices.csv", float_format="%.6g")
    picture(table, options.output / "how_long_it_lasts.png")
    print(f"\nwrote two tables and a picture to {options.output}")


if __name__ == "__main__":
    main()
