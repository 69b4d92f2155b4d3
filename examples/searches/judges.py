"""What an analyst can ask how good a rule is: cross-validation, holdouts used in five ways, the guard.

A rule is what is predicted for every row of a split. A judge is asked about rules one by one and tells a value each
time; at the end it settles: it says how good the rule is that was chosen. Where it gives an interval with a value, that
is judged later on the fresh rows.
"""

from __future__ import annotations

import os
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta as beta_law

from reusable_holdout import Plan, ReusableHoldout, Rows
from reusable_holdout.errors import Halted
from searches.candidates import Split

Rule = NDArray[np.int8]

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

__all__ = ["JUDGES", "BudgetSpent", "Judge", "Told", "exact_interval"]

BETA = 0.05


class BudgetSpent(Exception):  # noqa: N818 - not an error
    """Nothing more is told."""


class Told(NamedTuple):
    """A value, and its interval if there is one."""

    rule: Rule
    value: float
    low: float = np.nan
    high: float = np.nan


def exact_interval(right: int, rows: int, beta: float = BETA) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share."""
    low = float(beta_law.ppf(beta / 2.0, right, rows - right + 1)) if right else 0.0
    high = float(beta_law.ppf(1.0 - beta / 2.0, right + 1, rows - right)) if right < rows else 1.0
    return low, high


class Judge:
    """Cross-validation alone: the score out of fold, with the interval of one look at the training rows.

    Parameters
    ----------
    labels : numpy.ndarray of shape (rows,)
    parts : Split
    questions : int
        That may be asked.
    best : int
        Rules that the analyst compares at the end, if the judge lets her.
    estimate : float
        Accuracy that is known to be reached here.
    """

    name: ClassVar[str] = "cross-validation alone"

    def __init__(self, labels: Rule, parts: Split, *, questions: int, best: int, estimate: float) -> None:
        self.labels, self.parts = labels, parts
        self.questions, self.best, self.estimate = questions, best, estimate
        self.told: list[Told] = []

    @property
    def charges_made(self) -> int:
        """Charges, where there are any."""
        return 0

    def own(self, rule: Rule) -> float:
        """The analyst's own estimate: the score out of fold."""
        train = self.parts.train
        return float(np.mean(rule[train] == self.labels[train]))

    def look(self, rule: Rule, rows: NDArray[np.int64], beta: float = BETA) -> Told:
        """Score on some rows with the exact interval of a question fixed in advance."""
        right = int(np.count_nonzero(rule[rows] == self.labels[rows]))
        return Told(rule, right / len(rows), *exact_interval(right, len(rows), beta))

    def believed(self, rule: Rule, value: float) -> float:
        """What the analyst thinks now of a rule of which a value was told."""
        del rule
        return value

    def ask(self, rule: Rule) -> float:
        """Value of a rule.

        Raises
        ------
        BudgetSpent
        """
        self.told.append(self._answer(rule))
        return self.told[-1].value

    def _answer(self, rule: Rule) -> Told:
        return self.look(rule, self.parts.train)

    def settle(self, rules: list[Rule], values: list[float]) -> Told:
        """Choose one of the rules by what was told of them, and say how good it is."""
        return self._last(rules[int(np.argmax(values))])

    def _last(self, rule: Rule) -> Told:
        return self._answer(rule)


class OneLook(Judge):
    """Cross-validation chooses; the whole holdout is looked at once, at the end."""

    name = "cross-validation, one look"

    def _answer(self, rule: Rule) -> Told:
        return Told(rule, self.own(rule))

    def _last(self, rule: Rule) -> Told:
        return self.look(rule, self.parts.holdout)


class Plain(Judge):
    """The holdout's score at every question, with the interval of one look: what everybody does."""

    name = "plain holdout"

    def _answer(self, rule: Rule) -> Told:
        return self.look(rule, self.parts.holdout)


class Bonferroni(Judge):
    """The holdout's score with an interval that is valid for so many questions fixed in advance."""

    name = "Bonferroni"

    def _answer(self, rule: Rule) -> Told:
        return self.look(rule, self.parts.holdout, BETA / self.questions)


