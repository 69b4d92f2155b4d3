"""Certificates of plans of versions before 0.3, recomputed in [0, 1] from the numbers that the plans recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from typing import Any, NamedTuple

from reusable_holdout.certainty import Certificate, Shares, Theory, edition, worst_choice_nats
from reusable_holdout.noise import Calibration
from reusable_holdout.plan.numbers import BY_ROWS, SharedBudget
from reusable_holdout.plan.wish import Numbers, Wish

_SAME = 1e-9  # of floats that were computed on another machine
# nats that version 0.2.0 added to the guard's own in the rules of views
_SPARE_OF_VIEWS = 1024.0 - 2.0**-7
_UNSTORED = {
    *("bound", "decides", "shares", "theory", "estimate"),
    *("final_share", "first_share", "prior_error", "threshold_sds"),  # which no earlier version stated
}
_ASKS = {"gate": "gates", "claims": "claims"}
_LADDERS = {"ladder", "parameter-free-ladder"}


class StepCode(NamedTuple):
    """Weights of a ladder's improvements, in steps; with the weight of a failure they sum to at most one.

    The weight of k steps is the mean of ``1/(k (k + 1))`` and ``1/places``, times the weight that a failure leaves.
    """

    places: int
    failed: float

    @property
    def failure_nats(self) -> float:
        """Cost of a failure."""
        return -math.log(self.failed)

    @property
    def worst(self) -> float:
        """The cost of the most expensive outcome."""
        return max(math.log(2.0 * self.places) - math.log1p(-self.failed), self.failure_nats)

    def nats(self, steps: int) -> float:
        """Return the cost of a new best that is better by this many steps."""
        return -math.log(0.5 / (steps * (steps + 1)) + 0.5 / self.places) - math.log1p(-self.failed)


class Certificates(NamedTuple):
    """Certificates of one metric's ways to ask.

    Attributes
    ----------
    scores, pairs : Certificate
        Certificates for one model, and for the difference of two.
    by_rows : bool
        True if reveals and choices release the confidence set of the rows' evidence.
    final_noise : float
        Scale of a final's noise.
    set_aside : float
        Nats that were set aside for the reveals and choices that the plan promises.
    """

    scores: Certificate
    pairs: Certificate
    by_rows: bool
    final_noise: float
    set_aside: float


def certificates_of(record: Mapping[str, Any], reserved: float) -> Certificates:
    """Return the certificates of a plan's record; the reserved nats may be released in addition to charges."""
    wish, numbers = _wish_of(record), _numbers_of(record)
    policy, theory = record["policy"], edition(record["shared"]["theory"])
    fixed = wish.fixed_threshold(wish.rows or 1)
    if policy == "parameter-free-ladder":
        fixed = 1.0 / math.sqrt(record["rows"])
    span = record["bounds"][1] - record["bounds"][0]
    by_distance = policy in _LADDERS or record["mechanism"] == "target-charging"
    decides = "distance" if by_distance else wish.decides
    scores = replace(
        wish.certificate(numbers),
        noise_scale=record["noise_scale"] / span,
        least_threshold=min(wish.deviation_sd(numbers.rows), 1.0),
        decides=decides,
        fixed_threshold=fixed,
        charge_nats=record["shared"]["charge_nats"] or _charge_nats(wish, record, fixed, theory),
        reserved_nats=reserved,
        shares=_shares(policy, decides, theory),
        mechanism=record["mechanism"],
    )
    shares = (record["reveals"] + len(record["choices"])) * _told_nats(record, theory)
    aside = record["shared"]["told_nats"] or shares + sum(map(worst_choice_nats, record["choices"]))
    final_noise = (record["final_noise"] or 0.0) / span
    return Certificates(scores, _pairs_of(record, wish, scores), _by_rows(record, scores), final_noise, aside)


def _told_nats(record: Mapping[str, Any], theory: Theory) -> float:
    return theory.reveal.worst + (theory.widths.worst if record["family"] in BY_ROWS else 0.0)


def _numbers_of(record: Mapping[str, Any]) -> Numbers:
    span = record["bounds"][1] - record["bounds"][0]
    rows = record["rows"] - (record["exam"] or 0)
    return Numbers(rows, record["queries"], record["charges"], record["tolerance"] / span)


