"""Models that are fitted, and measured, in any process, and are asked about in one.

A search fits its candidates in workers. Each worker predicts with the guard it was sent and measures; what was measured
goes back concealed under the guard's key, to the process that asks, and to nobody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import BudgetError, Halted, ModelError
from reusable_holdout.guard.answered import Query
from reusable_holdout.guard.asking import found_by
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.kinds.stated import checked_names
from reusable_holdout.guard.models import check_data, fitted
from reusable_holdout.guard.voluntary import Voluntary
from reusable_holdout.plan import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reusable_holdout.guard import batches
    from reusable_holdout.guard.answer import Answer, Choice
    from reusable_holdout.guard.batches import Asked, Found, MeasuredModel
    from reusable_holdout.guard.kinds import Integers, samples
    from reusable_holdout.guard.kinds import choose as choosing
    from reusable_holdout.guard.kinds.samples import Sample
    from reusable_holdout.guard.kinds.stated import Statement
else:  # of searches
    (batches,) = modules_on_first_use(__package__, "batches")
    choosing, samples = modules_on_first_use("reusable_holdout.guard.kinds", "choose", "samples")

__all__ = ["Measuring"]


class _Measured(NamedTuple):
    """One query of a batch, measured."""

    model: MeasuredModel
    found: Found
    prior: float
    name: str


class Measuring(Voluntary):
    """Queries in two steps, measured here and asked there: what integrations with searches are made of."""

    @property
    def takes_priors(self) -> bool:
        """Whether a query states a prior: a ladder has its own."""
        return "ladder" not in self.policy

    @sealed
    def measure(
        self, model: Any, *, prior: float, kind: Literal["evaluate", "choose"] = "evaluate"
    ) -> MeasuredModel:
        """Measure a fitted model, if a query about it needs that, and tell nothing of what was found.

        Parameters
        ----------
        model : estimator
            Fitted.
        prior : float
            Of the query.
        kind : {"evaluate", "choose"}
            What will be asked.

        Returns
        -------
        MeasuredModel
            For :meth:`ask` or :meth:`ask_choice`, in this process or another one that has this guard.

        Raises
        ------
        InputError
            If the model does not fit the holdout, or the prior the metric.
        """
        kind = batches.checked_kind(kind)
        self._check_features("evaluate_predictions")
        fitted(model, None, None)
        if kind == "choose":
            self._ways.reveal.check_stated(prior, self.metric.name)
        content = fingerprint(model)  # before it predicts: some models keep what they have seen
        if kind == "evaluate" and not self._needs_rows(content, prior):
            return batches.MeasuredModel(model, content)
        return batches.MeasuredModel(model, content, self._concealed(model, content, kind))

    # ---- one by one

    @sealed
    def ask(
        self,
        models: Sequence[MeasuredModel],
        priors: Sequence[float],
        *,
        names: Sequence[str],
        X_train: Any = None,
    ) -> Asked:
        """Ask about a batch of models, in its order; it shares the history before it.

        Every answer is durable before it is returned. A model that fails on the holdout is answered by None, takes a
        charge, and ends the batch for those before it; so do all that were fitted on rows of the holdout. A gate asks
        each by itself: who is in a batch would tell of a failure that it may not tell.

        Parameters
        ----------
        models : sequence of MeasuredModel
        priors : sequence of float
        names : sequence of str
            What history calls the queries.
        X_train : array-like, optional
            What all of them were fitted on.

        Returns
        -------
        Asked
            With the halt, if there was one: it is the caller's to raise.

        Raises
        ------
        InputError
            If a model does not fit the holdout, a prior the metric, or a name is no text; nothing of this batch was
            asked.
        """
        models = batches.checked_models(models)
        priors = batches.batch_priors(self._ways.policy, priors, len(models), self.metric.name)
        names = checked_names(names, len(models))
        self._check_features("evaluate_predictions")
        found = self._found(models, priors, X_train)
        batch = [_Measured(*one) for one in zip(models, found, priors, names, strict=True)]
        answers: list[Answer | None] = []
        try:
            while len(answers) < len(batch):
                start = len(answers)
                stop = next((i for i in range(start, len(found)) if found[i] is None), len(found))
                self._ask_part(batch[start : max(stop, start + 1)], answers)
        except Halted as halted:
            return batches.Asked(answers, halted)
        return batches.Asked(answers, None)

    @sealed
    def could_replay(self, priors: Sequence[float]) -> int:
        """How many queries with these priors, from the first, could have been asked before.

        Of a halted guard only what it has answered can be had. Whether a model is one of those is known when it is
        fitted; that no query had its prior is known before.
        """
        stated = batches.batch_priors(
            self._ways.policy, priors, batches.count_of(priors, "priors"), self.metric.name
        )
        if not self.takes_priors:
            return len(stated)
        policy, history = self._ways.policy, self._transcript.history()
        own = history["view"] == self.view
        known = set(policy.grid_units(history["prior"][own].dropna().to_numpy(np.float64)).tolist())
        units = policy.grid_units(np.array(stated)).tolist()
        return next((place for place, unit in enumerate(units) if unit not in known), len(units))

    @sealed
    def halt(self) -> Halted:
        """Exception that a new query would raise now, or at the end of the budget."""
        reason = self._ways.policy.halt_reason(self._transcript.state)
        return self._transcript.halt(reason or "queries", [])

    # ---- a choice

    @sealed
    def check_choice(self, candidates: int, priors: Sequence[float] | None = None) -> None:
        """Refuse a choice that would be refused, before a model is fitted for it.

        One that could be a replay is not: whether it is one is known when its models are fitted.

        Parameters
        ----------
        candidates : int
        priors : sequence of float, optional
            Of the candidates, once they are known. Until then a halted guard is not refused.

        Raises
        ------
        Halted
            If the guard has halted.
        BudgetError
            If there are more candidates than queries left.
        InputError
            If its dearest outcome would break a promise of the guard's plan, or a prior does not fit the metric.
        """
        candidates = whole("candidates", candidates)
        if priors is not None:
            self._stated_priors(priors, candidates)
        state, choose = self._transcript.state, self._ways.choose
        halted = self._ways.policy.halt_reason(state) is not None
        if self.could_have_chosen(priors) or (priors is None and halted):
            return
        if halted:
            raise self.halt()
        self._transcript.check_room(candidates, state)
        choose.check_affordable(
            choose.worst_nats(candidates), state, f"a choice among {candidates} candidates"
        )

    @sealed
    def could_have_chosen(self, priors: Sequence[float] | None) -> bool:
        """Whether a choice was made whose winner had the prior of one of these, in its place; or any, of none."""
        history, kind = self._transcript.history(), self._ways.choose
        made = history[(history["kind"] == kind.name) & (history["view"] == self.view)]
        if priors is None:
            return len(made) > 0
        stated = self._stated_priors(priors, batches.count_of(priors, "priors"))
        units = kind.grid_units(stated).tolist()
        for told, unit in zip(made["told"], kind.grid_units(made["prior"].to_numpy(np.float64)), strict=True):
            winner = choosing.Winner.parse(told)
            if winner is not None and winner.candidates == len(units) and units[winner.candidate] == unit:
                return True
        return False

    @sealed
    def ask_choice(
        self, models: Sequence[MeasuredModel], priors: Sequence[float], *, name: str = "", X_train: Any = None
    ) -> Choice:
        """Ask which of several models that were fitted on these rows is best, in one query.

        Parameters
        ----------
        models, priors, X_train
            As for :meth:`ask`.
        name : str
            What history calls the query.

        Returns
        -------
        Choice

        Raises
        ------
        InputError
            If a model does not fit the holdout, a prior the metric, or the dearest outcome the plan; nothing was told.
        BudgetError, Halted, ModelError
            As for :meth:`choose`.
        """
        models = batches.checked_models(models)
        whole("candidates", len(models))
        checked_names([name], 1)
        self._check_features("choose_predictions")
        stated, kind = self._stated_priors(priors, len(models)), self._ways.choose
        each = zip(models, kind.grid_units(stated).tolist(), strict=True)
        digests = [self._content.model_question(one.content, unit, b"choose") for one, unit in each]

        def measure() -> list[Sample | int | None]:
            bound, found = self._holdout.bound, self._measured_of(models, "choose", X_train)
            return [
                None if one is None else samples.unpacked(bound, one) if kind.by_sample else int(one[0])
                for one in found
            ]

        return self._chosen(measure, stated, digests, name)

    # ---- what is measured

    def _needs_rows(self, content: bytes, prior: float) -> bool:
        return self._transcript.needs_rows(self._ways.policy, self._digest(content, prior))

    def _asked(self, prior: float) -> Statement:
        return self._ways.policy.asked(prior if self.takes_priors else None, None, self.metric.name)

    def _digest(self, content: bytes, prior: float) -> bytes:
        return self._content.model_question(content, self._asked(prior).unit)

    def _concealed(self, model: Any, content: bytes, kind: str) -> bytes:
        """Measure, and conceal what was found in as many bytes as anything else that could have been."""
        bound, policy = self._holdout.bound, self._ways.policy
        by_rows = self._ways.choose.by_sample if kind == "choose" else policy.measures_rows
        most = 2 * bound.rows + 4 if bound.is_ratio else bound.rows + 1
        found = self._measured_on_rows(model, kind)
        return self._content.conceal(found, most if by_rows else 1, kind.encode() + content)

    def _measured_on_rows(self, model: Any, kind: str) -> Integers | None:
        """As the policy does, or for a choice, whose winner is the best by the metric itself; None if it fails."""
        self._check_models([model])
        holdout = self._holdout
        prepared = holdout.predicted(model)
        if kind == "choose":
            sampled = self._sampled(self._ways.choose, prepared)
            if sampled is None:
                return None
            return np.array([sampled], dtype=np.int64) if isinstance(sampled, int) else sampled.packed()
        one = None if prepared is None else prepared[None]
        found = found_by(self._ways.policy.measured, holdout.bound, one)
        return None if found is None else np.atleast_1d(found[0])

    @sealed
    def _measured_of(self, models: Sequence[MeasuredModel], kind: str, X_train: Any) -> list[Integers | None]:
        """What was measured of each; None of those that failed, or were fitted on rows of the holdout.

        All are tried on made-up rows first: what is refused there, free, must tell nothing of the holdout's.
        """
        if X_train is not None:
            check_data(X_train, "X_train")
        self._holdout.try_out([one.model for one in models if one.measured is None], X_train)
        if models and self._trained_on.holds(X_train):
            return [None] * len(models)
        return [
            self._measured_on_rows(one.model, kind)
            if one.measured is None
            else self._content.reveal(one.measured, kind.encode() + one.content)
            for one in models
        ]

    @sealed
    def _found(self, models: Sequence[MeasuredModel], priors: Sequence[float], X_train: Any) -> list[Found]:
        """What is decided on: measured now, if it was not, unless a halt or an earlier answer makes it needless."""
        needed = [
            one.measured is not None or self._needs_rows(one.content, prior)
            for one, prior in zip(models, priors, strict=True)
        ]
        needing = [one for one, needs in zip(models, needed, strict=True) if needs]
        found = iter(self._measured_of(needing, "evaluate", X_train))
        return [
            next(found)
            if needs
            else None
            if self._transcript.has_failed(self._digest(one.content, prior))
            else "needless"
            for one, prior, needs in zip(models, priors, needed, strict=True)
        ]

    # ---- what is asked

    def _ask_part(self, part: Sequence[_Measured], answers: list[Answer | None]) -> None:
        """Ask about models that all predicted, or about one that failed; add what was answered."""
        policy = self._ways.policy
        if part[0].found is not None and not policy.on_board and not policy.hides_failures:
            try:
                answers += self._ask_together(part)
            except BudgetError:  # fewer queries are left: ask one by one, up to the halt
                pass
            except Halted as halted:
                answers += halted.answers
                raise
            else:
                return
        for one in part:
            try:
                answers.append(self._ask_one(one))
            except ModelError:
                answers.append(None)

    @sealed
    def _ask_together(self, part: Sequence[_Measured]) -> list[Answer]:
        policy, names = self._ways.policy, [one.name for one in part]
        stated = np.array([one.prior for one in part]) if self.takes_priors else None
        checked, _, units = policy.asked_many(stated, None, len(part), self.metric.name)
        each = zip(part, units, strict=True)
        digests = [self._content.model_question(one.model.content, unit) for one, unit in each]
        measured = batches.weighed([one.found for one in part], checked, policy, self._holdout.bound)
        return self._told_batch(lambda: self._transcript.ask_many(policy, measured, checked, digests, names))

    @sealed
    def _ask_one(self, one: _Measured) -> Answer:
        policy, asked = self._ways.policy, self._asked(one.prior)
        every = batches.weighed([one.found], np.array([asked.prior]), policy, self._holdout.bound)
        measured = None if every is None else every[0]
        query = Query(self._content.model_question(one.model.content, asked.unit), one.name)
        return self._compared(policy, query, asked.prior, lambda: measured)
