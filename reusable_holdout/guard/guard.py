"""The guard: one holdout, one metric, one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from reusable_holdout.guard import creation
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.branches import Branches, rows_of
from reusable_holdout.guard.creation import Stated, allowed_of
from reusable_holdout.guard.handle import the_guard
from reusable_holdout.guard.view import GuardedView, Listener
from reusable_holdout.guard.walk_forward import WalkForward
from reusable_holdout.metrics import Metric
from reusable_holdout.plan import Plan
from reusable_holdout.slips import checked_call


@the_guard
class ReusableHoldout(Branches):
    """A holdout that can be asked again and again, because it answers only what it can afford.

    With the plan's confidence, the intervals of all answers together contain the population values, however the
    questions were chosen; and what is released is (epsilon, delta)-differentially private as the plan says.

    Parameters
    ----------
    X, y : array-like, or Rows
        Private features and labels. To state classes, weights, groups, ids or training rows, pass :class:`Rows` in
        place of both.
    metric : str or Metric
        A name of the catalogue, or a metric of your own. With "score", "pass@3" or "pass^3" there are no labels: every
        question brings a score for each row.
    plan : Plan, optional
        A plan, for numbers that are no parameters here; its rows are replaced by the number of rows in `y`.
    queries : int, optional
        Questions that will be asked at most, 100 by default.
    tolerance : float, optional
        Largest distance of an agreed answer from the population value; the charges follow from it.
    charges : int, optional
        Deviations that can be paid for; by default 3, if no tolerance is named. The tolerance follows from them.
    estimate : float, optional
        Expected score. The nearer it is to the metric's bounds, the narrower are all intervals.
    ledger : str, Path or None
        SQLite file or SQLAlchemy URL that holds the budget, shared by all processes; None keeps it in memory, for this
        process alone, until it exits.
    key : bytes or Path, optional
        Noise key of 32 bytes, or the file it lies in; by default ``<ledger>.key``, made with mode 0600. Whoever has the
        key can undo the noise.
    seed : int, optional
        Makes the key from a number, so that runs can be repeated. Whoever knows the seed has the key.
    witness : str or Path, optional
        A record, kept by another owner, of how far the ledger had come, so that a restored copy is refused: a file of
        another owner, ``git:repository@remote#name`` for a git note, or the URL of a name at a server. The ledger
        stores its place. It is read before every answer and updated after it. Without a witness a copied ledger gives
        its budget twice.
    allow : set of str
        The owner's overrides, each of which is recorded in the ledger: "second budget" (the rows have one already; the
        two sets of intervals are then no longer jointly valid), "vacuous" (a plan whose tolerance is more than a
        quarter of the range), "overlap" (rows that were trained on), "no witness".
    replan : bool
        True to give the rows another metric or plan than their ledger has. This is free before the first question, and
        refused afterwards.

    Attributes
    ----------
    plan : Plan
    metric : Metric
    view : int
        Number of its metric and slice among all views of the rows; 0 for the first. See :meth:`on`.
    digest : str
        Keyed digest of the holdout, hex: public, it names the holdout and tells nothing else about it.

    Raises
    ------
    PlanError
        If no plan keeps the wish, or the plan is vacuous, at the class shares that are expected.
    InputError
        If data and metric do not fit.
    OverlapError
        If the training rows hold rows of the holdout: by ids at least one, by features more than chance explains;
        nothing was made.
    SecondBudgetError
        If the rows, or some of them, have a budget in another ledger, or in the memory of this process; nothing was
        made.
    LedgerMismatchError, LedgerKeyError, LedgerError
        If the ledger belongs to something else, its key is missing, or it cannot be used.

    Warns
    -----
    CopiedRowsWarning
        If rows have exactly the features of others, and chance does not explain it; see `groups` of :class:`Rows`.
    SecondBudgetWarning
        If the rows had a budget that was forgotten. The warning says in which ledger, when and why.
    KeptLessWarning
        If the released class counts leave a smaller budget than was wished. The guard was made, and its plan states the
        kept numbers.
    UserWarning
        If the metric counts one of two text classes as positive. The warning names this class.

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
    >>> guard = ReusableHoldout(None, labels, tolerance=0.05, queries=1_000, seed=1)
    >>> answer = guard.evaluate(labels, prior=1.0)
    >>> answer.value, answer.outcome, answer.query
    (1.0, 'agreed', 1)
    >>> guard.evaluate(labels, prior=1.0).replayed
    True
    """

    @sealed
    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        metric: str | Metric = "accuracy",
        plan: Plan | None = None,
        queries: int | None = None,
        tolerance: float | None = None,
        charges: int | None = None,
        estimate: float | None = None,
        ledger: str | Path | None = None,
        key: bytes | Path | None = None,
        seed: int | None = None,
        witness: str | Path | None = None,
        allow: Iterable[str] = (),
        replan: bool = False,
    ) -> None:
        given = locals() | {"allow": allowed_of(allow)}
        stated = Stated(**{name: given[name] for name in Stated._fields})
        self._begin(creation.made(rows_of(X, y), stated))

    @classmethod
    @sealed
    def open(
        cls,
        ledger: str | Path,
        X: Any,
        y: Any = None,
        *,
        metric: Metric | None = None,
        key: bytes | Path | None = None,
        seed: int | None = None,
        witness: str | Path | None = None,
    ) -> Self:
        """Resume a guard from its ledger; the budget is not refilled.

        Parameters
        ----------
        ledger : str or Path
            SQLite file or URL of an existing ledger.
        X, y : array-like, or Rows
            The same as when it was made.
        metric : Metric, optional
            Needed for a metric of your own only.
        key, seed
            The same as when it was made.
        witness : str or Path, optional
            By default the witness that the ledger names. Pass its new place if it was moved, or, if the ledger names
            none, a witness that watches it from now on.

        Raises
        ------
        LedgerError
            If there is no such ledger.
        LedgerMismatchError, LedgerKeyError
            If it belongs to other data or to an earlier version, or its key is missing.
        RolledBackError
            If it does not go on from what its witness has seen.
        """
        stated = Stated(metric=metric, key=key, seed=seed, witness=witness)  # type: ignore[arg-type]
        return cls._of(creation.opened(rows_of(X, y), ledger, stated))

    @classmethod
    def _of(cls, view: GuardedView) -> Self:
        guard = cls.__new__(cls)
        guard._begin(view)
        return guard

    def _begin(self, view: GuardedView) -> None:
        self._view, self.plan, self.metric, self.view = view, view.plan, view.metric, view.number
        self._handle = None

    @sealed
    def check_predictions(self, predictions: Any) -> None:
        """Refuse predictions that no question takes; nothing is asked, and the check reveals nothing private.

        Whether they fit depends on what is public of the rows: their number, their classes, their ids, and the labels
        of their pandas index, if `X` or `y` has one, in their order.

        Parameters
        ----------
        predictions : array-like of shape (rows,), (rows, classes) or (rows, repeats)

        Raises
        ------
        InputError
            If they do not fit.
        """
        self._view.holdout.bound.prepare(predictions)

    @checked_call
    def walk_forward(
        self, model: Any, X_history: Any, y_history: Any, *, refit: Any, prior: Any = None, name: Any = None
    ) -> Any:
        """Ask how good a model is that is refitted before each block of rows, on the history and all earlier rows.

        For guards of rows in time order. The fits run inside the guard. The other verbs take the same procedure as
        :class:`WalkForward`, alone, in a list, or in a :class:`Difference`.

        Parameters
        ----------
        model, X_history, y_history, refit
            As for :class:`WalkForward`.
        prior : float, optional
            The analyst's own estimate; by default the score of the model walked forward over the history, in five
            folds.
        name : str, optional
            Name of the question in the history.

        Returns
        -------
        Answer
            The same model, history and refit with the same prior get the recorded answer.

        Raises
        ------
        InputError
            If the procedure does not fit the rows, or the model cannot be fitted on the history; nothing was asked and
            nothing was charged.
        ModelError
            If a fit or a prediction fails on the holdout, or the history holds rows of it, more than chance explains;
            this is a fact about the holdout, and takes a charge.
        Halted
            As for :meth:`evaluate`.

        Notes
        -----
        Each prediction should use its own row's features alone: a block is predicted in one call, as the rows of any
        model are. NumPy's global random numbers begin at the same seed in each procedure, and the caller's are not
        used. Fits run without `verbose` and `memory`. A model whose code writes files or keeps what it reads outside
        of itself takes private rows out of the guard. One row changes all later predictions, so a plan that promises
        differential privacy refuses procedures.
        """
        return self.evaluate(WalkForward(model, X_history, y_history, refit), prior=prior, name=name)

    # ---- life

    @checked_call
    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a function with the new answers after each commit; return another function that ends this.

        Errors of the listener become warnings, because the answers are already released.
        """
        listeners = self._view.listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def close(self) -> None:
        """Close the ledger; the guard can be opened again."""
        self._view.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self  # one budget: a copy that counted for itself would double it

    def __deepcopy__(self, _: object) -> Self:
        return self
