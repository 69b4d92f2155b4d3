"""Release gates on few tasks: what loops of equal systems pass, and what a gate shows nine times in ten.

Each loop asks a gate about 20 new systems, one after the other, each against the same old one, on the same tasks. Then
graded scores: a plan is told the spread of differences, which is large, small, or of groups whose tasks are alike.
"""

import argparse
import math
import os

import numpy as np
from scipy import stats

os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"

from reusable_holdout import Difference, Plan, ReusableHoldout, Rows
from reusable_holdout.errors import Halted
from reusable_holdout.metrics import mae

RELEASES, SPREAD, CHARGES = 20, 0.35, 3


def differences(rng, rows, better):
    """Draw the difference of two systems on each task, -1, 0 or 1, in expectation `better`."""
    differ = max(SPREAD**2, better)
    return rng.choice([1, -1, 0], size=rows, p=[(differ + better) / 2, (differ - better) / 2, 1 - differ])


def made_guard(rows):
    """Return a guard for gates, and its labels."""
    labels = np.zeros(rows, dtype=int)
    labels[::2] = 1
    plan = Plan(queries=RELEASES, charges=CHARGES, gates=True, pair_spread=SPREAD)
    return ReusableHoldout(None, labels, plan=plan, allow={"vacuous", "no witness"}), labels


def accepts(rng, rows, better, releases):
    """Return True if a loop accepts any of its releases."""
    guard, labels = made_guard(rows)
    accepted = False
    with guard:
        for _ in range(releases):
            gain = differences(rng, rows, better)
            tied = rng.random(rows) < 0.5  # where both are right, or both wrong
            new, old = np.where(gain == 0, tied, gain > 0), np.where(gain == 0, tied, gain < 0)
            pair = Difference(np.where(new, labels, 1 - labels), np.where(old, labels, 1 - labels))
            try:
                accepted |= guard.gate(pair, at_least=0.0).outcome == "better"
            except Halted:
                break
    return accepted


def shown_by_t(rows):
    """Return the difference that a t interval with Bonferroni's correction shows nine times in ten."""
    quantile = stats.t.ppf(1 - 0.05 / RELEASES, rows - 1)
    return (quantile + stats.norm.ppf(0.9)) * SPREAD / math.sqrt(rows)


def shown_when_graded(rng, loops, rows, spread, group):
    """Return what a gate of graded losses says it shows, and in how many loops a system better by that is accepted.

    Differences are normal, and the same for all rows of a group.
    """
    plan = Plan(queries=RELEASES, charges=CHARGES, gates=True, pair_spread=spread)
    groups = np.arange(rows) // group
    accepted = 0
    for _ in range(loops):
        holdout = Rows(None, np.zeros(rows), groups=groups if group > 1 else None)
        with ReusableHoldout(
            holdout, metric=mae(lower=0, upper=1), plan=plan, allow={"vacuous", "no witness"}
        ) as guard:
            shown = guard.plan.shown_difference(pairs=True)
            gain = rng.normal(shown, spread, rows // group)[groups].clip(-1.0, 1.0)
            pair = Difference((1.0 - gain) / 2.0, (1.0 + gain) / 2.0)
            accepted += guard.gate(pair, at_least=0.0).outcome == "better"
    return shown, accepted


def main(loops):
    """Print what loops accept, and the differences that are shown."""
    rng = np.random.default_rng(0)
    for rows in (115, 200, 500):
        plan = Plan(rows, queries=RELEASES, charges=CHARGES, gates=True, pair_spread=SPREAD)
        shown = plan.shown_difference(pairs=True)
        other = shown_by_t(rows)
        print(
            f"{rows} tasks: shown nine times in ten {shown:.4f}, by t and Bonferroni {other:.4f} ({shown / other:.2f})"
        )
        equal = sum(accepts(rng, rows, 0.0, RELEASES) for _ in range(loops))
        better = sum(accepts(rng, rows, shown, 1) for _ in range(loops))
        print(f"  loops of {RELEASES} equal systems that accepted one: {equal} of {loops}")
        print(f"  systems that are better by what is shown, and were accepted: {better} of {loops}")
    for spread, group in ((0.2, 1), (0.05, 1), (0.01, 1), (0.2, 4)):
        asked = 10 * loops
        shown, better = shown_when_graded(rng, asked, 400, spread, group)
        print(
            f"400 graded tasks, spread {spread}, groups of {group}: shown {shown:.4f}, accepted {better} of {asked}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loops", type=int, default=200)
    main(parser.parse_args().loops)
