"""What a prior costs: one random forest search, asked with in-sample, out-of-bag and cross-validated priors.

Random forests of random hyperparameters are fitted to UCI Adult, which ships with the library. Each is put to three
guarded holdouts that differ in nothing but the prior the analyst sends with it: the score on the rows it was fitted
to, the out-of-bag score of the same fit, or the score of a 5-fold cross-validation. A prior that the holdout
contradicts costs a charge; when the charges are spent, the guard halts. The plan states `prior_error`, the standard
error of a score of the training rows: a threshold is a number of standard deviations, of which this is most.

The table has, for each tolerance and prior, the questions answered before the halt, the charges made, the mean distance
from the score on fresh rows (of the prior, for all forests; of the answer, where there is one), and the intervals that
hold the fresh score. That score has an error of its own, printed below the table. The guards' noise is drawn several
times; data and forests stay.

    python examples/priors_matter.py             # about a minute on two cores
    python examples/priors_matter.py --quick
"""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from tqdm import tqdm

from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.errors import Halted
from reusable_holdout.plotting import INK, pyplot

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

PRIORS = ["in-sample", "out-of-bag", "cross-validated"]
COLOURS = dict(zip(PRIORS, [INK["charge"], INK["budget"], INK["answer"]], strict=True))
LINES = dict(zip(PRIORS, ["-", "-", "--"], strict=True))  # two of them may lie on each other
TOLERANCES = [0.045, 0.05, 0.06]
ESTIMATE = 0.85  # what forests are known to reach here; a wrong guess never makes an interval wrong


class Sizes(NamedTuple):
    """Rows of the parts; the rest is fresh."""

    train: int
    holdout: int
    candidates: int


FULL, QUICK = Sizes(3_000, 8_000, 100), Sizes(600, 8_000, 12)


class Data(NamedTuple):
    """Disjoint random parts."""

    train: tuple[NDArray[np.float64], NDArray[np.bool_]]
    holdout: tuple[NDArray[np.float64], NDArray[np.bool_]]
    fresh: tuple[NDArray[np.float64], NDArray[np.bool_]]


class Candidate(NamedTuple):
    """One forest: the priors of it, what it predicts for the holdout, and its score on fresh rows."""

    priors: dict[str, float]
    seconds: dict[str, float]  # that each prior took
    least_leaf: int
    predictions: NDArray[np.bool_]
    fresh: float


def split(sizes: Sizes, seed: int) -> Data:
    """Rows at random; texts become codes."""
    X, y = load_adult()
    codes = X.apply(
        lambda column: column if column.dtype.kind in "if" else column.astype("category").cat.codes
    )
    values, label = codes.to_numpy(np.float64), y.to_numpy()
    order = np.random.default_rng(seed).permutation(len(label))
    parts = np.split(order, [sizes.train, sizes.train + sizes.holdout])
    return Data(*((values[part], label[part]) for part in parts))


def propose(count: int, seed: int) -> list[dict[str, Any]]:
    """Hyperparameters of a random search, from forests that memorise their rows to forests that hardly fit."""
    rng = np.random.default_rng(seed)
    return [
        {
            "n_estimators": int(rng.integers(40, 81)),
            "min_samples_leaf": round(float(np.exp(rng.uniform(0.0, np.log(60.0))))),
            "max_features": float(rng.uniform(0.1, 0.8)),
            "max_depth": int(rng.choice([6, 10, 16, 40])),
            "criterion": str(rng.choice(["gini", "entropy"])),
            "random_state": int(rng.integers(2**31)),
        }
        for _ in range(count)
    ]


def fit(data: Data, parameters: dict[str, Any]) -> Candidate:
    """Fit one forest, and estimate its accuracy in three ways."""
    forest = RandomForestClassifier(**parameters, oob_score=True)
    start = time.perf_counter()
    forest.fit(*data.train)
    fitted = time.perf_counter()
    in_sample = forest.score(*data.train)
    scored = time.perf_counter()
    folds = cross_val_score(RandomForestClassifier(**parameters), *data.train, cv=5)
    return Candidate(
        priors=dict(zip(PRIORS, [in_sample, float(forest.oob_score_), float(folds.mean())], strict=True)),
        seconds=dict(zip(PRIORS, [scored - fitted, 0.0, time.perf_counter() - scored], strict=True))
        | {"fit": fitted - start},
        least_leaf=parameters["min_samples_leaf"],
        predictions=forest.predict(data.holdout[0]),
        fresh=forest.score(*data.fresh),
    )


def ask(data: Data, candidates: list[Candidate], *, prior: str, tolerance: float, seed: int) -> pd.DataFrame:
    """Put the candidates to one guard, in their order, until it halts; a line for each answer."""
    guard = ReusableHoldout(
        None,
        data.holdout[1],
        metric="accuracy",
        plan=Plan(
            queries=len(candidates),
            tolerance=tolerance,
            estimate=ESTIMATE,
            prior_error=math.sqrt(ESTIMATE * (1.0 - ESTIMATE) / len(data.train[1])),
        ),
        seed=seed,
    )
    lines = []
    try:
        for candidate in candidates:
            answer = guard.evaluate(candidate.predictions, prior=candidate.priors[prior])
            lines.append({**answer._asdict(), "fresh": candidate.fresh})
    except Halted:
        pass
    return pd.DataFrame(lines).assign(affords=guard.plan.charges)


