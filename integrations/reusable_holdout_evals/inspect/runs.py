"""Which evaluation is running here: a metric is called for its display, too, and only the last call asks."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import anyio
from inspect_ai.hooks import Hooks, hooks

if TYPE_CHECKING:
    from inspect_ai.hooks import TaskStart

__all__ = ["Run", "current_run", "watch_runs"]


@dataclass(frozen=True, eq=False)
class Run:
    """One evaluation of one task.

    Attributes
    ----------
    ids : frozenset of str
        Of the samples that it will run.
    task_metrics : bool
        Whether the task has metrics of its own, which stand in the place of a scorer's.
    flow : int
        Which flow of control began it: it will end it, too, while every sample has one of its own.
    """

    ids: frozenset[str]
    task_metrics: bool
    flow: int

    def is_ending(self) -> bool:
        """Whether the caller is what began the evaluation: then all samples are done."""
        return anyio.get_current_task().id == self.flow


_RUN: ContextVar[Run | None] = ContextVar("reusable_holdout_run", default=None)


def current_run() -> Run | None:
    """Evaluation that the caller is part of."""
    return _RUN.get()


@cache
def watch_runs() -> None:
    """Have Inspect tell of every evaluation that begins."""

    @hooks(name="runs", description="Asks a guarded holdout when all samples are scored")
    class _Runs(Hooks):  # type: ignore[misc] # its type is not looked into
        async def on_task_start(self, data: TaskStart) -> None:
            spec = data.spec
            _RUN.set(
                Run(
                    ids=frozenset(str(one) for one in spec.dataset.sample_ids or ()),
                    task_metrics=bool(spec.metrics),
                    flow=anyio.get_current_task().id,
                )
            )
