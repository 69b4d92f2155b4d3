"""A task, found by Inspect under its name, that guards another task whose code need not be changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai._eval.loader import load_tasks

from reusable_holdout.errors import InputError
from reusable_holdout_evals.inspect.task import guarded_task

__all__ = ["holdout"]


@task  # type: ignore[untyped-decorator]
def holdout(
    task: str,  # the name of the option: -T task=questions.py@easy
    ledger: str,
    prior: float | None = None,
    groups: str | None = None,
    private: list[str] | str = (),  # type: ignore[assignment] # Inspect turns a,b into a list
    incumbent: str | None = None,
    keep: str | None = None,
    args: dict[str, Any] | None = None,
) -> Task:
    """Guard the samples of a task without a change of its code; for Inspect's command line.

    ``inspect eval reusable_holdout_evals/holdout -T task=questions.py@easy -T ledger=guard.db -T prior=0.7``

    Parameters
    ----------
    task : str
        File and name, ``questions.py@easy``, or a task of a package, ``inspect_evals/gpqa_diamond``.
    ledger, prior, groups, private, incumbent, keep
        The arguments of :func:`reusable_holdout_evals.inspect.guarded_task`.
    args : dict, optional
        Arguments of the task, such as ``-T args='{difficulty: 3}'``.

    Returns
    -------
    Task
        The guarded task.
    """
    found = load_tasks([task], args or {})
    if len(found) != 1:
        raise InputError(
            f"task= must name one task, as in questions.py@easy; {task!r} names {len(found)}; nothing was asked"
        )
    names = [private] if isinstance(private, str) else list(private)
    place = ledger if "://" in ledger else Path(ledger).absolute()
    return guarded_task(
        found[0], prior=prior, ledger=place, groups=groups, private=names, incumbent=incumbent, keep=keep
    )
