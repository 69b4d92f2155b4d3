"""Label public data by the votes of private teachers, and pay only where the teachers disagree.

PATE: private rows are dealt to many teachers, each fits a model on its own rows, and the teachers vote on public rows.
One private row moves one vote. The label is drawn by the exponential mechanism over the votes, inside the boundary
wrapper: where most teachers agree it is free, and where no label dominates the answer is "boundary", which is a charge.
The declared epsilon is that of all labels together, and the interaction stops when its charges are spent.

Plain composition is shown beside it twice: what the same number of calls of the same exponential mechanism costs, and
how accurate the labels are if each call is made noisier, so that the same epsilon pays for all queries.

    python examples/pate_labelling.py                      # about 10 s
    python examples/pate_labelling.py --data digits        # too few rows: agreement is weak, and so is the saving

The draws are exact. Votes are integers, and the mechanism's weights are powers of one rational number, exp(-epsilon/2)
rounded up at the 64th binary digit: they are the exact weights of a marginally smaller epsilon.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from reusable_holdout.accounting.composition import optimal_composition, optimal_epsilon_each
from reusable_holdout.accounting.target_charging import boundary_q, boundary_wrapped_epsilon
from reusable_holdout.datasets import load_adult
from reusable_holdout.mechanisms.selection.exponential import exponential_mechanism
from reusable_holdout.mechanisms.targets.boundary import boundary_wrapper, exponential_weights
from reusable_holdout.mechanisms.targets.interaction import TargetInteraction
from reusable_holdout.plotting import INK, pyplot

if TYPE_CHECKING:
    from numpy.typing import NDArray

DELTA = 1e-6
COMPONENTS = 20


class Setting(NamedTuple):
    """How much of a data set is public, how many teachers share the rest, and (epsilon, charges) to try."""

    queries: int
    teachers: int
    budgets: list[tuple[float, int]]


SETTINGS = {
    "digits": Setting(queries=600, teachers=100, budgets=[(8.0, 20), (50.0, 60)]),
    "adult": Setting(queries=5_000, teachers=500, budgets=[(2.0, 40), (4.0, 160), (8.0, 100)]),
}


class Votes(NamedTuple):
    """Teachers' votes on the public rows, shape (queries, classes), and the true classes."""

    counts: NDArray[np.int64]
    truth: NDArray[np.int64]


class Run(NamedTuple):
    """What one interaction released: a class, or -1 for the boundary, per query asked; and what one call cost."""

    labels: NDArray[np.int64]
    epsilon_inside: float


