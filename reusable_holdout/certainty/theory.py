"""Editions of the theory: every constant that an interval or a price rests on.

A ledger names its edition, and its answers are certified and verified by this edition for ever. So a released edition
never changes: a better constant needs a new edition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from reusable_holdout.certainty.outcome_code import Cell, CellCode, FactorCode, Span, SpanCode
from reusable_holdout.errors import LedgerMismatchError


class Shares(NamedTuple):
    """The shares of a question's failure probability that the sides of an interval may spend.

    Attributes
    ----------
    agreed, charged : float
        Share for each side of the interval of an agreed question, and of a charged one.

    Notes
    -----
    A node of weight w has failure probability ``0.95 beta w``. An agreed interval spends 0.8 of it on *each* side, a
    charged one 0.2. A node fixes the question, its prior a and the description length (but, inside a batch, not the
    threshold T). Every agreed interval contains a, so the population value q can miss it on one side only. Say q is
    above; below, exchange the sides. Write v for the holdout's value. The answer misses if it is

    - agreed: then ``v <= a + T + t``, so q lies above the upper bound of v at 0.8;
    - charged and too low: then q lies above the upper bound of v at 0.2, hence above that at 0.8, so both together
      have probability at most 0.8 of the node's;
    - charged and too high: then q lies below the lower bound of v at 0.2: at most 0.2 of the node's.

    If evidence decides, agreed and charged answers rest on two kinds of bounds, and neither kind is always the
    narrower. So an agreed answer has 0.8, because q lies on one side of the interval, and a charged one has 0.1 on each
    side.

    Each side has a half if every outcome is released as a cell, and for one-sided questions, whose prior inside a batch
    may follow the charges in it. A side of a one-bit gate has all: both its ends are functions of the named value, so
    only one of them can miss.
    """

    agreed: float
    charged: float


class BetSizes(NamedTuple):
    """Bets that evidence is made of, geometrically spaced."""

    ratio: float  # of each bet to the one before
    smallest: float  # as a multiple of the best bet for rows that are 0 or 1
    largest: float  # fraction of the stake that one row could lose


class BandShares(NamedTuple):
    """The division of a failure probability for an average precision's interval, and the ranks of its exact bands."""

    band: float  # share of each of the two bands that it needs
    positives: float  # share for the interval of the proportion of positives
    ranks: float  # part of a band's share for exact intervals at some ranks; Massart's distance has the rest
    ratio: float  # of each of these ranks to the one before