def summary(
    runs: list[pd.DataFrame], candidates: list[Candidate], *, prior: str, tolerance: float
) -> dict[str, Any]:
    """One line of the table."""
    every = pd.concat(runs)
    return {
        "tolerance": tolerance,
        "prior": prior,
        "affords": int(every["affords"].iloc[0]),
        "answered": np.mean([len(run) for run in runs]),
        "charges": np.mean([run["charged"].sum() for run in runs]),
        "|prior - fresh|": np.mean([abs(each.priors[prior] - each.fresh) for each in candidates]),
        "|answer - fresh|": (every["value"] - every["fresh"]).abs().mean(),
        "held": every["fresh"].between(every["low"], every["high"]).mean(),
    }


def picture(
    candidates: list[Candidate], histories: dict[str, pd.DataFrame], tolerance: float, path: Path
) -> None:
    """Draw how far priors are off by how freely the forests fit, and the charges over the questions."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(13, 5), layout="constrained")
    for prior in PRIORS:
        leaves = [each.least_leaf for each in candidates]
        off = [each.priors[prior] - each.fresh for each in candidates]
        left.plot(leaves, off, "o", ms=4, color=COLOURS[prior], alpha=0.7, label=prior)
        run = histories[prior]
        charges = run["charged"].cumsum()
        right.step(
            run["query"], charges, LINES[prior], where="post", color=COLOURS[prior], lw=1.8, label=prior
        )
        if len(run) < len(candidates):
            right.plot(run["query"].iloc[-1], charges.iloc[-1], "X", ms=9, color=COLOURS[prior])
    left.axhline(0.0, color="black", lw=0.8)
    left.set(xscale="log", xlabel="least rows in a leaf", ylabel="prior - score on fresh rows")
    left.set_title("How far the prior is off")
    right.set(xlabel="question", ylabel="charges", xlim=(0, len(candidates)))
    right.set_title(f"What it costs at tolerance {tolerance:g} (cross: halted)")
    for ax in (left, right):
        ax.grid(alpha=0.2)
        ax.legend()
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def verdict(table: pd.DataFrame, candidates: list[Candidate], data: Data) -> None:
    """Say what the numbers of this run show."""
    error = np.mean([(each.fresh * (1.0 - each.fresh) / len(data.fresh[1])) ** 0.5 for each in candidates])
    print(
        f"\nintervals that hold the fresh score, itself known to {error:.4f}: at least {table['held'].min():.1%} in "
        "each line"
    )
    charges = table.pivot_table(index="tolerance", columns="prior", values="charges")
    asked = table.pivot_table(index="tolerance", columns="prior", values="answered") == len(candidates)
    fewer = [
        prior for prior in PRIORS[1:] if (charges[prior] < charges["in-sample"]).all() and asked[prior].all()
    ]
    print(
        "fewer charges than with in-sample priors and every question answered, at each tolerance: "
        f"{' and '.join(fewer) or 'NEITHER'}"
    )
    seconds = {
        name: np.mean([each.seconds[name] for each in candidates]) for name in ("fit", "cross-validated")
    }
    print(
        f"seconds per candidate: the fit {seconds['fit']:.2f}, out-of-bag score included; cross-validation "
        f"{seconds['cross-validated']:.2f} more"
    )
    fits = np.array([each.least_leaf for each in candidates]) >= 20
    off = np.array([each.priors["in-sample"] - each.fresh for each in candidates])
    print(
        f"in-sample priors are {off[~fits].mean():+.3f} off where a leaf may have fewer than 20 rows, "
        f"{off[fits].mean():+.3f} elsewhere: only a model that hardly fits may be asked about with one"
    )


def main(argv: list[str] | None = None) -> None:
    """Run the search, ask, print the table; write it, and a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few training rows, few candidates")
    parser.add_argument("--repetitions", type=int, help="of the guards' noise")
    parser.add_argument("--seed", type=int, default=0, help="of the split and the search")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--output", type=Path, default=Path("priors_matter"), help="folder for table and picture"
    )
    options = parser.parse_args(argv)
    sizes = QUICK if options.quick else FULL
    repetitions = options.repetitions or (3 if options.quick else 20)
    data = split(sizes, options.seed)
    fits = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(fit)(data, parameters) for parameters in propose(sizes.candidates, options.seed)
    )
    candidates = list(tqdm(fits, total=sizes.candidates, desc="forests", leave=False, disable=None))
    lines, histories = [], {}
    for tolerance in TOLERANCES:
        for prior in PRIORS:
            asked = {"prior": prior, "tolerance": tolerance}
            runs = [ask(data, candidates, **asked, seed=seed) for seed in range(repetitions)]
            lines.append(summary(runs, candidates, **asked))
            if tolerance == TOLERANCES[len(TOLERANCES) // 2]:
                histories[prior] = runs[0]
    table = pd.DataFrame(lines)
    print(
        f"UCI Adult, accuracy: {sizes.train:,} training, {sizes.holdout:,} holdout and {len(data.fresh[1]):,} "
        f"fresh rows; {sizes.candidates} forests, the guards' noise drawn {repetitions} times\n"
    )
    formats = {"answered": "{:.1f}".format, "charges": "{:.1f}".format}
    print(table.set_index(["tolerance", "prior"]).to_string(formatters=formats, float_format="{:.4f}".format))
    verdict(table, candidates, data)
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "priors_matter.csv", index=False, float_format="%.6g")
    picture(candidates, histories, TOLERANCES[len(TOLERANCES) // 2], options.output / "priors_matter.png")
    print(f"\nwrote a table and a picture to {options.output}")


if __name__ == "__main__":
    main()
