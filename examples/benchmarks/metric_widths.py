"""How much wider a final is than the normal interval of one look, per metric, and whether its interval holds.

5,000 rows, 22% of them positive; nothing was charged before the final, and the plan's guesses are right. The normal
interval has the same level, and the standard deviation that the metric has over the runs. Then the share of runs in
which the interval misses the population's value: rows are few, and the level is `FEW` (a final's own is far lower).

    python examples/benchmarks/metric_widths.py           # about three minutes
    python examples/benchmarks/metric_widths.py --quick
"""

from __future__ import annotations

import argparse
import math
import os
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reusable_holdout import Plan, ReusableHoldout, Rows
from reusable_holdout.certainty import Certificate
from reusable_holdout.metrics import BoundMetric, Metric, brier, log_loss, mae, mse, resolve_metric
from reusable_holdout.rules.samples import sample_of

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

ROWS, POSITIVE, APART = 5_000, 0.22, 1.16  # distance of the classes' scores, in standard deviations
FEW, FEW_ROWS = 0.1, 120
CUT = NormalDist().inv_cdf(1.0 - POSITIVE) + APART * POSITIVE
NAMES = (
    "accuracy f1 jaccard precision recall f1_macro f1_weighted balanced_accuracy matthews_corrcoef roc_auc"
)
METRICS: dict[str, Metric] = {name: resolve_metric(name) for name in [*NAMES.split(), "average_precision"]}
GRADED = log_loss(), brier(), mae(lower=-3, upper=4), mse(lower=-3, upper=4)
METRICS |= {metric.name: metric for metric in GRADED}


def drawn(metric: Metric, rng: np.random.Generator, rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw labels and predictions of rows of normal scores; as real targets they are predicted with an error of 1.5."""
    labels = (rng.random(rows) < POSITIVE).astype(np.int64)
    scores = rng.normal(size=rows) + APART * labels
    odds = np.exp(APART * scores - APART**2 / 2.0) * POSITIVE / (1.0 - POSITIVE)
    if metric.response == "labels":
        return labels, (scores > CUT).astype(np.int64)
    if metric.response == "values":
        return scores, scores + 1.5 * rng.normal(size=rows)
    return labels, odds / (1.0 + odds)


def bound_of(metric: Metric, seed: Any, rows: int) -> tuple[BoundMetric, NDArray[Any]]:
    """Bind a metric to rows that are drawn, and prepare the predictions."""
    labels, predicted = drawn(metric, np.random.default_rng(seed), rows)
    bound = metric.bind(labels, classes=None if metric.response == "values" else [0, 1])
    return bound, bound.prepare(predicted)


def certificate_of(metric: Metric, value: float, spread: float | None, rows: int) -> Certificate:
    """Return the certificate of a guard with one model in mind; the plan knows about what it will find."""
    labels, _ = drawn(metric, np.random.default_rng(0), rows)
    own = {} if metric.response == "values" else {"prevalence": POSITIVE}
    plan = Plan(queries=100, charges=3, estimate=value, spread=spread)
    guard = ReusableHoldout(Rows(None, labels, **own), metric=metric, plan=plan, seed=0, allow={"vacuous"})
    return guard.plan.scores


def value_and_spread(metric: Metric) -> tuple[float, float | None]:
    """Return the population's value, from very many rows, and the spread of a mean's terms, if it takes one."""
    bound, query = bound_of(metric, 1, 400 * ROWS)
    graded = bound.by_rows and bound.family == "bounded"
    spread = float(bound.row_terms(query).std()) / 2**32 * (metric.upper - metric.lower) if graded else None
    return bound.statistic.value(query), spread


def unit_ends(
    certificate: Certificate, bound: BoundMetric, query: NDArray[Any], nats: float
) -> tuple[float, float]:
    """Return the interval, in [0, 1], that a final would tell at this level."""
    if certificate.spread is None:
        value = int(bound.score(query[None])[0]) / 2**32
        ends = certificate.bound.of_rows(bound.effective_rows)
        return float(ends.lower(value, log_level=-nats)), float(ends.upper(value, log_level=-nats))
    return sample_of(bound, query).ends(certificate.evidence_set(nats, certificate.estimate))


def unit_of(metric: Metric, value: float) -> float:
    """Return a value in [0, 1], where greater is better."""
    share = (value - metric.lower) / (metric.upper - metric.lower)
    return share if metric.greater_is_better else 1.0 - share


def width(name: str, runs: int) -> dict[str, float | str]:
    """Return how many times the normal interval's width a metric's final has."""
    metric = METRICS[name]
    value, spread = value_and_spread(metric)
    certificate = certificate_of(metric, value, spread, ROWS)
    nats = certificate.needed(certificate.final_length(charges=0, nats=0.0), 0.5)
    one_look = NormalDist().inv_cdf(1.0 - math.exp(-certificate.needed(-math.log(0.75 * 0.9), 0.5)))
    values, wide = [], []
    for run in range(3 * runs):
        bound, query = bound_of(metric, [2, run], ROWS)
        values.append(unit_of(metric, bound.statistic.value(query)))
        if run < runs // 10:
            low, high = unit_ends(certificate, bound, query, nats)
            wide.append((high - low) / 2.0)
    factor = float(np.mean(wide) / (one_look * np.std(values)))
    half = float(np.mean(wide)) * (metric.upper - metric.lower)
    return {"metric": name, "value": value, "half-width": half, "times normal": factor}


def misses(name: str, runs: int) -> float:
    """Return the share of runs in which an end, each at half of `FEW`, misses the population's value."""
    metric = METRICS[name]
    value, spread = value_and_spread(metric)
    certificate = certificate_of(metric, value, spread, FEW_ROWS)
    missed, truth = 0, unit_of(metric, value)
    for run in range(runs):
        low, high = unit_ends(certificate, *bound_of(metric, [3, run], FEW_ROWS), -math.log(FEW / 2.0))
        missed += not low <= truth <= high
    return missed / runs


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="300 runs instead of 1,000, of four metrics")
    quick = parser.parse_args(arguments).quick
    runs, names = (300, ["f1", "f1_macro", "roc_auc", "log_loss"]) if quick else (1_000, list(METRICS))
    found = pd.DataFrame([width(name, runs) | {"misses": misses(name, runs)} for name in names])
    print(found.to_string(index=False, float_format="{:.4f}".format))


if __name__ == "__main__":
    main()