def _wish_of(record: Mapping[str, Any]) -> Wish:
    lower, upper = record["bounds"]
    span, numbers = upper - lower, _numbers_of(record)
    divided = {name: record[name] and record[name] / span for name in ("threshold", "spread", "prior_error")}
    return Wish(
        rows=numbers.rows,
        queries=numbers.queries,
        charges=numbers.charges,
        tolerance=numbers.tolerance,
        threshold=divided["threshold"],
        noise_scale=record["noise_scale"] / span,
        beta=1.0 - record["confidence"],
        estimate=(record["estimate"] - lower) / span,
        family=record["family"],
        influence=record["influence"],
        variation=record["variation"],
        spread=divided["spread"],
        prior_error=divided["prior_error"],
        reserved_nats=0.0,
        mechanism=record["mechanism"],
        asks=_ASKS.get(record["policy"], "all"),  # type: ignore[arg-type]
        shared=SharedBudget(**record["shared"]),
    )


def _charge_nats(wish: Wish, record: Mapping[str, Any], fixed: float | None, theory: Theory) -> float:
    policy = record["policy"]
    if policy in _LADDERS:
        places = record["rows"] if policy != "ladder" else 1.0 / (fixed or wish.deviation_sd(wish.rows or 1))
        return StepCode(max(1, math.ceil(places)), theory.steps_failed).worst
    if policy == "gate":
        return theory.gate.worst if theory.failures_reserved else theory.gate.nats[0]
    return wish.charge_nats if policy == "claims" else max(theory.charge.worst, theory.spans.worst)


def _shares(policy: str, decides: str, theory: Theory) -> Shares:
    if policy in _LADDERS or policy == "claims":
        return Shares(0.5, 0.5)
    if policy == "gate":
        return Shares(1.0, 1.0)
    return theory.scores if decides == "distance" else theory.by_evidence


def _pairs_of(record: Mapping[str, Any], wish: Wish, scores: Certificate) -> Certificate:
    """Return the certificate of differences of two models, whose numbers are halved."""
    compared = replace(wish, family="paired", estimate=0.5, spread=None)
    by_distance = record["policy"] in _LADDERS or record["mechanism"] == "target-charging"
    decides = "distance" if by_distance else compared.decides
    shares = scores.shares
    if decides == "evidence" and record["policy"] != "gate":
        shares = scores.theory.by_evidence
    span = 2.0 * (record["bounds"][1] - record["bounds"][0])
    return replace(
        scores,
        bound=replace(scores.bound, family="bounded"),
        noise_scale=record["comparison_noise"] / span,
        noisy=scores.noisy or scores.noise_scale > 0.0,
        tolerance=record["comparison_tolerance"] / span,
        fixed_threshold=None if scores.fixed_threshold is None else scores.fixed_threshold / 2.0,
        least_threshold=min(compared.deviation_sd(scores.bound.rows), 1.0),
        shares=shares,
        spread=0.5,
        decides=decides,
    )


def _by_rows(record: Mapping[str, Any], scores: Certificate) -> bool:
    if scores.spread is None:
        return False
    if not scores.noise_scale:
        return True
    each = record["influence"] / scores.bound.rows / scores.noise_scale
    told = record["reveals"] + 2 * len(record["choices"])
    if record["mechanism"] != "numeric-sparse":
        return True  # at the sizes that guards had, their privacy said nothing
    epsilon = Calibration("numeric-sparse", record["charges"]).epsilon(
        each=each, delta=record["delta"], told=told
    )
    if record["final_noise"]:
        epsilon += record["influence"] / scores.bound.rows / (record["final_noise"] / _span(record))
    return epsilon >= math.log(1.5)


def _span(record: Mapping[str, Any]) -> float:
    lower, upper = record["bounds"]
    return float(upper - lower)


# ---- the rules that stand in a ledger


