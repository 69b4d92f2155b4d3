"""Rows in time order: intervals where each row depends on the rows before it, and backtests without an edge.

Three worlds. In each a model is right on a row with a chance that depends on the rows before it: an autoregression of
everybody's difficulty, which past mistakes raise; two regimes that last; losses whose size comes in clusters. The mean
of these chances is known exactly. A guard for rows in time order, and one for independent rows, are asked in all ways,
by an analyst who asks about what she was told. A run misses if one interval misses.

Then a backtest: 200 trading rules on returns without an edge, whose size comes in clusters. The best rule's hit rate is
reported, by a plain holdout with its interval, and by the guard's final.

    python examples/time_order.py            # about ten minutes on two cores
    python examples/time_order.py --quick
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

from reusable_holdout import Difference, Plan, ReusableHoldout, Rows
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.metrics import mae

ROWS, MODELS, RULES = 1_000, 12, 200
WORLDS = ("autoregressive", "regimes", "clusters")


def drawn(world: str, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw losses of some models, and their conditional expectations, each of shape (models, rows)."""
    skill, state = rng.normal(1.5, 0.3, MODELS), 0.0
    losses, expected = np.empty((2, MODELS, ROWS))
    for row in range(ROWS):
        if world == "autoregressive":
            state = (
                0.98 * state + 0.2 * rng.standard_normal() + (0.1 * losses[:, row - 1].mean() if row else 0.0)
            )
        elif world == "regimes":
            state = (2.0 - state) if rng.random() < 0.01 else state
        else:
            state = 0.95 * state + 0.3 * rng.standard_normal()
        if world == "clusters":  # graded losses, whose size depends on the state
            expected[:, row] = 0.5 / (1.0 + np.exp(skill - state))
            losses[:, row] = expected[:, row] * rng.choice([0.0, 2.0], size=MODELS)
        else:
            expected[:, row] = 1.0 / (1.0 + np.exp(skill - state))
            losses[:, row] = rng.random(MODELS) < expected[:, row]
    return losses, expected.mean(axis=1)


def misses(world: str, order: str | None, seed: int) -> dict[str, Any]:
    """Ask one guard in all ways; return if an interval missed, and the width of the final."""
    os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"
    rng = np.random.default_rng([seed, WORLDS.index(world)])
    losses, expected = drawn(world, rng)
    graded = {"spread": 0.25} if world == "clusters" else {}
    plan = Plan(queries=60, charges=10, estimate=0.2, noise=0.0, reveals=1, choices=[3], **graded)
    rows, missed = Rows(None, np.zeros(ROWS), order=order), False
    with ReusableHoldout(
        rows, metric=mae(lower=0, upper=1), plan=plan, seed=seed, allow={"vacuous"}
    ) as guard:

        def held(answer: Any, truth: float) -> Any:
            nonlocal missed
            missed |= not answer.low - 1e-9 <= truth <= answer.high + 1e-9
            return answer

        best, told = 0, losses[:, :100].mean(axis=1)
        try:
            for model in range(MODELS):
                prior = float(np.clip(told[model] + rng.normal(0.0, 0.03), 0.0, 1.0))
                told[model] = held(guard.evaluate(losses[model], prior=prior), expected[model]).value
                best = int(np.argmin(told[: model + 1]))
                pair = Difference(losses[model], losses[best])
                if model != best:
                    held(guard.evaluate(pair, prior=0.0), expected[model] - expected[best])
                held(guard.gate(losses[model], at_least=float(told[model])), expected[model])
            held(guard.reveal(losses[best], prior=float(told[best])), expected[best])
            chosen = guard.choose(list(losses[:3]), told[:3].tolist())
            held(chosen.answer, expected[chosen.index])
        except (Halted, InputError):
            pass
        final = held(guard.final(losses[best]), expected[best])
    return {
        "world": world,
        "order": order or "independent",
        "missed": missed,
        "width": final.high - final.low,
    }


def claims_an_edge(seed: int) -> tuple[bool, bool]:
    """Tune 200 rules on returns without an edge; return if a plain holdout claims one, and if the guard does."""
    os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"
    rng, size = np.random.default_rng(seed), 0.0
    signs = rng.choice([0, 1], 2 * ROWS)
    returns = np.empty(2 * ROWS)
    for day in range(2 * ROWS):
        size = 0.95 * size + 0.2 * rng.standard_normal()
        returns[day] = (2 * signs[day] - 1) * np.exp(size)
    past = np.concatenate([[0.0], np.cumsum(returns)])
    windows = rng.integers(1, 60, (RULES, 2))
    days = np.arange(60, 2 * ROWS)
    fast, slow = (past[days] - past[days - windows[:, [one]]] for one in (0, 1))
    calls = ((fast / windows[:, [0]] > slow / windows[:, [1]]) ^ (rng.random((RULES, 1)) < 0.5)).astype(int)
    labels, held = signs[ROWS:], calls[:, ROWS - 60 :]
    hits = (held == labels).mean(axis=1)
    best = int(np.argmax(hits))
    plain = stats.binomtest(round(hits[best] * ROWS), ROWS).proportion_ci(0.95).low > 0.5
    priors = (calls[:, : ROWS - 60] == signs[60:ROWS]).mean(axis=1)
    plan = Plan(queries=RULES, charges=3, estimate=0.5)
    with ReusableHoldout(Rows(None, labels, order="time"), plan=plan, seed=seed, allow={"vacuous"}) as guard:
        final = guard.final(list(held), priors.tolist()).best
    return bool(plain), final.low > 0.5


def main(argv: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="twenty runs of each")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    runs = 20 if options.quick else 1_000
    tasks = [(world, order, seed) for world in WORLDS for order in ("time", None) for seed in range(runs)]
    found = pd.DataFrame(Parallel(n_jobs=options.jobs)(delayed(misses)(*one) for one in tasks))
    table = found.groupby(["world", "order"]).agg(missed=("missed", "sum"), width=("width", "mean"))
    print(f"{runs} runs of each; at most one in twenty may miss\n\n{table.round(4)}\n")
    edges = np.array(Parallel(n_jobs=options.jobs)(delayed(claims_an_edge)(seed) for seed in range(runs)))
    plain, guarded = edges.sum(axis=0)
    print(
        f"{RULES} rules without an edge: a plain holdout claims one in {plain} of {runs} runs, the guard in {guarded}"
    )


if __name__ == "__main__":
    main()
