"""What evidence buys for graded losses and for differences of two models: tolerances, and widths of reveals.

First: the tolerance at which 95% of honest questions agree, their priors one standard error off on the worse side;
fifty questions, in the state before the last of three charges, each of the dearest. "By distance" is the same for a
distance past a threshold, whose intervals know nothing of the rows' spread (kl-Chernoff).

Second: a guard of 5,000 rows, 22% of them positive, and a calibrated model. After so many charges a reveal is asked
for, its prior one standard error off; its half-width less half its cell, with the width it tells paid for.

    python examples/graded_losses.py             # about five minutes
    python examples/graded_losses.py --quick
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout.certainty import Certificate
from reusable_holdout.ways import State, Terms, Told

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

QUESTIONS, CHARGES, HONEST = 50, 3, 0.95
ROWS, POSITIVE = 5_000, 0.22


class Case(NamedTuple):
    """Rows of one kind, in the metric's unit."""

    name: str
    bounds: tuple[float, float]
    mean: float
    spread: float
    draw: Callable[[np.random.Generator, int], NDArray[np.float64]]


def _scores(rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """Beta-distributed, of mean .8 and standard deviation .2."""
    total = 0.8 * 0.2 / 0.2**2 - 1.0
    return rng.beta(0.8 * total, 0.2 * total, rows)


CASES = (
    Case("scores, sd .2", (0.0, 1.0), 0.8, 0.2, _scores),
    Case(
        "paired scores, sd .25", (-1.0, 1.0), 0.0, 0.25, lambda rng, n: rng.normal(0.0, 0.25, n).clip(-1, 1)
    ),
    Case(
        "two accuracies, 10% of rows differ",
        (-1.0, 1.0),
        0.0,
        0.1**0.5,
        lambda rng, n: rng.choice([-1.0, 0.0, 1.0], size=n, p=[0.05, 0.9, 0.05]),
    ),
    Case(
        "absolute error, sd .8",
        (0.0, 10.0),
        1.0,
        0.8,
        lambda rng, n: rng.gamma(1 / 0.64, 0.64, n).clip(0, 10),
    ),
)


def plan_of(case: Case, rows: int) -> Plan:
    """Plan with the spread as its guess."""
    return Plan(
        rows=rows,
        queries=QUESTIONS,
        charges=CHARGES,
        bounds=case.bounds,
        family="mean",
        estimate=case.mean,
        spread=case.spread,
    )


def agreed(
    certificate: Certificate, prior: float, tolerance: float, values: NDArray[np.float64], length: float
) -> bool:
    """Whether rows in [0, 1] certify it, with the noise against them."""
    evidence = certificate.evidence(prior, tolerance)
    needed = certificate.evidence_needed(evidence, length) + certificate.evidence_tail(evidence)
    return evidence.of_rows(values) >= needed


def least_tolerance(case: Case, rows: int, draws: int) -> float:
    """Tolerance at which enough honest questions are agreed."""
    plan = plan_of(case, rows)
    certificate = plan.scores
    before = CHARGES - 1
    length = certificate.length(charges=before, nats=before * certificate.charge_nats)
    mean, error = plan.unit(case.mean), case.spread / rows**0.5 / plan.span
    drawn = [case.draw(np.random.default_rng([rows, seed]), rows) for seed in range(draws)]
    samples = [(one - plan.lower) / plan.span for one in drawn]

    def share(tolerance: float, side: float) -> float:
        return float(
            np.mean([agreed(certificate, mean + side * error, tolerance, one, length) for one in samples])
        )

    refused, kept = 0.0, 1.0
    while kept - refused > 2e-3 * kept:
        middle = (refused + kept) / 2.0
        if min(share(middle, side) for side in (-1.0, 1.0)) >= HONEST:
            kept = middle
        else:
            refused = middle
    return kept * plan.span


def by_distance(case: Case, rows: int) -> float:
    """The same for a distance: the deviation is 1 + 1.645 standard errors."""
    stated = {
        "rows": rows,
        "queries": QUESTIONS,
        "charges": CHARGES,
        "bounds": case.bounds,
        "family": "bounded",
    }
    plan = Plan(**stated, estimate=case.mean)  # type: ignore[arg-type]
    certificate = plan.scores
    before = CHARGES - 1
    length = certificate.length(charges=before, nats=before * certificate.charge_nats)
    mean, error, widest = plan.unit(case.mean), case.spread / rows**0.5 / plan.span, 0.0
    for side in (-1.0, 1.0):
        prior, value = mean + side * error, mean - side * 1.645 * error
        low, high = certificate.around(value, value, length=length, share=0.8)
        widest = max(widest, prior - float(low) if side > 0 else float(high) - prior)
    return widest * plan.span


def tolerances(draws: int) -> pd.DataFrame:
    """First table."""
    found = [
        {
            "rows": case.name,
            "n": rows,
            "by distance": by_distance(case, rows),
            "by evidence": least_tolerance(case, rows, draws),
            "the plan's": plan_of(case, rows).tolerance,
        }
        for case in CASES
        for rows in (500, 2_000)
    ]
    return pd.DataFrame(found)


def revealed(metric: str, charges: int, seed: int) -> dict[str, Any]:
    """One reveal after so many charges."""
    rng = np.random.default_rng([9, seed])
    logits = rng.normal(-1.75, 1.5, ROWS)
    predicted = 1.0 / (1.0 + np.exp(-logits))
    labels = (rng.random(ROWS) < predicted).astype(int)
    clipped = predicted.clip(0.01, 0.99)
    losses = {
        "brier": (predicted - labels) ** 2,
        "log_loss": -np.log(np.where(labels == 1, clipped, 1.0 - clipped)),
    }[metric]
    mean, spread = float(losses.mean()), float(losses.std())
    guard = ReusableHoldout(
        None,
        labels,
        metric=metric,
        seed=seed,
        plan=Plan(queries=100, charges=6, reveals=1, estimate=mean, spread=spread),
    )
    upper = guard.metric.upper
    for made in range(charges):
        assert guard.evaluate(predicted * (1.0 - 1e-3 * made), prior=upper).charged
    answer = guard.reveal(predicted, prior=mean - spread / ROWS**0.5)
    way, told = guard._view.ways.reveal, Told.parse(answer.told)
    unit, span = guard.plan.unit(answer.prior), guard.plan.span
    near, far = way._cell(told.place, Terms(unit, way.unit(unit, State(), None)))
    return {
        "metric": metric,
        "value": mean,
        "charges": charges,
        "half-width": (answer.high - answer.low - span * abs(far - near)) / 2.0,
        "nats": answer.nats,
    }


def main(arguments: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="30 samples instead of 200")
    options = parser.parse_args(arguments)
    print("tolerance at which 95% of honest questions agree\n")
    print(tolerances(30 if options.quick else 200).to_string(index=False, float_format="{:.3f}".format))
    print(f"\nhalf-width of a reveal's confidence set, {ROWS:,} rows, {POSITIVE:.0%} positive\n")
    each = pd.DataFrame(
        [
            revealed(metric, charges, seed)
            for metric in ("log_loss", "brier")
            for charges in (0, 5)
            for seed in range(3 if options.quick else 20)
        ]
    )
    mean = each.groupby(["metric", "charges"], sort=False).mean().reset_index()
    print(mean.to_string(index=False, float_format="{:.4f}".format))


if __name__ == "__main__":
    main()
