"""What a ledger keeps of a plan for ever: the numbers that every way to ask about one metric rests on."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from reusable_holdout.plan import SharedBudget
from reusable_holdout.validity import Certificate, ConfidenceBound, Shares, edition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reusable_holdout.plan import Plan
    from reusable_holdout.validity import Policy

__all__ = ["Rules"]


class Rules(NamedTuple):
    """Public numbers of one metric's ways to ask.

    A plan derives them from what was wished, and a later version may derive others: answers are certified, and
    verified, by those that stand in the ledger.

    Attributes
    ----------
    policy : str
    scores, pairs : Certificate
        Of one model, and of the difference of two.
    by_rows : bool
        Whether what is revealed or chosen shows the set that the rows' evidence leaves.
    """

    policy: Policy
    scores: Certificate
    pairs: Certificate
    by_rows: bool

    @classmethod
    def of(cls, plan: Plan, *, greater_is_better: bool) -> Self:
        """Rules that follow from a plan."""
        scores = plan.certificate(greater_is_better=greater_is_better)
        return cls(
            plan.policy,
            scores,
            plan.paired_certificate(greater_is_better=greater_is_better),
            scores.spread is not None and plan.privacy_is_vacuous,
        )

    def record(self) -> dict[str, Any]:
        """As JSON can write it."""
        certificates = {"scores": self.scores, "pairs": self.pairs}
        return self._asdict() | {name: _record_of(one) for name, one in certificates.items()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what :meth:`record` wrote."""
        certificates = {name: _certificate_of(record[name]) for name in ("scores", "pairs")}
        return cls(**{**record, **certificates})

    def are_of(self, plan: Mapping[str, Any]) -> bool:
        """Whether a plan's record has the numbers that these rest on; what else follows from it, these say."""
        scores, pairs, shared = self.scores, self.pairs, plan["shared"]
        return (
            [self.policy, scores.queries, scores.charges, scores.mechanism, 1.0 - plan["confidence"]]
            == [plan["policy"], plan["queries"], plan["charges"], plan["mechanism"], scores.beta]
            and [scores.tolerance, scores.noise_scale, scores.final_noise, scores.estimate]
            == [plan["tolerance"], plan["noise_scale"], plan["final_noise"] or 0.0, plan["estimate"]]
            and [pairs.tolerance, pairs.noise_scale]
            == [plan["comparison_tolerance"], plan["comparison_noise"]]
            and [scores.bound.rows + scores.exam_rows, [scores.lower, scores.upper]]
            == [plan["rows"], plan["bounds"]]
            and [scores.view, scores.told_before, scores.noisy, scores.theory.edition]
            == [shared["view"], shared["told_before"], shared["noisy"], shared["theory"]]
        )

    def keep_to(self, first: Self) -> bool:
        """Whether rules of another metric of the same rows keep to the promises of the first one's."""
        return all(
            [one.queries, one.charges, one.beta, one.told_before, one.charge_nats, one.theory]
            == [kept.queries, kept.charges, kept.beta, kept.told_before, kept.charge_nats, kept.theory]
            and one.reserved_nats >= kept.reserved_nats
            for one, kept in ((self.scores, first.scores), (self.pairs, first.pairs))
        )

    def budget_of_view(self, view: int) -> SharedBudget:
        """Budget for a plan of another metric of the same rows, so that it breaks no promise of this one."""
        return SharedBudget(
            view=view,
            told_before=self.scores.told_before,
            charge_nats=self.scores.charge_nats,
            told_nats=self.scores.reserved_nats,
            noisy=self.scores.noise_scale > 0.0,
            theory=self.scores.theory.edition,
        )


def _record_of(certificate: Certificate) -> dict[str, Any]:
    parts = {field.name: getattr(certificate, field.name) for field in fields(certificate)}
    return parts | {
        "bound": asdict(certificate.bound),
        "shares": list(certificate.shares),
        "theory": certificate.theory.edition,
    }


def _certificate_of(record: Mapping[str, Any]) -> Certificate:
    """What a record says; raises LedgerMismatchError if this version does not know its edition of the theory."""
    parts = {
        "theory": edition(record["theory"]),
        "bound": ConfidenceBound(**record["bound"]),
        "shares": Shares(*record["shares"]),
    }
    return Certificate(**{**record, **parts})