class ClaimCode(NamedTuple):
    """The constants of claims: the allowed deviation, the lead that is measured, and the initial counts of outcomes.

    Attributes
    ----------
    reach : int
        Largest deviation of a claim that stands, in standard deviations of an honest claim's deviation.
    lead : int
        A claim is measured if it is at least this far above the lead plus one of its cells, in the same unit.
    stands, stands_again : float
        Initial count of the outcome "stands", for a series that has not been charged, and for one that has.
    charge, failed : float
        Initial count of each cell of a charge, and of a failure.
    measured : tuple of float
        Initial counts of the cells of a measured claim, each a standard deviation wide, from its own cell outwards.
    """

    reach: int
    lead: int
    stands: float
    stands_again: float
    charge: float
    failed: float
    measured: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Theory:
    """Constants of one edition.

    Attributes
    ----------
    edition : int
    final_share : float
        Share of the failure probability that is kept for the final, unless a plan states another one.
    first_share_of_finals : float
        Share of a final's weight for histories without a charge.
    falling : bool
        True if the rest of a final's weight falls with the number of charges, as ``1/(j (j + 1))``; else it is even.
    weighs_finals : bool
        True if each answer of a final has a weight of its own; else all have the same.
    threshold_level : float
        Probability that chance charges any of a plan's honest questions, which fixes the thresholds; 0 if the
        thresholds follow from the tolerance.
    early_share : float
        Share of a final's weight in which the positions of the charges are coded by the last of them: cheap if all came
        early.
    final_noise_share : float
        Share of a final's own failure probability that pays for its noise, if it has any.
    noise_share : float
        Share of the failure probability that pays for the mechanism's own noise; the transcript code has the rest.
    query_noise, threshold_noise, answer_noise : float
        Share of `noise_share` that each kind of draw has.
    scores, by_evidence : Shares
        Shares of the sides of a check's interval, if a distance decides, and if evidence decides.
    charge : CellCode
        A charge, in units of the threshold at `estimate`, or at the prior if that is larger: which way the prior is
        off, and about how far. In editions before the fourth, in units of the threshold at the prior.
    spans : SpanCode
        A charge of a ratio: where its confidence set lies.
    gate : CellCode
        A gate's "yes", or a failure.
    gates_certify : bool
        True if a gate's "yes" certifies what was named; else what was named less a tolerance.
    gate_bets : tuple of float
        Bets of a gate's evidence, as multiples of the one that suits rows of the guessed spread.
    gate_bets_lose : float
        Nats that the average of these bets is expected to lose to the best of them.
    first_share_of_gates : float
        Share of a question's weight for histories without a charge, if only gates are asked; 0 for the code's default.
    failures_reserved : bool
        True if a gate's plan reserves the cost of a failure, not of a "yes" alone.
    reveal : CellCode
        A revealed value, in units of a public standard deviation of honest deviations.
    reveal_unit : float
        Number of these standard deviations in a unit.
    steps_failed : float
        Weight of a ladder's failure.
    claims : ClaimCode
        Constants of a board of claims.
    widths : FactorCode
        Ratio of the half-width of the rows' own set to the guessed half-width.
    counts : FactorCode
        Ratio of the number of rows that the true class counts are worth to the guessed number.
    check_bets, set_bets : BetSizes
        Bets for evidence that a mean lies within a tolerance, where the best bet is the one for rows at the
        tolerance's full distance; and bets for confidence sets, where it is the one for rows of mean 1/2.
    suited_share : float
        Share of a confidence set's stake that is on the bet that suits rows of the guessed spread.
    exact_ratios : bool
        True if a ratio of counts has the exact binomial interval; else the rows' evidence about it.
    others_nats : float
        Nats that a choice adds to its length if rows certify its winner, for another test bounds other candidates.
    odds : tuple of (float, float)
        For rows in time order: the sizes of bets on the odds, in units of what suits the level, and their weights; none
        for independent rows.
    matchings : int
        Matchings of the rows of two classes over which the evidence about an area under the ROC curve is averaged.
    set_halvings : int
        Number of bisection steps that find the ends of a confidence set.
    bands : BandShares
        Constants of an average precision's bands.
    threshold_cells : int
        Number of cells of the range of priors; in each, the threshold is one number.
    threshold_slack : float
        Fraction of the range subtracted from the lower threshold of a cell's ends; inside the cell, the exact threshold
        is never lower.
    step_rounding : float
        Rounding of a ladder's step: a score on the grid of scores may lie just below a whole number of steps.
    """

    edition: int
    final_share: float
    first_share_of_finals: float
    falling: bool
    weighs_finals: bool
    threshold_level: float
    early_share: float
    final_noise_share: float
    noise_share: float
    query_noise: float
    threshold_noise: float
    answer_noise: float
    scores: Shares
    by_evidence: Shares
    charge: CellCode
    spans: SpanCode
    gate: CellCode
    gates_certify: bool
    gate_bets: tuple[float, ...]
    gate_bets_lose: float
    first_share_of_gates: float
    failures_reserved: bool
    reveal: CellCode
    reveal_unit: float
    steps_failed: float
    claims: ClaimCode
    widths: FactorCode
    counts: FactorCode
    check_bets: BetSizes
    set_bets: BetSizes
    suited_share: float
    exact_ratios: bool
    others_nats: float
    odds: tuple[tuple[float, float], ...]
    matchings: int
    set_halvings: int
    bands: BandShares
    threshold_cells: int
    threshold_slack: float
    step_rounding: float