class Splitting(Judge):
    """Every question has rows of its own, a row at least; the intervals hold together."""

    name = "sample splitting"

    def _answer(self, rule: Rule) -> Told:
        holdout = self.parts.holdout
        each = max(1, len(holdout) // self.questions)
        rows = holdout[len(self.told) * each : (len(self.told) + 1) * each]
        if len(rows) < each:
            raise BudgetSpent
        return self.look(rule, rows, BETA / self.questions)

    def _last(self, rule: Rule) -> Told:
        """What was told of the rule, which was one of those asked about."""
        return next(told for told in self.told if np.array_equal(told.rule, rule))


class Tenth(Judge):
    """Nine tenths of the holdout as a plain one, whose values are told without a claim; one look at the rest."""

    name = "a tenth set aside"

    def _answer(self, rule: Rule) -> Told:
        rows = self.parts.holdout
        return Told(rule, self.look(rule, rows[len(rows) // 10 :]).value)

    def _last(self, rule: Rule) -> Told:
        rows = self.parts.holdout
        return self.look(rule, rows[: len(rows) // 10])


class Bonferronis(Bonferroni):
    """The best of all candidates by the holdout, with an interval that is valid for all of them: one question each."""

    name = "best of all, Bonferroni"

    def _answer(self, rule: Rule) -> Told:
        return Told(rule, self.own(rule))

    def settle(self, rules: list[Rule], values: list[float]) -> Told:
        """Choose the rule with the highest holdout score."""
        del values
        return max(
            (self.look(rule, self.parts.holdout, BETA / len(rules)) for rule in rules), key=lambda t: t.value
        )


class Guarded(Judge):
    """Checks with the analyst's own estimates, then one final of the best of them: it picks, and it certifies."""

    name = "guard: checks, final"

    charges: ClassVar[int] = 3
    final_share: ClassVar[float | None] = None

    def __init__(self, labels: Rule, parts: Split, *, questions: int, best: int, estimate: float) -> None:
        super().__init__(labels, parts, questions=questions, best=best, estimate=estimate)
        self._off = 0.0  # what a charge showed the analyst's own estimates to be too high
        self.guard = ReusableHoldout(
            Rows(None, labels[parts.holdout], classes=np.unique(labels)),
            seed=0,
            plan=Plan(
                queries=questions,
                charges=self.charges,
                estimate=estimate,
                prior_error=float(np.sqrt(estimate * (1.0 - estimate) / len(parts.train))),
                final_share=self.final_share,
            ),
            allow={"vacuous"},
        )

    @property
    def charges_made(self) -> int:
        """Charges of the guard."""
        return self.guard.plan.charges - self.guard.charges_left

    def believed(self, rule: Rule, value: float) -> float:
        """Her own estimate, less what it was shown to be too high."""
        del value
        return min(max(self.own(rule) - self._off, 0.0), 1.0)

    def _answer(self, rule: Rule) -> Told:
        own = self.own(rule)
        try:
            answer = self.guard.evaluate(rule[self.parts.holdout], prior=self.believed(rule, own))
        except Halted:
            raise BudgetSpent from None
        if answer.charged:
            self._off = own - answer.value
        return Told(rule, answer.value, answer.low, answer.high)

    def settle(self, rules: list[Rule], values: list[float]) -> Told:
        """Ask for one final of the best by what was told."""
        order = np.argsort([-value for value in values], kind="stable")[: self.best]
        best, priors = [rules[place] for place in order], [values[place] for place in order]
        found = self.guard.final([rule[self.parts.holdout] for rule in best], priors)
        self.told += [Told(rule, one.value, one.low, one.high) for rule, one in zip(best, found, strict=True)]
        return Told(best[found.best_index], found.best.value, found.best.low, found.best.high)


class GuardedFinal(Guarded):
    """The same without checks: what the analyst asks is her own estimate, until the final of all."""

    name = "guard: final of all"

    def __init__(self, labels: Rule, parts: Split, *, questions: int, best: int, estimate: float) -> None:
        super().__init__(labels, parts, questions=questions, best=best, estimate=estimate)
        self.best = questions

    def _answer(self, rule: Rule) -> Told:
        return Told(rule, self.own(rule))


class FinalAlone(GuardedFinal):
    """The same with a guard that is made for one final."""

    name = "guard for one final"

    final_share = 1.0


JUDGES: list[type[Judge]] = [
    Judge,
    OneLook,
    Plain,
    Bonferroni,
    Splitting,
    Tenth,
    Bonferronis,
    Guarded,
    GuardedFinal,
    FinalAlone,
]
