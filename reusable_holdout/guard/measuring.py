"""Models that are fitted, and measured, in any process, and are asked about in one.

A search fits its candidates in workers. Each worker predicts with the guard it was sent and measures; what was measured
goes back concealed under the guard's key, to the process that asks, and to nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from reusable_holdout.errors import Halted
from reusable_holdout.guard import batches
from reusable_holdout.guard.answer import Answer, Choice
from reusable_holdout.guard.batches import Asked, MeasuredModel
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.kinds import choose as choosing
from reusable_holdout.guard.kinds import samples
from reusable_holdout.guard.kinds.samples import Sample
from reusable_holdout.guard.kinds.stated import checked_names
from reusable_holdout.guard.models import fitted
from reusable_holdout.guard.voluntary import Voluntary
from reusable_holdout.plan import whole

__all__ = ["Measuring"]


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
        if kind == "evaluate" and not batches.needs_rows(self, content, prior):
            return batches.MeasuredModel(model, content)
        return batches.MeasuredModel(model, content, batches.concealed(self, model, content, kind))

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

        Every answer is durable before it is returned. A model that fails on the holdout is answered by None, and takes
        a charge; so do all that were fitted on rows of the holdout.

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
        return batches.ask_all(self, models, priors, names, X_train)

    @sealed
    def ask_once(self, model: MeasuredModel, *, prior: float, name: str) -> Answer:
        """Ask about a fitted model as :meth:`evaluate` does, or give its recorded answer, whatever its prior was."""
        self._check_features("evaluate_predictions")
        return batches.ask_once(self, model, prior, name)

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
        kind = self._ways.choose
        made = [row for row in self._ledger.rows(kind=kind.name) if row.view == self.view]
        if priors is None:
            return len(made) > 0
        stated = self._stated_priors(priors, batches.count_of(priors, "priors"))
        units = kind.grid_units(stated).tolist()
        those = kind.grid_units(np.array([row.prior for row in made]))
        for told, unit in zip([row.told for row in made], those, strict=True):
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
            bound, found = self._holdout.bound, batches.measured_of(self, models, "choose", X_train)
            return [
                None if one is None else samples.unpacked(bound, one) if kind.by_sample else int(one[0])
                for one in found
            ]

        return self._chosen(measure, stated, digests, name)
