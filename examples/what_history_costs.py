"""What a history of charges costs, what it could cost at least, and how far attackers really get.

10,000 rows that are fair coins, 1,000 questions, confidence 0.95, after 0, 5 and 20 charges that may be anywhere.
Widths are how far a score may be from the population's without an interval that misses:

- vote: fresh coins are asked against 0.5, and the majority of those that deviate most is the next question;
- flips: some predictions of the best so far are turned, and kept if a prior beyond it says that this was good;
- blocks: two models that are opposite on one block of rows, and else alike, are compared until the block deviates; each
  block is then settled. Afterwards what all blocks say together is turned here and there until the questions end;
- any rule: what no code can undercut as long as a question's outcome may be any function of the rows, as a metric of
  one's own can be. Ask about independent coins at every node, and lead to one whose score is too far off if there is
  any: a code misses less than beta only if its nodes' tails sum to at most -ln(1 - beta);
- ours: the transcript code, where a charge tells which way alone (ln 2), and with the cells that are told (2 nats).

Then the description lengths of other codes where charges come late or early; and what the final gains by coding the
charges' places by the last one, in honest searches and in others.

    python examples/what_history_costs.py             # about three minutes
    python examples/what_history_costs.py --quick
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import binom, norm

from reusable_holdout import Plan
from reusable_holdout.certainty import THEORY, ConfidenceBound, TranscriptCode

ROWS, QUERIES, BETA = 10_000, 1_000, 0.05
SD = math.sqrt(ROWS) / 2.0  # of how many coins come up
BOUND = ConfidenceBound("binomial", rows=ROWS, sum_of_squares=1.0 / ROWS)
MOST = 21  # charges: the guard answers after the twentieth
WHICH_WAY, CELLS = math.log(2.0), 2.0  # nats of a charge
AGREED = 0.8  # share of a node's failure probability on the side that an agreed answer can miss


# ---- attacks: deviations of the last questions in sd, one for each run; -inf where the charges were never made


def vote(charges: int, runs: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Majority of the first coins that are charged, if enough are: their threshold charges as many on average."""
    beyond = binom.isf(charges / QUERIES / 2.0, ROWS, 0.5)
    enough = rng.binomial(QUERIES - 1, 2.0 * binom.sf(beyond, ROWS, 0.5), runs) >= charges
    right = np.full(runs, -np.inf)
    for run in np.flatnonzero(enough):
        tails = binom.sf(beyond, ROWS, 0.5) * rng.random(charges)
        counts = binom.isf(tails, ROWS, 0.5)  # one that deviates the other way joins reversed
        coins = rng.permuted(np.arange(ROWS) < counts[:, None], axis=1)
        for_it = coins.sum(axis=0) - charges / 2.0
        right[run] = (for_it > 0).sum() + rng.binomial((for_it == 0).sum(), 0.5)
    return (right - ROWS / 2.0) / SD


