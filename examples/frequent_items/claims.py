"""The paper's claims about the order of the methods, and a test of each on the runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["holds", "fails", "undecided"]
RATES = ("ser", "fnr", "missed")
_SURE = 3.0  # standard errors of a paired difference


class Claim(NamedTuple):
    """A claim that each method of one group has a larger error rate, or a larger spread, than each of another group."""

    text: str
    worse: tuple[str, ...]
    better: tuple[str, ...]
    spread: bool = False


class Finding(NamedTuple):
    """A claim on one data set by one rate, judged by its least favourable pair of methods."""

    claim: Claim
    rate: str
    verdict: Verdict
    pair: tuple[str, str]
    difference: float
    standard_error: float
    sizes: str


BOOK, HALF, QUARTER, LINEAR, BEST = ("SVT-DPBook", "SVT-S-1:1", "SVT-S-1:3", "SVT-S-1:c", "SVT-S-1:c^(2/3)")
RAISED = tuple(f"SVT-ReTr-{raised}D" for raised in range(1, 6))
WORST = Claim("SVT-DPBook is the worst interactive method", (BOOK,), (HALF, QUARTER, LINEAR, BEST))
FINEST = Claim("1:c^(2/3) is the best interactive method", (BOOK, HALF, QUARTER, LINEAR), (BEST,))
OVERALL = Claim("EM is the best of all", (BOOK, HALF, QUARTER, LINEAR, BEST, *RAISED), ("EM",))
CLAIMS = (
    WORST,
    Claim("1:1 is worse than 1:3", (HALF,), (QUARTER,)),
    Claim("1:3 is worse than 1:c and 1:c^(2/3)", (QUARTER,), (LINEAR, BEST)),
    FINEST,
    Claim("1:c varies more than 1:c^(2/3)", (LINEAR,), (BEST,), spread=True),
    Claim("EM is better than every interactive method", (BOOK, HALF, QUARTER, LINEAR, BEST), ("EM",)),
    OVERALL,
)


def findings(runs: pd.DataFrame) -> list[Finding]:
    """Judge all claims by all rates, on the runs of one data set.

    A difference of two methods is computed in each run, where they have the same order of items, and averaged over c. A
    claim holds if the difference of every pair is above three standard errors, and fails if one is below minus three.

    Parameters
    ----------
    runs : pandas.DataFrame
        Result of `experiment`.
    """
    return list(_findings(runs))


def _findings(runs: pd.DataFrame) -> Iterator[Finding]:
    for rate in RATES:
        rates = runs.pivot_table(index="run", columns=["method", "c"], values=rate, sort=False)
        for claim in CLAIMS:
            yield _judge(claim, rate, (rates - rates.mean()).abs() if claim.spread else rates)


def _judge(claim: Claim, rate: str, rates: pd.DataFrame) -> Finding:
    pairs = list(itertools.product(claim.worse, claim.better))
    differences = {pair: rates[pair[0]] - rates[pair[1]] for pair in pairs}
    of_runs = {pair: found.mean(axis="columns") for pair, found in differences.items()}
    least = min(pairs, key=lambda pair: _in_standard_errors(of_runs[pair]))
    distance = _in_standard_errors(of_runs[least])
    verdict: Verdict = "holds" if distance > _SURE else "fails" if distance < -_SURE else "undecided"
    in_order = np.all([found.mean() >= 0 for found in differences.values()], axis=0)
    return Finding(
        claim,
        rate,
        verdict,
        least,
        float(of_runs[least].mean()),
        float(of_runs[least].sem()),
        f"{in_order.sum()}/{len(in_order)}",
    )


def _in_standard_errors(differences: pd.Series) -> float:
    mean, error = float(differences.mean()), float(differences.sem())
    return mean / error if error > 0 else float(np.copysign(np.inf, mean)) if mean else 0.0
