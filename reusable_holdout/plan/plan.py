"""Plan: solve for the number that was not stated, round towards more protection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Literal, Self

from reusable_holdout.certainty import IN_TIME_ORDER, Certificate, edition, worst_choice_nats
from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.plan import numbers, report
from reusable_holdout.plan.numbers import BY_ROWS, OWN_BUDGET, STATED, Family, SharedBudget
from reusable_holdout.plan.outlook import Outlook
from reusable_holdout.plan.solution import solved
from reusable_holdout.plan.wish import ALLOWANCE, MOST_QUERIES, MOST_ROWS, MOST_TOLERANCE, Asks, Wish
from reusable_holdout.slips import checked_call

_ROUNDING = 1e-9  # nats


class Plan(Outlook):
    """A plan: the promise of a guarded holdout, given three of rows, queries, charges and tolerance.

    Leave `rows` out of a plan for a guard, which counts its rows; the plan's numbers are known from then on.

    With probability at least `confidence`, every released interval contains the population value, for all
    adaptively chosen queries at once (the transcript code, which needs no privacy). Up to `estimate`, an agreed
    answer is within `tolerance` of the population value.

    Parameters
    ----------
    rows : int, optional
        Holdout rows n, independent draws from the population; the smallest sufficient number if left out.
    queries : int, optional
        Questions K that will be asked at most; the largest possible number if left out.
    charges : int, optional
        Deviations that can be paid for; the largest possible number if left out.
    tolerance : float, optional
        Farthest an answer may be from the population value, in the metric's unit; the smallest possible one if left
        out. It also holds for the difference of two models.
    confidence : float
        1 - beta, in [0.5, 1).
    estimate : float
        Value of the metric near which the plan must hold, in its unit. For 0/1 losses 0.5 is the worst case;
        a plan for accuracies near 0.9 affords twice the charges.
    prior_error : float, optional
        Standard deviation of an honest prior's own error, in the metric's unit; by default one public standard error of
        the metric at `estimate`. Charges and tolerance are chosen so that a search with such priors is answered to its
        last question with probability 0.95, if rows and tolerance allow it.
    reveals : int, optional
        Number of reveals, at least 0. Their most expensive outcomes are reserved, apart from charges. Further reveals
        are answered as long as the promises allow.
    choices : sequence of int, optional
        Number of candidates of each reserved choice.
    noise : float, optional
        Scale s of the sparse vector's noise, in the metric's unit: threshold noise Lap(2s), comparison noise Lap(4s),
        answer noise Lap(s). By default the comparison's noise reaches a small share of the tolerance. 0 is allowed: the
        intervals do not need noise, differential privacy does.
    threshold : float, optional
        Deviation T beyond which every prior is charged, in the metric's unit. By default it is a number of standard
        deviations of an honest deviation, and smaller at priors near 0 and 1. With a stated threshold it is the same
        everywhere. It does not change with the charges.
    delta : float, optional
        The delta of (epsilon, delta)-differential privacy, in [0, 1); by default ``1 / rows**2``.
    spread : float, optional
        For families "mean" and "ratio": a guess of the standard deviation of a row's loss, in the metric's unit, at
        most half the distance of the bounds; by default the largest possible at `estimate`. The numbers of the plan
        follow from it. No interval rests on it: rows that spread more are charged more often.
    pair_spread : float, optional
        Likewise for the difference of two models, in the metric's unit; by default as large as one model's.
    final_share : float, optional
        Share of the failure probability that is kept for the final, in [0, 1]; by default 0.75. If only gates are
        asked it is 0, and there is no final. With 1 only a final can be asked: for a guard of one search.
    growth_share : float, optional
        Share of the failure probability, below 1, that is kept for rows to come, 0 by default. A final after
        :meth:`ReusableHoldout.extend` then rests on the added rows alone, too: its interval is the overlap of both.
    board : "claims", optional
        A board of many series, such as teams. It needs rows and queries, and no tolerance, because its intervals grow.
        The plan states the tolerance of a board of honest claims; each series has `charges`, by default 2.
    gates : bool
        True if only gates are asked. Then `tolerance` is the difference that they show nine times in ten, up to the
        last charge; see :meth:`shown_difference`.
    order : "time", optional
        The rows will be in time order; a guard takes it from its :class:`Rows`.
    bounds : tuple of float
        Lower and upper bound of the metric.
    greater_is_better : bool
        True if a larger value of the metric is better.
    family : {"binomial", "mean", "bounded", "bounded-difference", "ratio"}
        "binomial" is a mean of 0/1 losses, "mean" one of losses within the bounds, decided by the rows' evidence.
        "bounded" has the exponential moments of such a mean, "bounded-difference" only bounded differences. "ratio" is
        a ratio of means, such as an F score, decided by evidence without noise; `rows` are those that count in it.
    influence, variation : float
        ``rows * max c_r`` and ``rows * sum c_r**2``, with c_r the largest change from replacing row r, as a fraction
        of the range; both 1 for a mean.
    shared : SharedBudget
        Promises that a plan of another metric of the same rows must keep to.

    Attributes
    ----------
    stated : tuple of str
        Names of the stated numbers; the others were derived, and a later version may derive other values.
    epsilon : float
        The epsilon of the holdout's differential privacy at `delta`. It does not cover finals, and it covers
        comparisons only if their noise is scaled like that of scores.

    Raises
    ------
    PlanError
        If no plan meets the wish; `nearest` says which numbers would.
    InputError
        If a number is out of its range, or too few are given.

    Notes
    -----
    The threshold at a prior is z standard deviations of an honest deviation, ``sqrt(a (1 - a) / n + prior_error**2)``.
    At ``z = Phi^-1(1 - 0.05 / (2 queries))`` an honest search exceeds no threshold with probability 0.95. A
    smaller tolerance has a smaller z, at least 1. The tolerance is the half-width of an agreed answer's interval before
    the last charge, if all earlier charges were of the largest cost; earlier intervals are narrower.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "Generalization in Adaptive Data Analysis and Holdout
       Reuse", sections 3 and 4.

    Examples
    --------
    >>> plan = Plan(10_000, queries=1_000, tolerance=0.05, confidence=0.95)
    >>> plan.charges, plan.choices
    (1, ())
    >>> plan = Plan(10_000, queries=1_000, tolerance=0.05, estimate=0.9)
    >>> plan.charges, round(plan.final_half_width() / plan.one_look, 2)
    (6, 1.09)
    """

    _is_kept = False
    _kept_sds: float | None = None
    _kept_stated: tuple[str, ...] = ()

    @checked_call
    def __init__(
        self,
        rows: int | None = None,
        *,
        queries: int | None = None,
        charges: int | None = None,
        tolerance: float | None = None,
        confidence: float = 0.95,
        estimate: float | None = None,
        prior_error: float | None = None,
        reveals: int | None = None,
        choices: Sequence[int] | None = None,
        noise: float | None = None,
        threshold: float | None = None,
        delta: float | None = None,
        spread: float | None = None,
        pair_spread: float | None = None,
        final_share: float | None = None,
        growth_share: float | None = None,
        board: Literal["claims"] | None = None,
        gates: bool = False,
        order: Literal["time"] | None = None,
        bounds: tuple[float, float] = (0.0, 1.0),
        greater_is_better: bool = True,
        family: Family = "binomial",
        influence: float = 1.0,
        variation: float = 1.0,
        shared: SharedBudget = OWN_BUDGET,
    ) -> None:
        given = locals()
        self.stated = tuple(name for name in STATED if given[name] is not None)
        self.asks: Asks = numbers.asked_for(board, gates=gates)
        self._open = {name: given[name] for name in (*self.stated, "board")} | {"gates": gates}
        numbers.choice("order", order or "time", ("time",))
        shared = replace(shared, theory=IN_TIME_ORDER.edition) if order else shared
        self.order = "time" if edition(shared.theory).odds else None
        if rows is None and len({"queries", "charges", "tolerance"} & {*self.stated}) < 3:
            return  # a guard fills in its rows
        self.lower, self.upper = numbers.checked_bounds(bounds)
        self.greater_is_better, self.family, self.shared = bool(greater_is_better), family, shared
        numbers.choice("family", family, ("binomial", "mean", "bounded", "bounded-difference", "ratio"))
        numbers.check_together(family, self.asks, threshold, noise, spread)
        numbers.check_order(family, self.asks, self.order, growth_share)
        kept = self._is_kept or bool(shared.view)  # by a ledger, which another version may have begun
        self.confidence = numbers.checked_confidence(confidence, kept=kept)
        middle = (self.lower + self.upper) / 2.0 if estimate is None else estimate
        self.estimate = numbers.real("estimate", middle, least=self.lower, most=self.upper)
        self.stated_spread = numbers.checked_spread(
            spread, math.inf if kept or family == "ratio" else self.span
        )
        self.stated_pair_spread = numbers.real_or_none("pair_spread", pair_spread, above=0.0, most=self.span)
        self.stated_prior_error = numbers.real_or_none("prior_error", prior_error, above=0.0)
        self.stated_threshold = numbers.real_or_none("threshold", threshold, above=0.0)
        self.reveals = numbers.whole_or_none("reveals", reveals, MOST_QUERIES, least=0) or 0
        self.choices = numbers.wholes("choices", choices)
        self.stated_final_share = numbers.real_or_none("final_share", final_share, least=0.0, most=1.0)
        self.growth_share = numbers.real("growth_share", growth_share or 0.0, least=0.0, below=1.0)
        self.influence = numbers.real("influence", influence, above=0.0)
        self.variation = numbers.real("variation", variation, above=0.0)
        limit = numbers.real_or_none("tolerance", tolerance, above=0.0, most=MOST_TOLERANCE * self.span)
        allowance = ALLOWANCE if self.asks == "claims" and charges is None else charges
        if self.stated_final_share == 1.0:  # nothing is asked that could be counted or charged
            queries, allowance = queries or 1, allowance or 1
        self._wish = self._wished(rows, queries, allowance, limit, noise)
        self._settle(limit, numbers.real_or_none("delta", delta, least=0.0, below=1.0))

    def _wished(
        self, rows: object, queries: object, charges: object, tolerance: float | None, noise: Any
    ) -> Wish:
        span, grows = self.span, self.asks == "claims" and not self._is_kept  # then the tolerance follows
        silent = self.asks == "claims" or self.family == "ratio"
        silent |= self.asks == "gates" and edition(self.shared.theory).gates_certify and noise is None
        return Wish(
            rows=numbers.whole_or_none("rows", rows, MOST_ROWS),
            queries=numbers.whole_or_none("queries", queries, MOST_QUERIES),
            charges=numbers.whole_or_none("charges", charges, MOST_QUERIES),
            tolerance=None if grows else _divided(tolerance, span),
            threshold=_divided(self.stated_threshold, span),
            noise_scale=_divided(numbers.real_or_none("noise", noise, least=0.0), span),
            beta=(1.0 - self.confidence) * (1.0 - self.growth_share),
            estimate=self.unit(self.estimate),
            family=self.family,
            influence=self.influence,
            variation=self.variation,
            spread=_divided(self.stated_spread, span),
            prior_error=_divided(self.stated_prior_error, span),
            reserved_nats=self._reserved_nats(),
            room_nats=self._room_nats(),
            mechanism="noiseless" if silent or noise == 0.0 else "numeric-sparse",
            asks=self.asks,
            shared=self.shared,
            stated_final_share=self.stated_final_share,
            pair_spread=_divided(self.stated_pair_spread, span),
            kept_sds=self._kept_sds,
        )

    def _reserved_nats(self) -> float:
        told = (self.reveals + len(self.choices)) * self._dearest_reveal
        return told + sum(map(worst_choice_nats, self.choices))

    def _room_nats(self) -> float:
        """Return the nats of one reveal, or of the class counts of another metric, unless reveals were stated."""
        if "reveals" in (self._kept_stated or self.stated) or self.shared.view or self.asks != "all":
            return 0.0
        return max(self._dearest_reveal, edition(self.shared.theory).counts.worst)

    @property
    def _dearest_reveal(self) -> float:
        theory = edition(self.shared.theory)
        return theory.reveal.worst + (theory.widths.worst if self.family in BY_ROWS else 0.0)

    def _settle(self, limit: float | None, delta: float | None) -> None:
        """Derive the number that was not stated."""
        found = solved(self._wish, scale=self.scale, kept=self._is_kept)
        self.rows, self.queries, self.charges, _ = found
        self.final_share = self._wish.final_share
        derived = numbers.round_up(found.tolerance * self.span)
        self.tolerance = limit or derived
        if self._wish.tolerance is None and self.tolerance != derived:
            raise InputError(
                "claims have no tolerance, because their intervals widen with each answer told; got "
                f"tolerance={self.tolerance!r}, but a board of honest claims keeps {derived:g}; leave it out"
            )
        self.noise = self._wish.scale(self._numbers) * self.span
        self.delta = 1.0 / self.rows**2 if delta is None else delta
        own, shared = self._wish.charge_nats, self.shared
        if shared.view and not self._is_kept and own > shared.charge_nats + _ROUNDING:
            raise PlanError(
                f"a charge of another metric of these rows may cost at most {shared.charge_nats:.2f} nats in the plan "
                f"of the guard; for this metric it costs up to {own:.2f}; nothing was made; make the guard with this "
                "metric, and ask about the others with on()",
                {},
            )

    # ---- certificates

    @cached_property
    def pairs(self) -> Certificate:
        """The certificate of differences of two models, on the same budget; they are mapped to [0, 1].

        They are decided by evidence, unless a threshold is stated.
        """
        scores, wish = self.scores, self._compared
        shares = scores.shares
        if wish.decides == "evidence" and self.asks != "gates":
            shares = scores.theory.by_evidence
        return replace(
            scores,
            bound=replace(scores.bound, family="odds" if scores.theory.odds else "bounded", estimate=0.5),
            noise_scale=self.comparison_noise / (2.0 * self.span),
            noisy=scores.noisy or scores.noise_scale > 0.0,
            tolerance=self.tolerance / (2.0 * self.span),
            fixed_threshold=None if scores.fixed_threshold is None else scores.fixed_threshold / 2.0,
            threshold_sds=scores.threshold_sds if wish.decides == "evidence" else 0.0,
            prior_error=wish.prior_error or 0.0,
            least_threshold=min(wish.deviation_sd(self.rows), 1.0),
            shares=shares,
            estimate=0.5,
            spread=wish.row_spread,
            decides=wish.decides,
        )

    def certificate_of(self, *, pairs: bool) -> Certificate:
        """Return the certificate of questions about one model, or about the difference of two."""
        return self.pairs if pairs else self.scores

    # ---- records

    def record(self) -> dict[str, Any]:
        """Return all that determines the plan, in types that JSON can store; :meth:`kept` makes the same plan of it."""
        added: dict[str, Any] = {}
        if self._wish.theory.threshold_level:  # editions that did not know them wrote none
            added = {"final_share": self.final_share, "threshold_sds": self.scores.threshold_sds}
            added |= {"pair_spread": self.stated_pair_spread}
        if "growth_share" in self.stated:
            added |= {"growth_share": self.growth_share}
        return added | {
            "rows": self.rows,
            "queries": self.queries,
            "charges": self.charges,
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "estimate": self.estimate,
            "prior_error": self.stated_prior_error,
            "reveals": self.reveals,
            "choices": list(self.choices),
            "noise": self.noise,
            "threshold": self.stated_threshold,
            "delta": self.delta,
            "spread": self.stated_spread,
            "asks": self.asks,
            "bounds": [self.lower, self.upper],
            "greater_is_better": self.greater_is_better,
            "family": self.family,
            "influence": self.influence,
            "variation": self.variation,
            "shared": asdict(self.shared),
            "told_nats": self.told_nats,
            "stated": list(self.stated),
        }

    @classmethod
    def kept(cls, record: Mapping[str, Any]) -> Self:
        """Return the plan of a ledger's record unchanged: a later version that plans differently breaks no promise."""
        plan = cls.__new__(cls)
        plan._is_kept, plan._kept_sds = True, record.get("threshold_sds")
        plan._kept_stated = tuple(record["stated"])
        names = {*record} - {"asks", "stated", "told_nats", "threshold_sds"}
        given = {name: record[name] for name in names}
        given |= {"bounds": tuple(record["bounds"]), "shared": SharedBudget(**record["shared"])}
        if record["asks"] == "claims":
            given["board"] = "claims"
        if "delta" not in record["stated"] and record["delta"] == 1.0:
            given["delta"] = None  # a single row's delta is 1, which nobody may state: it is derived again
        cls.__init__(plan, **given, gates=record["asks"] == "gates")
        plan.told_nats, plan.stated = record["told_nats"], tuple(record["stated"])
        plan._open = {name: record[name] for name in plan.stated}
        return plan

    def wished(self) -> dict[str, Any]:
        """Return the stated numbers by name, as arguments for a plan of other rows or of another metric."""
        board = "claims" if self.asks == "claims" else None
        stated = {name: self._open[name] for name in self.stated}
        return stated | {"board": board, "gates": self.asks == "gates", "order": self.order}

    def __getattr__(self, name: str) -> Any:
        if name in Outlook.__annotations__ and name != "stated":
            raise InputError(
                "a plan has numbers only when three of rows, queries, charges and tolerance are stated; got "
                f"{', '.join(self.stated) or 'none'}; state more, or give the plan to a guard"
            )
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.record() | {"stated": 0} == other.record() | {"stated": 0}

    def __hash__(self) -> int:
        return hash((self.rows, self.queries, self.charges, self.tolerance))

    def __repr__(self) -> str:
        if "tolerance" not in vars(self):
            return f"<Plan: {', '.join(f'{name}={self._open[name]!r}' for name in self.stated)}>"
        return (
            f"<Plan: {self.rows:,} rows, {self.queries:,} queries, {self.charges} charge{'s' * (self.charges != 1)}, "
            f"tolerance {self.tolerance:g}, confidence {self.confidence:g}>"
        )

    def __str__(self) -> str:
        return report.report(self)


def _divided(value: float | None, span: float) -> float | None:
    return None if value is None else value / span