def unlike(
    rules: Mapping[str, Any], derived: Certificates, record: Mapping[str, Any], *, greater_is_better: bool
) -> Iterator[str]:
    """Yield the names of a ledger's rules that do not follow from its plan and its edition."""
    if rules["policy"] != record["policy"] or rules["by_rows"] is not derived.by_rows:
        yield "rules.policy or rules.by_rows"
    lower, upper = record["bounds"]
    for name, own, low in (("scores", derived.scores, lower), ("pairs", derived.pairs, lower - upper)):
        stored = rules[name]
        if [stored["lower"], stored["upper"]] != [low, upper if name == "scores" else upper - lower]:
            yield f"rules.{name}.lower"
            continue
        if stored["greater_is_better"] is not greater_is_better or stored["exam_rows"] != (
            record["exam"] or 0
        ):
            yield f"rules.{name}.greater_is_better"
        if not _close(stored["final_noise"], (record["final_noise"] or 0.0)):
            yield f"rules.{name}.final_noise"
        expected = _stored_form(
            own, stored["upper"] - stored["lower"], low if name == "scores" else lower, record
        )
        for field, value in expected.items():
            if field not in stored or not _same(stored[field], value):
                yield f"rules.{name}.{field}"
        if (
            set(stored)
            - expected.keys()
            - {"lower", "upper", "greater_is_better", "exam_rows", "final_noise"}
        ):
            yield f"rules.{name}"
    aside, spare = derived.set_aside, derived.scores.reserved_nats - derived.set_aside
    if abs(spare) > _SAME * (1.0 + aside) and not _bears(derived.scores, record, spare):
        yield "rules.scores.reserved_nats"


def unstated(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a record's entries that contradict its list of stated numbers."""
    stated = record["stated"]
    if any((record[name] is None) == (name in stated) for name in ("threshold", "prior_error")):
        yield "plan.stated"
    if stated != sorted({*stated}) or not {"confidence", "policy", "queries"} <= {*stated}:
        yield "plan.stated"
    if record["prior_error"] is not None and not record["prior_error"] > 0.0:
        yield "plan.prior_error"
    if record["spread"] is None and "spread" in stated:
        yield "plan.spread"
    if "delta" not in stated and not math.isclose(record["delta"], 1.0 / record["rows"] ** 2, rel_tol=_SAME):
        yield "plan.delta"


def _stored_form(own: Certificate, span: float, lower: float, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certificate as a ledger keeps it, in the metric's unit."""
    scaled = {
        name: None if getattr(own, name) is None else getattr(own, name) * span
        for name in ("noise_scale", "tolerance", "fixed_threshold", "least_threshold", "spread")
    }
    same = {
        field.name: getattr(own, field.name)
        for field in fields(own)
        if field.name not in scaled and field.name not in _UNSTORED
    }
    if own.fixed_threshold == 0.0:
        scaled["fixed_threshold"] = 0.0
    return {
        **same,
        **scaled,
        "bound": {name: part for name, part in asdict(own.bound).items() if name not in {"odds", "estimate"}},
        "shares": list(own.shares),
        "theory": own.theory.edition,
        "estimate": record["estimate"],
        "by_evidence": own.decides != "distance",
        "of_ratio": own.decides == "sets",
    }


def _bears(scores: Certificate, record: Mapping[str, Any], spare: float) -> bool:
    """Return True if a plan keeps its tolerance up to the last charge, even if `spare` nats are released as well."""
    if record["shared"]["view"] and record["shared"]["told_nats"]:
        return math.isclose(spare, _SPARE_OF_VIEWS, rel_tol=_SAME)
    if spare < 0.0 or scores.adaptive:
        return False
    at, length, slack = scores.estimate, scores.affordable_length, 2.0 * _SAME
    if scores.fixed_threshold is not None and scores.decides == "distance":
        reach = scores.fixed_threshold + scores.comparison_tail
        low, high = scores.around(at - reach, at + reach, length=length, share=scores.shares.agreed)
        return bool(max(at - low, high - at) <= scores.tolerance + slack)
    threshold = scores.threshold_of_length(at, length, least=-math.inf)
    least = 0.0 if record["policy"] == "gate" else _wish_of(record).deviation_sd(scores.bound.rows)
    return bool(threshold >= least - slack)


def _same(stored: Any, value: Any) -> bool:
    if isinstance(value, dict):
        return (
            isinstance(stored, dict)
            and stored.keys() == value.keys()
            and all(_same(stored[name], value[name]) for name in value)
        )
    if isinstance(value, list):
        return isinstance(stored, list) and len(stored) == len(value) and all(map(_same, stored, value))
    return type(stored) is type(value) and (_close(stored, value) or stored == value)


def _close(stored: Any, value: Any) -> bool:
    numbers = isinstance(stored, float) and isinstance(value, float)
    return numbers and math.isclose(stored, value, rel_tol=_SAME, abs_tol=1e-15)
