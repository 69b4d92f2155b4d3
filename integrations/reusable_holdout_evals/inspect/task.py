"""Tasks whose samples are a holdout: Inspect's log of them has no target and no score."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.dataset import Dataset, MemoryDataset, Sample

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.guards import check_judged, made_guard, open_guard
from reusable_holdout_evals.inspect.scorer import WITHHELD, Private, Question, as_number, name_of, withholding
from reusable_holdout_evals.redaction import scores_of

__all__ = ["guarded_task", "new_guard"]


@checked_call
def new_guard(
    samples: Task | Dataset | Sequence[Sample],
    *,
    ledger: str | Path | None,
    groups: str | None = None,
    metric: Any = "score",
    **settings: Any,
) -> ReusableHoldout:
    """Make the guard of a task's samples. The keeper of the holdout does this once.

    Parameters
    ----------
    samples : Task, Dataset or sequence of Sample
        All samples of the holdout, each with an id.
    ledger : str, Path or None
        Place of the budget; :func:`guarded_task` opens it.
    groups : str, optional
        Key of the samples' metadata that names their group, such as a repository: samples of one group are one draw.
    metric : str or Metric
        "score", or "pass@3" and "pass^3" of epochs.
    **settings
        As for :class:`reusable_holdout.ReusableHoldout`: `queries`, `tolerance`, ...

    Returns
    -------
    ReusableHoldout
        Its rows are named by the samples' ids as text, in sorted order.

    Examples
    --------
    >>> from inspect_ai.dataset import Sample
    >>> samples = [Sample(id=number, input="1 + 1?", target="2") for number in range(2_000)]
    >>> guard = new_guard(samples, ledger=None, queries=20, tolerance=0.1, seed=0)
    >>> guard.charges_left
    2
    """
    ids, named = _rows(_samples_of(samples), groups)
    return made_guard(ids, metric=metric, groups=named, ledger=ledger, **settings)


@checked_call
def guarded_task(
    task: Task,
    *,
    prior: float | Mapping[str, float] | None = None,
    guard: ReusableHoldout | None = None,
    ledger: str | Path | None = None,
    groups: str | None = None,
    private: Collection[str] = (),
    incumbent: Any = None,
    keep: str | Path | None = None,
    to_number: Callable[[Any], float | None] = as_number,
    failed: float | None = None,
) -> Task:
    """Let a guard answer for a task's metrics, and keep targets and scores of its samples out of the log.

    Samples and solver get "withheld" for a target; the scorers get the true one. When every sample is done, the guard
    is asked once about each scorer's scores: the metrics are its answer, the interval and what is left. The same
    evaluation again, with the same outputs, is replayed and free.

    Parameters
    ----------
    task : Task
        With a scorer for each question; each gives a sample a number, C, I, P or N. Its own metrics and headline are
        taken away. It is changed in place, as by :func:`inspect_ai.task_with`.
    prior : float, or dict of scorer name to float
        The developer's own estimate, such as the score of a dev set; with an incumbent, of the difference.
    guard : ReusableHoldout or RemoteHoldout, optional
        With metric "score", and the samples' ids; or `ledger`.
    ledger : str or Path, optional
        Ledger of a guard that :func:`new_guard` made.
    groups : str, optional
        As for :func:`new_guard`.
    private : collection of str
        Keys of the samples' metadata that only the scorers may see, such as a solution.
    incumbent : table or path, optional
        Scores of another system: a file that `keep` wrote, a full log with the same scorer, or a table of
        :func:`reusable_holdout_evals.read_scores`. Then the question is how much better this one is.
    keep : str or Path, optional
        CSV file that gets the scores of the samples, for the keeper of the holdout: nobody else can read it.
    to_number : callable, optional
        Makes a number of a score's value, or None if it is none.
    failed : float, optional
        Score of a sample on which the scorer fails, or gives no number within the bounds. By default nothing is asked
        then, and the log says so. That is one bit, free of charge: outputs that are crafted to break a scorer can use
        it to read targets. Name a number, such as 0, where the developer is not trusted.

    Returns
    -------
    Task

    Raises
    ------
    InputError
        If the task does not fit, before anything is evaluated. Later errors are the log's: the evaluation has the
        status "error", with the guard's message, and nothing was charged. A halt is such an error, too.

    Notes
    -----
    Epochs are repeats of a sample. All samples must be there: with ``--limit``, or a sample that failed, nothing is
    asked.

    The process that evaluates has targets and scores in its memory, and the solver runs in it. So the developer must
    not run this process: let CI do it.
    """
    if task.scorer is None:
        raise InputError("the task must have a scorer; it has none; nothing was asked")
    samples = _samples_of(task)
    ids, named = _rows(samples, groups)
    if (guard is None) == (ledger is None):
        raise InputError("name guard= or ledger=, one of them; nothing was asked")
    opened = open_guard(str(ledger), None, ids, groups=named) if guard is None else guard
    check_judged(opened)
    stated = prior if isinstance(prior, Mapping) else dict.fromkeys(map(name_of, task.scorer), prior)
    privates = {str(one.id): _private(one, private) for one in samples}
    scorers = [
        withholding(
            one,
            Question(
                guard=opened,
                prior=stated.get(name_of(one)),
                name=name_of(one),
                ids=frozenset(ids),
                incumbent=scores_of(incumbent, name_of(one)),
                keep=None if keep is None else Path(keep).absolute(),  # Inspect changes the working folder
                failed=failed,
            ),
            privates,
            to_number,
        )
        for one in task.scorer
    ]
    dataset = MemoryDataset(
        [_public(one, private) for one in samples],
        name=task.dataset.name,
        location=task.dataset.location,
        shuffled=task.dataset.shuffled,
    )
    return task_with(task, dataset=dataset, scorer=scorers, metrics=None, headline_metric=None)


def _samples_of(given: Task | Dataset | Sequence[Sample]) -> list[Sample]:
    """Return samples, after a check that each has an id of its own."""
    if isinstance(given, Task) and given.sample_source is not None:
        raise InputError(
            "a holdout's samples must be known before; a SampleSource makes them; nothing was asked"
        )
    samples = list(given.dataset if isinstance(given, Task) else given)
    ids = {str(one.id) for one in samples if one.id is not None}
    if len(ids) < len(samples):
        raise InputError(
            f"each of the {len(samples):,} samples must have an id of its own; {len(ids):,} different ones are there; "
            "name the field with FieldSpec(id=...), or number them with auto_id=True; nothing was asked"
        )
    return samples


def _rows(samples: Sequence[Sample], groups: str | None) -> tuple[list[str], list[str] | None]:
    """Return ids in the order of all guards of samples, and the group of each."""
    ordered = sorted(samples, key=lambda one: str(one.id))
    ids = [str(one.id) for one in ordered]
    if groups is None:
        return ids, None
    without = [one.id for one in ordered if groups not in (one.metadata or {})]
    if without:
        raise InputError(
            f"each sample's metadata must have {groups!r}, which names its group; {len(without):,} have none, first "
            f"{without[0]!r}; nothing was asked"
        )
    return ids, [str((one.metadata or {})[groups]) for one in ordered]


def _private(sample: Sample, keys: Collection[str]) -> Private:
    metadata = {key: value for key, value in (sample.metadata or {}).items() if key in keys}
    return Private([sample.target] if isinstance(sample.target, str) else list(sample.target), metadata)


def _public(sample: Sample, keys: Collection[str]) -> Sample:
    metadata = {key: value for key, value in (sample.metadata or {}).items() if key not in keys}
    return sample.model_copy(update={"target": WITHHELD, "metadata": metadata})