_SECOND = Theory(
    edition=2,
    final_share=0.25,
    first_share_of_finals=0.5,
    falling=False,
    weighs_finals=False,
    threshold_level=0.0,
    early_share=0.1,
    final_noise_share=0.02,
    noise_share=0.05,
    query_noise=0.8,
    threshold_noise=0.1,
    answer_noise=0.1,
    scores=Shares(0.8, 0.2),
    by_evidence=Shares(0.8, 0.1),
    charge=CellCode(  # no outcome costs over 2 nats
        (
            Cell(1, 8.0, math.inf, 0.1355),
            Cell(1, 4.0, 8.0, 0.1355),
            Cell(1, 2.0, 4.0, 0.1500),
            Cell(1, 1.0, 2.0, 0.1630),
            Cell(-1, 1.0, 2.0, 0.1450),
            Cell(-1, 2.0, math.inf, 0.1355),
        ),
        failed=0.1355,
    ),
    spans=SpanCode(  # no outcome costs over 2 nats; a failure costs as much as the dearest
        (
            Span(-5.0, 1.0, -2.0, 0.1690),
            Span(-1.0, 5.0, 2.0, 0.1535),
            Span(-4.0, 4.0, 0.0, 0.1355),
            Span(-math.inf, 0.0, -5.0, 0.1355),
            Span(0.0, math.inf, 2.0, 0.1355),
            Span(-math.inf, math.inf, -math.inf, 0.1355),
        ),
        failed=0.1355,
    ),
    gate=CellCode((Cell(-1, 0.0, math.inf, 0.97),), failed=0.03),  # a "yes" 0.03 nats, a failure 3.5
    gates_certify=False,
    gate_bets=(),
    gate_bets_lose=0.0,
    first_share_of_gates=0.0,
    failures_reserved=False,
    reveal=CellCode(  # no outcome costs over 3.7 nats
        (
            Cell(1, 25.0, math.inf, 0.025),
            Cell(1, 9.0, 25.0, 0.025),
            Cell(1, 3.5, 9.0, 0.03),
            Cell(1, 1.5, 3.5, 0.09),
            Cell(1, 0.5, 1.5, 0.22),
            Cell(0, 0.0, 0.5, 0.28),
            Cell(-1, 0.5, 1.5, 0.19),
            Cell(-1, 1.5, 3.5, 0.06),
            Cell(-1, 3.5, 10.0, 0.03),
            Cell(-1, 10.0, math.inf, 0.025),
        ),
        failed=0.025,
    ),
    reveal_unit=1.1 / math.sqrt(2.0),  # 1.1 standard errors, if priors are off by one standard error
    steps_failed=0.03,
    claims=ClaimCode(
        reach=4,
        lead=2,
        stands=2.0,
        stands_again=0.3,
        charge=0.1,
        failed=0.02,
        measured=(0.62, 0.384, 0.1012, 0.0267, 0.0202),
    ),
    widths=FactorCode(below=15, above=8, first=0.04, growth=0.012),  # no cell costs more than 3.9 nats
    counts=FactorCode(below=48, above=15, first=0.04, growth=0.012),  # no cell costs more than 4.9 nats
    check_bets=BetSizes(ratio=1.6, smallest=0.35, largest=0.95),
    set_bets=BetSizes(ratio=1.6, smallest=0.1, largest=0.95),
    suited_share=0.5,
    exact_ratios=False,
    others_nats=0.0,
    odds=(),
    matchings=100,
    set_halvings=26,  # to 1e-8 of the mean
    bands=BandShares(band=0.45, positives=0.1, ranks=0.5, ratio=1.1),
    threshold_cells=2048,
    threshold_slack=1e-7,
    step_rounding=1e-6,
)

_THIRD = replace(
    _SECOND,
    edition=3,
    gate=CellCode((Cell(-1, 0.0, math.inf, 0.5),), failed=0.5),  # equal, as the dearer is reserved
    failures_reserved=True,
)

_FOURTH = replace(
    _THIRD,
    edition=4,
    final_share=0.75,
    first_share_of_finals=0.9,
    falling=True,
    weighs_finals=True,
    threshold_level=0.05,
    charge=CellCode(  # no outcome costs over 2.13 nats
        (
            Cell(1, 16.0, math.inf, 0.12),
            Cell(1, 8.0, 16.0, 0.12),
            Cell(1, 4.0, 8.0, 0.12),
            Cell(1, 2.0, 4.0, 0.13),
            Cell(1, 1.0, 2.0, 0.145),
            Cell(-1, 1.0, 2.0, 0.125),
            Cell(-1, 2.0, math.inf, 0.12),
        ),
        failed=0.12,
    ),
    suited_share=0.8,
    exact_ratios=True,
    others_nats=math.log(1.5),  # three ends with a third each, instead of two with a half
    # a failure costs as much as the dearest charge
    gate=CellCode((Cell(-1, 0.0, math.inf, 0.88),), failed=0.12),
    gates_certify=True,
    gate_bets=(2.0 / 3.0, 1.0, 1.5),
    gate_bets_lose=0.7,
    first_share_of_gates=0.9,
)

IN_TIME_ORDER = replace(
    _FOURTH,
    edition=5,
    odds=((1.0, 0.8), (2.0, 0.1), (5.0, 0.1)),
    # both sides can miss, for the mean is random: by distance from one set, by evidence a test for each side
    scores=Shares(0.5, 0.5),
    by_evidence=Shares(0.45, 0.05),
)
"""Edition for rows in time order: its intervals hold for the mean of the conditional expectations, which is random."""

EDITIONS: dict[int, Theory] = {theory.edition: theory for theory in (_SECOND, _THIRD, _FOURTH, IN_TIME_ORDER)}
"""Every edition that a ledger may name."""

THEORY = _FOURTH
"""Edition that new ledgers of independent rows are certified by."""


def edition(number: object) -> Theory:
    """Return the theory of an edition.

    Raises
    ------
    LedgerMismatchError
        If this version of the library does not know it.
    """
    known = EDITIONS.get(number) if isinstance(number, int) else None
    if known is None:
        raise LedgerMismatchError(
            f"a ledger must be certified by an edition of the theory that this version knows ({sorted(EDITIONS)}); it "
            f"names {number!r}; nothing was asked; use a newer version of reusable-holdout"
        )
    return known