def flips(charges: int, runs: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Turn as many predictions of the best as gain most on average, and ask whether that was good; accuracy alone.

    What is known of the best is kept as a mean and a variance, as if it were normal; its score is exact.
    """
    right = rng.binomial(ROWS, 0.5, runs)
    mean, variance, made, best = np.zeros(runs), np.ones(runs), np.zeros(runs, int), np.full(runs, -np.inf)
    for query in range(QUERIES):
        asking = made < charges
        chance = np.where(asking, pace(charges - made, query), 1.0 / (QUERIES - query))
        limit = norm.isf(np.clip(chance, 0.001, 0.5))
        gain = norm.pdf(limit) / norm.sf(limit)
        kept = kept_share(mean, variance, gain)
        turned = np.clip(np.rint((1.0 - kept) / 2.0 * ROWS), 1, ROWS // 2).astype(int)
        kept = 1.0 - 2.0 * turned / ROWS
        spread = kept**2 * variance + 1.0 - kept**2
        tried = right + turned - 2 * rng.hypergeometric(right, ROWS - right, turned)
        found = (tried - ROWS / 2.0) / SD
        best = np.where(asking, best, np.maximum(best, found))
        charged = asking & (found >= kept * mean + np.sqrt(spread) * limit)
        missed = asking & ~charged
        loss, shared = norm.pdf(limit) / norm.cdf(limit), kept * variance
        lower = mean - shared / np.sqrt(spread) * loss
        narrower = variance - shared**2 / spread * loss * (loss + limit)
        mean = np.where(charged, kept * mean + np.sqrt(spread) * gain, np.where(missed, lower, mean))
        after = np.where(
            charged, spread * (1.0 + limit * gain - gain**2), np.where(missed, narrower, variance)
        )
        variance = np.maximum(after, 1e-4)
        right, made = np.where(charged, tried, right), made + charged
    return best


def blocks(charges: int, runs: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Settle one block of rows after the other by differences of two models that are opposite on it alone."""
    size = ROWS // charges
    right, made, best = np.zeros(runs, int), np.zeros(runs, int), np.full(runs, -np.inf)
    for query in range(QUERIES):
        asking = made < charges
        limit = norm.isf(pace(charges - made, query) / 2.0) * math.sqrt(size) / 2.0
        heads = rng.binomial(size, 0.5, runs)
        charged = asking & (np.abs(heads - size / 2.0) >= limit)
        last = np.flatnonzero(~asking)
        if last.size:
            here = (right[last] - ROWS / 2.0) / SD
            gain = norm.isf(np.clip(1.0 / (QUERIES - query), 0.0005, 0.3))
            kept = here / np.hypot(here, gain)
            turned = np.clip(np.rint((1.0 - kept) / 2.0 * ROWS), 1, ROWS // 2).astype(int)
            tried = right[last] + turned - 2 * rng.hypergeometric(right[last], ROWS - right[last], turned)
            best[last] = np.maximum(best[last], np.maximum(here, (tried - ROWS / 2.0) / SD))
        right = np.where(charged, right + np.maximum(heads, size - heads), right)
        made = made + charged
    return best


def pace(left: NDArray[np.int64], query: int) -> NDArray[np.float64]:
    """Chance of a charge that makes those that are left, and leaves some questions for what they taught."""
    return np.clip(0.8 * (left + 0.6) / (QUERIES - query), 0.002, 0.5)


def kept_share(
    mean: NDArray[np.float64], variance: NDArray[np.float64], gain: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Correlation with the best at which ``kept * mean + gain * sqrt(1 - kept^2 (1 - variance))`` is largest."""
    known = np.maximum(1.0 - variance, 1e-9)
    share = np.maximum(mean, 0.0) ** 2 / (known * (gain**2 * known + mean**2) + 1e-12)
    return np.sqrt(np.minimum(share, 1.0))


def reached(deviations: NDArray[np.float64]) -> float:
    """What is exceeded with probability beta, in the metric's unit: a valid interval is no narrower."""
    return float(np.quantile(deviations, 1.0 - BETA, method="lower")) * SD / ROWS


# ---- codes


def log_choose(whole: float, chosen: float) -> float:
    return float(gammaln(whole + 1) - gammaln(chosen + 1) - gammaln(whole - chosen + 1))


def deviation(log_level: float) -> float:
    """How far coins deviate with this probability, one way."""
    return float(BOUND.reach_low(0.5, log_level=log_level)) - 0.5


def ours(charges: int, nats: float) -> float:
    """Deviation from which on an interval of the guard's misses, wherever the charges were."""
    length = TranscriptCode(queries=QUERIES, charges=MOST).length(
        query=QUERIES, charges=charges, nats=nats * charges
    )
    return deviation(math.log(BETA * AGREED) - length)


def any_rule(charges: int, nats: float) -> float:
    """The same of the widest answer after so many charges, of the code that makes it the narrowest."""
    nodes = log_choose(QUERIES, charges + 1) + nats * charges
    return deviation(math.log(-math.log1p(-BETA)) - nodes)


def number(charges: int) -> float:
    return math.log(2.0 * (MOST - 1)) if charges else math.log(2.0)


def even(query: int, charges: Sequence[int]) -> float:
    """Our code: all places of all charges and of the question weigh alike."""
    return log_choose(QUERIES, len(charges) + 1) + number(len(charges))


def by_surprise(query: int, charges: Sequence[int]) -> float:
    """Each answer by how likely a charge was, from how often there were charges before (Krichevsky-Trofimov)."""
    j, others = len(charges), query - 1 - len(charges)
    likely = gammaln(j + 0.5) + gammaln(others + 0.5) - gammaln(query) - 2.0 * gammaln(0.5)
    return math.log(QUERIES) - float(likely)


def undeclared(query: int, charges: Sequence[int]) -> float:
    """As if the number of questions had not been declared."""
    return TranscriptCode().length(query=query, charges=len(charges)) - math.log(4.0 / 3.0)


def by_last(query: int, charges: Sequence[int]) -> float:
    """The last charge's place first, and then the others below it; each question, as far as it goes, weighs alike."""
    j, last = len(charges), max(charges, default=0)
    return math.log(QUERIES) + math.log(last + 1) + log_choose(last, j) + number(j)


def mixed(one: Callable[..., float], other: Callable[..., float]) -> Callable[..., float]:
    """Half of the weight by each."""

    def length(query: int, charges: Sequence[int]) -> float:
        return math.log(2.0) - float(np.logaddexp(-one(query, charges), -other(query, charges)))

    return length


CODES = {
    "even": even,
    "by surprise": by_surprise,
    "undeclared": undeclared,
    "by the last": by_last,
    "even + surprise": mixed(even, by_surprise),
    "even + undeclared": mixed(even, undeclared),
    "even + last": mixed(even, by_last),
}


def places(first: int, last: int, charges: int) -> list[int]:
    """Places of charges, evenly up to the last one."""
    return np.linspace(first, last, charges + 1)[1:].round().astype(int).tolist()


def states(charges: int) -> dict[str, tuple[int, list[int]]]:
    """Question and places of the charges before it."""
    return {
        "evenly, the last question": (QUERIES, places(0, QUERIES - 1, charges)),
        "in the second half": (QUERIES, places(QUERIES // 2, QUERIES - 1, charges)),
        "in the first tenth": (QUERIES, places(0, QUERIES // 10, charges)),
        "in the first tenth, the next question": (QUERIES // 10 + 1, places(0, QUERIES // 10, charges)),
        "at once": (QUERIES, list(range(1, charges + 1))),
    }


# ---- tables


def floors(counts: Sequence[int], runs: int) -> pd.DataFrame:
    """How far attacks get, what no code can undercut, and ours."""
    found, rng = [], np.random.default_rng(0)
    fixed = binom.isf(-math.expm1(math.log1p(-BETA) / QUERIES) / 2.0, ROWS, 0.5) / ROWS - 0.5
    for charges in counts:
        attacks = {
            attack.__name__: reached(attack(charges, runs, rng)) if charges else float(fixed)
            for attack in (vote, flips, blocks)
        }
        line: dict[str, float] = {"charges": charges, **attacks}
        for name, nats in (("which way", WHICH_WAY), ("cells", CELLS)):
            line[f"any rule, {name}"], line[f"ours, {name}"] = any_rule(charges, nats), ours(charges, nats)
        line["ours / vote"] = line["ours, cells"] / line["vote"]
        line["ours / blocks"] = line["ours, cells"] / line["blocks"]
        line["ours / any rule"] = line["ours, cells"] / line["any rule, cells"]
        found.append(line)
    return pd.DataFrame(found).set_index("charges")


def lengths(charges: int) -> pd.DataFrame:
    """Width by each code, in each state, with the cells that are told."""
    rows = {}
    for state, (query, where) in states(charges).items():
        told = CELLS * charges + math.log(4.0 / 3.0)
        levels = {name: math.log(BETA * AGREED) - code(query, where) - told for name, code in CODES.items()}
        rows[state] = {name: deviation(level) for name, level in levels.items()}
    return pd.DataFrame(rows).T


PLANS = {
    "1,000 rows, 50 questions": {"rows": 1_000, "queries": 50, "charges": 3, "estimate": 0.87},
    "5,000 rows, 100 questions": {
        "rows": 5_000,
        "queries": 100,
        "charges": 5,
        "estimate": 0.87,
        "prior_error": 0.012,
    },
    "10,000 rows, 1,000 questions": {"rows": 10_000, "queries": 1_000, "charges": 9, "estimate": 0.9},
}
HONEST = "honest"
SEARCHES = {
    HONEST: (1.0, 0.0),
    "priors twice as far off": (2.0, 0.0),
    "the first tenth too hopeful": (1.0, 1.5),
}


def charged_in_a_search(
    plan: Plan, times: float, hopeful: float, rng: np.random.Generator
) -> tuple[int, int]:
    """Charges of a search, and the index of the last; half of the holdout's error is common to all its models.

    Priors are `times` as far off as the plan reckons; those of the first tenth are too high by so many thresholds, too.
    """
    error = math.sqrt(plan.estimate * (1.0 - plan.estimate) / plan.rows / 2.0)
    own = math.hypot(error, plan.prior_error * times)
    deviations = error * rng.standard_normal() + own * rng.standard_normal(plan.queries)
    deviations[: plan.queries // 10] += hopeful * plan.threshold
    made = last = 0
    for query, off in enumerate(np.abs(deviations).tolist(), start=1):
        if made < plan.charges and off > plan.threshold_at(charges=made):
            made, last = made + 1, query
    return made, last


def finals(runs: int) -> pd.DataFrame:
    """Half-width of the final of a search, as it is and beside the even code alone."""
    found, rng = [], np.random.default_rng(1)
    nats = THEORY.charge.nats[THEORY.charge.place(1.5)]
    for name, numbers in PLANS.items():
        plan = Plan(noise=0.0, **numbers)
        certificate = plan.scores
        for search, (times, hopeful) in SEARCHES.items():
            made = [charged_in_a_search(plan, times, hopeful, rng) for _ in range(runs)]
            ratios, widths = [], []
            for charges, last in made:
                length = certificate.final_length(charges=charges, nats=nats * charges, last_charge=last)
                alone = log_choose(plan.queries, charges) + math.log(2.0 * (plan.charges if charges else 1))
                alone += nats * charges + math.log(4.0)
                pair = [
                    certificate.final_half_width(length=one, estimate=plan.estimate)
                    for one in (length, alone)
                ]
                widths.append(pair[0])
                ratios.append(pair[0] / pair[1])
            found.append(
                {
                    "plan": name,
                    "search": search,
                    "charges": np.mean([charges for charges, _ in made]),
                    "final": np.mean(widths),
                    "by the even code": np.mean(ratios),
                    "least": min(ratios),
                    "most": max(ratios),
                }
            )
    return pd.DataFrame(found)


def main(argv: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few runs")
    options = parser.parse_args(argv)
    runs = 100 if options.quick else 4_000
    print(f"{ROWS:,} rows, {QUERIES:,} questions, {runs:,} runs: what is reached, and widths at 0.5")
    print(floors([0, 5, 20], runs).T.to_string(float_format=lambda width: f"{width:.4f}"))
    for charges in (5, 20):
        print(f"\nwidths after {charges} charges, by the code and by where the charges were")
        print(lengths(charges).to_string(float_format=lambda width: f"{width:.4f}"))
    print(f"\nfinals of {runs // 10} searches: half-width, and ratio to that by the even code alone")
    print(finals(runs // 10).to_string(index=False, float_format=lambda ratio: f"{ratio:.4f}"))


if __name__ == "__main__":
    main()
