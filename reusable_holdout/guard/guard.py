"""The guard: one holdout, one metric, one budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from reusable_holdout.certainty import Policy
from reusable_holdout.errors import HoldoutError, LedgerError
from reusable_holdout.guard import class_counts, handle
from reusable_holdout.guard.absent import the_guard
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.configuration import Configuration, metric_of
from reusable_holdout.guard.endings import Finals, Rotating
from reusable_holdout.guard.handle import Handle, arrive
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.known_rows import Overlap
from reusable_holdout.guard.measuring import Measuring
from reusable_holdout.guard.pricing import Wanted, decided_as_ratio, guessed
from reusable_holdout.guard.questions import Questions
from reusable_holdout.guard.standing import check_may_stand, looked_through
from reusable_holdout.guard.stores import declared_classes, find_key, new_or_kept, sql_ledger, watched
from reusable_holdout.guard.whereabouts import remember
from reusable_holdout.metrics import Metric, resolve_metric
from reusable_holdout.plan import MechanismChoice, Plan, SharedBudget

__all__ = ["ReusableHoldout"]


@the_guard
class ReusableHoldout(Questions, Measuring, Finals, Rotating):
    """A holdout that can be asked again and again, because it answers only what it can afford.

    With probability `confidence`, the intervals of all answers together contain the population values, however the
    questions were chosen; and what is released is (epsilon, delta)-differentially private as the plan says.

    Parameters
    ----------
    X : array-like of shape (rows, features), ParquetRows, Dask array or DataFrame, or None
        Private features, for :meth:`evaluate`; NumPy, pandas, polars or scipy.sparse. The guard keeps a copy, as much
        memory again (none of polars, whose columns never change, nor of arrays that are mapped read-only): what you do
        to yours afterwards changes no answer, unless it is done inside a cell that is a list or an array. Those of
        Parquet files and Dask stay where they are: models predict them chunk by chunk, on joblib's current backend.
    y : array-like of shape (rows,) or (rows, outputs), or the name of a column of ParquetRows or of a Dask DataFrame
        Private labels. Rows must be independent draws from the population of interest and no training rows. For judged
        scores the rows' ids, distinct names, and X is None.
    metric : str or Metric
        A name of the catalogue, or a metric of your own. With "score", "pass@3" or "pass^3" there are no labels: every
        question brings a score for each row. Real targets outside the bounds that a metric states are moved to them,
        and nothing says so: look at their range yourself.
    queries : int
        Questions K that will be asked at most.
    tolerance : float, optional
        How far an answer may be from the population value; the budget follows from it.
    policy : {"thresholdout", "ladder", "guess-and-check", "gate", "parameter-free-ladder", "claims"}
        What a question is compared with, and what is told. Thresholdout: the analyst's prior, corrected when the
        holdout deviates from it. Ladder: the best score so far, raised when the score improves on it by the threshold.
        Guess-and-check: Thresholdout with a tolerance for each question. Gate: whether the score is at least the prior,
        and nothing else; "yes" is a charge. Parameter-free ladder: the published Ladder whose step is a standard error,
        for plain means and in memory only; it warns, for pair flips spend its charges fast. Claims: a board of many
        series, such as teams; what stands is agreed, what would lead is measured, and what is wrong is a charge of its
        series' own allowance of `charges`, 2 if left out. It takes no tolerance: intervals grow with what is told.
    charges : int, optional
        Deviations to pay for, in place of `tolerance`.
    threshold, noise_scale, confidence, estimate, prior_error, reveals, choices, final_noise, delta, mechanism
        As for :class:`Plan`. `estimate`, the score that is expected, buys the most; `prior_error`, how far honest
        priors are off, keeps an honest search going to its last question.
    spread : float, optional
        For metrics that are means of graded losses: a guess of their standard deviation over the rows, in the metric's
        unit. The budget follows from it; no interval rests on it.
    comparison_tolerance : float, optional
        Of :meth:`compare`, if it is not `tolerance`.
    ledger : str, Path or None
        SQLite file or URL of a PostgreSQL server that holds the budget, shared by all processes; None keeps it in
        memory, for this process alone, until it exits.
    key : bytes or Path, optional
        Noise key of 32 bytes, or the file it lies in; by default ``<ledger>.key``, made with mode 0600. Whoever has the
        key can undo the noise.
    seed : int, optional
        Makes the key from a number, so that runs can be repeated. Whoever knows the seed has the key.
    classes : array-like, optional
        All classes that may occur, which makes them public; or "private". By default those in `y` are public if there
        is at most one for 50 rows. Others are private: accuracy compares answers in a normal form (NFKC, without case
        and extra spaces), and no other metric is measured.
    sample_weight : array-like of shape (rows,), optional
        Public weights, at least 0. Weights of 0 and 1 make a slice, such as ``group == "A"``: then the answers are
        about this group, and only its rows count.
    groups : array-like of shape (rows,), optional
        Names of what rows belong to, such as users or documents, whose rows are not independent: a group is one draw
        and counts once, with the mean of its rows; the plan's rows are groups. For means of losses.
    prevalence : float, sequence of float or dict, optional
        Class shares that you expect, such as those of the training rows: of the last of two classes, of all in sorted
        order, or by class; equal ones by default. How far the holdout's class counts are from these is told, and
        priced, where a metric's interval rests on them: the nearer, the cheaper. What is refused follows from the
        guess, for refusals would tell the counts.
    training : array-like, optional
        What models were trained on, to be looked through for rows of the holdout: a table with its columns, or, where
        the guard has ids, ids. Nothing of it is kept.
    ids : array-like of shape (rows,), optional
        Distinct names of the rows, by which they are known again; they never leave the guard.
    overlap : {"refuse", "allow"}
        Whether to go on though rows are among `training`, and to ask about models that were trained on some of them.
    vacuous : bool
        Whether to make a guard whose plan says nothing: its tolerance is more than a quarter of the metric's range.
    witness : str, Path or False, optional
        Another owner's memory of how far the ledger had come, so that a restored copy is refused: a file of another
        owner, ``git:repository@remote#name`` for a git note, or the URL of a name at a server. It stands in the ledger,
        and is asked before, and told after, every answer. Without one a copied ledger gives its budget twice, which is
        said when it is made; False says that you know.
    another_budget : bool
        Make a guard though the rows have a budget in another ledger: no promise holds of both together, and every
        answer, the ledger and its verification say so. Which rows have one is known to a registry in your state folder.
    replan : bool
        Whether to give the rows another metric, plan or settings than their ledger has: before its first question it
        costs nothing, afterwards it is refused. Guards of the old plan, in any process, are refused from then on.

    Attributes
    ----------
    plan : Plan
    metric : Metric
    policy : str
    view : int
        Number of its metric, slice and policy among those that are asked about the rows; 0 for the first. See
        :meth:`on`.
    digest : str
        Keyed digest of the holdout, hex: public, it names the holdout and tells nothing else about it.

    Raises
    ------
    PlanError
        If no plan keeps the wish, or the plan is vacuous, at the class shares that are expected.
    InputError
        If data and metric do not fit.
    OverlapError
        If rows were trained on: by ids one of them, by features more than chance explains; nothing was made.
    SecondBudgetError
        If the rows, or some of them, have a budget in another ledger, or in the memory of this process; nothing was
        made.
    LedgerMismatchError, LedgerKeyError, LedgerError
        If the ledger belongs to something else, its key is missing, or it cannot be used.

    Warns
    -----
    CopiedRowsWarning
        If rows have exactly the features of others, and chance does not explain it; see `groups`.
    SecondBudgetWarning
        If the rows had a budget that was forgotten: says in which ledger, when and why.
    KeptLessWarning
        If the class counts or group sizes, once they were told, keep less than was wished: the guard was made, and its
        plan says what is kept.
    UserWarning
        If the metric counts one of two classes that are text as positive: which one it is.

    Notes
    -----
    Making a guard on a ledger that has one resumes it: the same holdout and settings continue the same budget, others
    are refused. In memory each process keeps one budget for a set of rows, until it exits, in the same way; the
    environment variable ``REUSABLE_HOLDOUT_REGISTRY=off`` is for simulations. A private set of classes is never told.
    The guard protects against conclusions, not against code that runs in its process and looks at its memory.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout: Preserving validity in adaptive
       data analysis", Science 349.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.random.default_rng(0).integers(0, 2, 10_000)
    >>> guard = ReusableHoldout(None, labels, metric="accuracy", tolerance=0.05, queries=1_000, seed=1)
    >>> answer = guard.evaluate_predictions(labels, prior=1.0)
    >>> answer.value, answer.charged, answer.query
    (1.0, False, 1)
    >>> guard.evaluate_predictions(labels, prior=1.0).replayed
    True
    """

    @sealed
    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        metric: str | Metric = "accuracy",
        queries: int,
        tolerance: float | None = None,
        charges: int | None = None,
        threshold: float | None = None,
        noise_scale: float | None = None,
        confidence: float = 0.95,
        estimate: float | None = None,
        prior_error: float | None = None,
        reveals: int | None = None,
        choices: Sequence[int] | None = None,
        final_noise: float | None = None,
        delta: float | None = None,
        mechanism: MechanismChoice = "numeric-sparse",
        policy: Policy = "thresholdout",
        spread: float | None = None,
        comparison_tolerance: float | None = None,
        ledger: str | Path | None = None,
        key: bytes | Path | None = None,
        seed: int | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        prevalence: Any = None,
        training: Any = None,
        ids: ArrayLike | None = None,
        overlap: Overlap = "refuse",
        vacuous: bool = False,
        another_budget: bool = False,
        replan: bool = False,
        witness: str | Path | Literal[False] | None = None,
    ) -> None:
        data = PrivateData(
            X,
            y,
            resolve_metric(metric),
            classes=classes,
            sample_weight=sample_weight,
            groups=groups,
            declared=lambda: declared_classes(ledger),
        )
        rule: dict[str, Any] = {
            "policy": policy,
            "mechanism": mechanism,
            "threshold": threshold,
            "noise_scale": noise_scale,
            "final_noise": final_noise,
        }
        counts = guessed(data.bound, prevalence, by_ratio=decided_as_ratio(data.bound, **rule))
        stated = rule | {
            "queries": queries,
            "tolerance": tolerance,
            "charges": charges,
            "confidence": confidence,
            "estimate": estimate,
            "prior_error": prior_error,
            "reveals": reveals,
            "choices": choices,
            "delta": delta,
            "comparison_tolerance": comparison_tolerance,
        }

        def planned(numbers: dict[str, Any], told_before: float, **less: Any) -> Plan:
            return Plan(**numbers, **(stated | less), shared=SharedBudget(told_before=told_before))

        wanted = Wanted(data.bound, counts, planned, charges=charges, estimate=estimate, spread=spread)
        check_may_stand(data, wanted.guess, ledger, vacuous=vacuous)
        rows = looked_through(data, ids, training, overlap)
        with new_or_kept(data, ledger, another_budget=another_budget) as (store, another):
            found = find_key(store, key=key, seed=seed)
            seen = watched(store, witness, found[0])
            kept = self._begin_as_kept(
                data, wanted, store, found, rows, replan=replan, witness=seen, another_budget=another
            )
        if kept is not None:
            kept.warn(kept.plan.shared.told_before, vacuous=vacuous, stacklevel=3)  # __init__, sealed, user

    @classmethod
    @sealed
    def open(
        cls,
        ledger: str | Path,
        X: Any,
        y: Any,
        *,
        metric: str | Metric | None = None,
        key: bytes | Path | None = None,
        seed: int | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        witness: str | Path | Literal[False] | None = None,
    ) -> Self:
        """Resume a guard from its ledger; nothing is refilled.

        Parameters
        ----------
        ledger : str or Path
            SQLite file or URL of an existing ledger.
        X, y, key, seed, classes, sample_weight, groups
            The same as when it was made.
        metric : Metric, optional
            Needed for a metric of your own only.
        witness : str or Path, optional
            By default the one that stands in the ledger; where that was moved to, if it is no more where it was; or,
            if there is none, one that watches it from now on.

        Raises
        ------
        LedgerError
            If there is no such ledger.
        LedgerMismatchError, LedgerKeyError
            If it belongs to other data, or its key is missing.
        RolledBackError
            If it does not go on from what its witness has seen.
        """
        store = sql_ledger(ledger, must_exist=True)
        stored = store.configuration()
        if stored is None:
            raise LedgerError(
                f"{store!r} holds no guard yet; make one with ReusableHoldout(X, y, ledger=...)"
            )
        configuration = Configuration.parse(stored)
        if "largest_group" in configuration.metric:
            raise LedgerError(
                "a ledger that was made with largest_group= can be verified and printed, but no longer asked; got one; "
                "ask it with reusable-holdout 0.2.1"
            )
        data = PrivateData(
            X,
            y,
            metric_of(configuration.metric) if metric is None else resolve_metric(metric),
            classes=configuration.classes if classes is None else classes,
            sample_weight=sample_weight,
            groups=groups,
        )
        plan, told = Plan.kept(configuration.plan), configuration.counts
        class_counts.rest_on(data.bound, told)
        guard = cls.__new__(cls)
        found = find_key(store, key=key, seed=seed)
        watched(store, witness, found[0])
        guard._begin(data, plan, told, store, found)
        return guard

    # ---- life

    def close(self) -> None:
        """Close the ledger; the guard can be opened again."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        about = f"{self.metric.name}, {self._units}"
        try:
            state = self._state()
        except HoldoutError:
            return f"<ReusableHoldout: {about}, closed>"
        if self.policy == "claims":
            return (
                f"<ReusableHoldout: {about}, {state.asked:,} of {self.plan.queries:,} claims asked, "
                f"{state.charges:,} charged>"
            )
        left = self._transcript.charges_left(state.charges)
        return (
            f"<ReusableHoldout: {about}, {state.asked:,} of {self.plan.queries:,} queries asked, "
            f"{left} of {self.plan.charges} charges left>"
        )

    def __copy__(self) -> Self:
        return self  # one budget: a copy that counted for itself would double it

    def __deepcopy__(self, _: object) -> Self:
        return self

    @sealed
    def __reduce__(self) -> tuple[Any, ...]:
        remember(self)
        return arrive, (self._handle_of_all(),)

    def _handle_of_all(self) -> Handle:
        if self._handle is None:
            holdout = self._holdout
            contents = {"metric": self.metric, "sample_weight": holdout.sample_weight}
            if self._root is self:
                contents |= {name: getattr(holdout, name) for name in ("X", "y", "classes", "groups")}
                self._handle = handle.make_handle(self._ledger, self._key[1], contents, epoch=self.epoch)
            else:
                contents["policy"] = self.policy
                self._handle = self._root._handle_of_all().of_view(self.view, contents)
        return self._handle
