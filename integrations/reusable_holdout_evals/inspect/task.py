"""Tasks of Inspect on a private set of samples: a guard answers, and the log has no target and no score."""

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
    """Make the guard of a task's samples. The person who keeps the holdout does this once.

    Parameters
    ----------
    samples : Task, Dataset or sequence of Sample
        All samples of the holdout, each with an id.
    ledger : str, Path or None
        The guard's ledger, which :func:`guarded_task` opens later; None keeps it in memory.
    groups : str, optional
        Key of the samples' metadata that names their group, such as a repository: samples of one group are one draw.
    metric : str or Metric
        "score" or, for tasks with epochs, "pass@3" or "pass^3".
    **settings
        Further arguments of :class:`reusable_holdout.ReusableHoldout`, such as `queries` and `tolerance`.

    Returns
    -------
    ReusableHoldout
        A guard whose rows are the samples' ids, sorted as text.

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
    """Replace a task's metrics with a guard's answers, and keep targets and scores of its samples out of the log.

    In the samples, which the solver sees, each target is replaced by "withheld"; only the scorers get the true target.
    When all samples are done, the guard is asked once about the scores of each scorer. The logged metrics are the
    guard's answer, its interval and what is left. If the same evaluation runs again with the same outputs, the answer
    is replayed and free.

    Parameters
    ----------
    task : Task
        A task with a scorer for each question. Each scorer gives a sample a number, C, I, P or N. The task's own
        metrics and headline metric are removed. The task is changed in place, as with :func:`inspect_ai.task_with`.
    prior : float, or dict of scorer name to float
        The developer's own estimate of the score, for example from a dev set; with an incumbent, of the difference.
    guard : ReusableHoldout or RemoteHoldout, optional
        A guard with the metric "score" and the samples' ids. Give either `guard` or `ledger`.
    ledger : str or Path, optional
        Ledger of a guard that :func:`new_guard` made.
    groups : str, optional
        Key of the samples' metadata that names their group; the same as for :func:`new_guard`.
    private : collection of str
        Keys of the samples' metadata that only the scorers may see, such as a solution.
    incumbent : table or path, optional
        Scores of another system: a file that `keep` wrote, a full log with the same scorer, or a table from
        :func:`reusable_holdout_evals.read_scores`. Then the guard is asked how much better this system is.
    keep : str or Path, optional
        CSV file to which the scores of the samples are written; only the user who runs the evaluation can read it.
    to_number : callable, optional
        Function that turns the value of a score into a number, or into None if it is no score.
    failed : float, optional
        Score of a sample on which the scorer fails, or gives no number within the bounds. By default nothing is asked
        then, and the log says so. This message tells one bit about the targets, free of charge: outputs that are
        crafted to break a scorer can use it to read them. If you do not trust the developer, name a number, such as 0.

    Returns
    -------
    Task
        The guarded task.

    Raises
    ------
    InputError
        If the task does not fit; then nothing is evaluated. Later errors, a halt among them, are in the log: the
        evaluation has the status "error" and the guard's message, and nothing was charged.

    Notes
    -----
    Epochs are repeats of a sample. The guard is asked only about all samples: with ``--limit``, or if a sample failed,
    nothing is asked.

    The process that evaluates has targets and scores in its memory, and the solver runs in it. So the developer must
    not run this process. Run it in CI, for example.
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
    """Return the samples as a list, after a check that each has an id of its own."""
    if isinstance(given, Task) and given.sample_source is not None:
        raise InputError(
            "a holdout's samples must be known in advance; this task's come from a SampleSource; nothing was asked"
        )
    samples = list(given.dataset if isinstance(given, Task) else given)
    ids = {str(one.id) for one in samples if one.id is not None}
    if len(ids) < len(samples):
        raise InputError(
            f"each of the {len(samples):,} samples must have an id of its own; there are {len(ids):,} different ids; "
            "name the field with FieldSpec(id=...), or number them with auto_id=True; nothing was asked"
        )
    return samples


def _rows(samples: Sequence[Sample], groups: str | None) -> tuple[list[str], list[str] | None]:
    """Return the samples' ids, sorted as text, and the group of each sample if `groups` names a key."""
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
