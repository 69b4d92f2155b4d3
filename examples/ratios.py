"""How wide a reveal is of metrics that are no means over rows: F1, precision, Jaccard, balanced accuracy and rankings.

A guard of 5,000 rows, 22% of them positive. After so many charges a reveal is asked for, its prior one standard error
off. "By distance" is the confidence bound alone that the same rows give a guard whose noise is stated, and which
therefore rests on bounded differences and class counts; without noise the rows decide by evidence. Class counts are
guessed right. Half-widths are less half the cell that is told, with the width that is told paid for.

Then the tolerance of a plan for 10,000 rows, half of them positive, 1,000 questions, 5 charges and an estimate of .9.

    python examples/ratios.py             # about half a minute
    python examples/ratios.py --quick
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reusable_holdout import Plan, ReusableHoldout, Rows
from reusable_holdout.metrics import resolve_metric
from reusable_holdout.ways import State, Terms, Told

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

ROWS, POSITIVE, QUERIES = 5_000, 0.22, 100

# what a model must score to have the values that are named: distance of the classes, share that is predicted positive
CASES = {
    "f1": (1.16, 0.22),
    "precision": (1.12, 0.22),
    "jaccard": (1.16, 0.22),
    "balanced_accuracy": (1.05, 0.42),
    "roc_auc": (1.04, None),
    "average_precision": (1.08, None),
}


def drawn(metric: str, seed: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Labels, and what a model predicts of them."""
    distance, share = CASES[metric]
    rng = np.random.default_rng([11, seed])
    labels = (rng.random(ROWS) < POSITIVE).astype(np.int64)
    scores = rng.normal(size=ROWS) + distance * labels
    if share is None:
        return labels, scores
    return labels, (scores > np.quantile(scores, 1.0 - share)).astype(np.int64)


def revealed(metric: str, charges: int, seed: int) -> dict[str, Any]:
    """One reveal after so many charges."""
    labels, predicted = drawn(metric, seed)
    value = resolve_metric(metric).measure(labels, predicted)
    guard = _guard(metric, labels, value, seed)
    for made in range(charges):
        wrong = predicted[::-1] if CASES[metric][1] is None else np.roll(predicted, made + 1)
        if CASES[metric][1] is None:
            wrong = wrong + 1e-3 * made
        assert guard.evaluate(wrong, prior=1.0).charged
    error = guard.plan.deviation_sd / 2**0.5
    answer = guard.reveal(predicted, prior=value - error)
    way, told = guard._view.ways.reveal, Told.parse(answer.told)
    near, far = way._cell(told.place, Terms(answer.prior, way.unit(answer.prior, State(), None)))
    return {
        "metric": metric,
        "charges": charges,
        "value": value,
        "half-width": (answer.high - answer.low - abs(far - near)) / 2.0,
        "holds": answer.low <= value <= answer.high,
    }


def _guard(
    metric: str, labels: NDArray[np.int64], estimate: float, seed: int, **more: Any
) -> ReusableHoldout:
    return ReusableHoldout(
        Rows(None, labels, prevalence=POSITIVE),
        metric=metric,
        seed=seed,
        plan=Plan(reveals=1, queries=QUERIES, charges=6, estimate=estimate, **more),
        allow={"vacuous"},
    )


def by_distance(metric: str, charges: int) -> float:
    """Confidence bound alone, of a guard with noise."""
    labels, predicted = drawn(metric, 0)
    value = resolve_metric(metric).measure(labels, predicted)
    plan = _guard(metric, labels, value, 0, noise=1e-6).plan
    certificate = plan.scores
    length = certificate.length(charges=charges, nats=charges * certificate.charge_nats)
    low, high = certificate.around(value, value, length=length, share=0.5)
    return float(high - low) / 2.0


def planned(metric: str) -> float:
    """Tolerance of a plan."""
    labels = np.arange(10_000) % 2
    guard = ReusableHoldout(None, labels, metric=metric, queries=1_000, charges=5, estimate=0.9, seed=0)
    return guard.plan.tolerance


def table(runs: int) -> pd.DataFrame:
    """Reveals of all metrics, after no charge and after five."""
    found = pd.DataFrame(
        [revealed(metric, charges, seed) for metric in CASES for charges in (0, 5) for seed in range(runs)]
    )
    means = found.groupby(["metric", "charges"], sort=False)[["value", "half-width"]].mean()
    means["widest"] = found.groupby(["metric", "charges"], sort=False)["half-width"].max()
    means["by distance"] = [by_distance(*key) for key in means.index]
    return means


def main(arguments: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="2 runs instead of 20")
    runs = 2 if parser.parse_args(arguments).quick else 20
    print(table(runs).to_string(float_format="{:.4f}".format))
    print()
    for metric in ("f1", "balanced_accuracy", "roc_auc"):
        print(f"{metric}: tolerance {planned(metric):.4f}")


if __name__ == "__main__":
    main()