def load(name: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Features and classes 0, 1, ... of a data set."""
    if name == "digits":
        X, y = load_digits(return_X_y=True, as_frame=True)
    else:
        X, y = load_adult()
    return X, y.to_numpy().astype(np.int64)


def vote(name: str, *, seed: int) -> Votes:
    """Deal the private rows to the teachers, fit them, and let them vote on the public rows."""
    X, y = load(name)
    X_private, X_public, y_private, truth = train_test_split(
        X, y, test_size=SETTINGS[name].queries, random_state=seed
    )
    text = X.select_dtypes(exclude="number").columns
    codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    features = make_pipeline(
        make_column_transformer((codes, text), remainder=StandardScaler()),
        PCA(COMPONENTS, random_state=seed),
    ).fit(X_public)  # on public rows alone: a private row must reach one teacher only
    private, public = features.transform(X_private), features.transform(X_public)
    dealt = np.random.default_rng(seed).permutation(len(private))
    counts = np.zeros((len(public), int(truth.max()) + 1), dtype=np.int64)
    for own in np.array_split(dealt, SETTINGS[name].teachers):
        counts[np.arange(len(public)), predictions(private[own], y_private[own], public)] += 1
    return Votes(counts, truth)


def predictions(
    X: NDArray[np.float64], y: NDArray[np.int64], public: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Votes of one teacher; one who has seen a single class always votes for it."""
    if len(np.unique(y)) == 1:
        return np.full(len(public), y[0])
    return np.asarray(RidgeClassifier(alpha=5.0).fit(X, y).predict(public), dtype=np.int64)


def wrapper_q(epsilon: float) -> float:
    """Least chance of the boundary, given the epsilon of a call of the wrapper."""
    return boundary_q(boundary_wrapped_epsilon(epsilon), epsilon)


def label(counts: NDArray[np.int64], *, epsilon: float, charges: int, seed: int | None) -> Run:
    """Ask for the label of every row until the charges are spent."""
    interaction = TargetInteraction(charges=charges, epsilon=epsilon, delta=DELTA, q=wrapper_q)
    inside = boundary_wrapped_epsilon(interaction.epsilon_each)
    labels: list[int] = []
    for place, row in enumerate(counts.tolist()):
        if interaction.halted:
            break
        weights = exponential_weights(row, epsilon=inside)
        chosen = interaction.run(
            lambda weights=weights, place=place: boundary_wrapper(weights, seed=own_seed(seed, place)),
            hit=lambda outcome: outcome is None,
            epsilon=interaction.epsilon_each,
            q=interaction.q,
        )
        labels.append(-1 if chosen is None else chosen)
    return Run(np.array(labels), inside)


def label_plainly(counts: NDArray[np.int64], *, epsilon: float, seed: int | None) -> NDArray[np.int64]:
    """Label every row by the exponential mechanism, with an equal part of the budget each."""
    each = optimal_epsilon_each(epsilon=epsilon, count=len(counts), delta=DELTA)
    return np.array(
        [
            exponential_mechanism(row, epsilon=each, seed=own_seed(seed, place))
            for place, row in enumerate(counts)
        ]
    )


def own_seed(seed: int | None, place: int) -> int | None:
    """Independent choices for every query."""
    return None if seed is None else seed * 1_000_003 + place


def plain_epsilon(epsilon: float, calls: int) -> float:
    """Epsilon of so many calls by the best composition there is."""
    return min(calls * epsilon, optimal_composition(epsilon=epsilon, count=calls, delta=DELTA))


def report(name: str, votes: Votes, *, seed: int | None) -> tuple[list[dict[str, object]], list[Run]]:
    """One row of the table per budget, and what was released."""
    rows, runs = [], []
    for epsilon, charges in SETTINGS[name].budgets:
        run = label(votes.counts, epsilon=epsilon, charges=charges, seed=seed)
        plainly = label_plainly(votes.counts, epsilon=epsilon, seed=seed)
        labelled = run.labels >= 0
        asked = len(run.labels)
        rows.append(
            {
                "data": name,
                "epsilon": epsilon,
                "asked": asked,
                "labelled": int(labelled.sum()),
                "boundary": f"{int((~labelled).sum())} of {charges}",
                "accuracy": f"{(run.labels == votes.truth[:asked])[labelled].mean():.3f}",
                "plain: epsilon": f"{plain_epsilon(run.epsilon_inside, asked):.1f}",
                "plain: accuracy": f"{(plainly == votes.truth).mean():.3f}",
            }
        )
        runs.append(run)
    return rows, runs


def picture(runs: dict[str, list[Run]], path: Path) -> None:
    """Draw what the same calls cost by plain composition against the declared epsilon."""
    figure, axes = pyplot().subplots(
        1, len(runs), figsize=(5.5 * len(runs), 4), squeeze=False, layout="constrained"
    )
    for ax, (name, of_data) in zip(axes[0], runs.items(), strict=True):
        for (epsilon, charges), run, style in zip(
            SETTINGS[name].budgets, of_data, ("-", "--", ":"), strict=False
        ):
            calls = np.unique(np.linspace(1, len(run.labels), 60).astype(int))
            plain = [plain_epsilon(run.epsilon_inside, int(count)) for count in calls]
            which = f"{charges} charges"
            ax.plot(calls, plain, style, color=INK["charge"], label=f"plain composition ({which})")
            ax.plot(
                [1, len(run.labels)],
                [epsilon, epsilon],
                style,
                color=INK["answer"],
                label=f"target charging ({which})",
            )
        ax.set(title=name, xlabel="queries asked", ylabel=f"epsilon at delta = {DELTA:g}", yscale="log")
        ax.grid(alpha=0.2)
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def main(argv: list[str] | None = None) -> None:
    """Label the public part of real data sets, and say what it costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=[*SETTINGS, "both"], default="both")
    parser.add_argument("--split-seed", type=int, default=0, help="which rows are public (default 0)")
    parser.add_argument("--seed", type=int, help="for reproducible labels, which protect nobody")
    parser.add_argument("--out", type=Path, default=Path("pate_labelling.png"))
    options = parser.parse_args(argv)
    rows: list[dict[str, object]] = []
    runs: dict[str, list[Run]] = {}
    for name in SETTINGS if options.data == "both" else [options.data]:
        votes = vote(name, seed=options.split_seed)
        unprotected = float((votes.counts.argmax(axis=1) == votes.truth).mean())
        commonest = float(np.bincount(votes.truth).max() / len(votes.truth))
        print(
            f"{name}: {SETTINGS[name].teachers} teachers, {len(votes.truth):,} queries; accuracy of the unprotected "
            f"plurality {unprotected:.3f}, of always the commonest class {commonest:.3f}"
        )
        found, runs[name] = report(name, votes, seed=options.seed)
        rows += found
    print(f"\nall labels together are (epsilon, {DELTA:g})-differentially private")
    print(pd.DataFrame(rows).to_string(index=False))
    print(
        '\n"plain: epsilon" is what as many calls of the same exponential mechanism cost by the best composition;'
    )
    print('"plain: accuracy" is that of labels for all queries if the same epsilon pays for them equally.')
    picture(runs, options.out)
    print(f"\nwrote {options.out}")


if __name__ == "__main__":
    main()
