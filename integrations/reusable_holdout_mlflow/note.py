"""The part of an experiment's note that is about a holdout, and a saved choice of columns for MLflow's list of runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from reusable_holdout import ReusableHoldout
from reusable_holdout_mlflow.pictures import GAP_AND_BUDGET
from reusable_holdout_mlflow.words import BUDGET, NOTE, OVERFITTING, budget_in_words

__all__ = ["VIEW", "write_note"]

VIEW = "reusable-holdout"
_SAVED_VIEW = f"mlflow.sharedViewState.{VIEW}"
_MOST = 5_000  # MLflow's limit for the characters of an experiment's tag
_RUNS = 8
_METRICS = ("answer", "low", "high", "gap", "charges_left")
_WIDTH = 170  # width of a column of words, in pixels


def write_note(
    client: MlflowClient, experiment_id: str, guard: ReusableHoldout, runs: Sequence[Run], page: str
) -> None:
    """Write into an experiment's note which run is overfitted and what is left of the budget, with a picture.

    Only the part of the note between this holdout's marks is changed; the rest belongs to the note's owner.

    Parameters
    ----------
    client : MlflowClient
    experiment_id : str
    guard : ReusableHoldout
    runs : sequence of Run
        The runs that have answers about the holdout, in any experiment, the oldest first.
    page : str
        Id of the run that is the holdout's page; the picture is one of its files.
    """
    tags = client.get_experiment(experiment_id).tags
    if _SAVED_VIEW not in tags:
        client.set_experiment_tag(experiment_id, _SAVED_VIEW, _saved_view())
    here = [run for run in runs if str(run.info.experiment_id) == experiment_id]
    first = (
        f"{_headline(guard, here)} · [columns](#/experiments/{experiment_id}/runs?viewStateShareKey={VIEW})"
    )
    picture = f"![gap and budget](get-artifact?path={GAP_AND_BUDGET}&run_uuid={page}&query={guard.answered})"
    before = tags.get(NOTE, "")
    for parts in ([first, picture, _table(here)], [first, picture], [first]):
        note = _with_part(before, guard.digest[:8], "\n\n".join(parts))
        if len(note) <= _MOST:
            if note != before:
                client.set_experiment_tag(experiment_id, NOTE, note)
            return


def _with_part(note: str, holdout: str, text: str) -> str:
    """Return a note in which the part about one holdout is replaced; it is added if there is none."""
    start, end = (f"<!-- {edge} of holdout {holdout} -->" for edge in ("part", "end"))
    part = f"{start}{text}\n\n{end}"
    before, mark, rest = note.partition(start)
    _, closed, after = rest.partition(end)
    if mark and closed:
        return before + part + after
    return f"{note}\n\n{part}" if note else part


def _headline(guard: ReusableHoldout, runs: Sequence[Run]) -> str:
    """Return the first line of the part, which is all that MLflow shows until somebody opens the note."""
    overfitted = [run for run in runs if run.data.tags.get(OVERFITTING, "").startswith("overfitted")]
    if overfitted:
        worst = max(overfitted, key=lambda run: abs(run.data.metrics.get("holdout_gap", 0.0)))
        others = f" and {len(overfitted) - 1} more" if len(overfitted) > 1 else ""
        by = worst.data.tags[OVERFITTING].removeprefix("overfitted ")
        found = f"**Overfitted: {_plain(worst)} {by}{others}**"
    else:
        found = "**No overfitting seen**"
    charges = f"{guard.charges_left:,} of {guard.plan.charges:,} charges left"
    halt = [budget_in_words(guard)] if guard.halted else []
    return " · ".join([found, charges, *halt, f"holdout {guard.digest[:8]}, {guard.metric.name}"])


def _table(runs: Sequence[Run]) -> str:
    """Return a Markdown table of the last runs, the newest first."""
    lines = ["| run | answer | interval | prior | |", "|---|---|---|---|---|"]
    for run in reversed(runs[-_RUNS:]):
        numbers, tags = run.data.metrics, run.data.tags
        if "holdout_answer" not in numbers:
            continue
        answer, low, high, prior = (
            f"{numbers[f'holdout_{name}']:.4f}" for name in ("answer", "low", "high", "prior")
        )
        words = tags.get(OVERFITTING, "")
        lines.append(
            f"| {_plain(run)} | {answer} | {low} to {high} | {prior} | {words}; {tags.get(BUDGET, '')} |"
        )
    return "\n".join(lines)


def _plain(run: Run) -> str:
    """Return the name of a run, without characters that have a meaning in Markdown."""
    return re.sub(r"[^\w .,:=+-]", " ", str(run.info.run_name))[:40].strip() or "a run"


def _saved_view() -> str:
    """Return a saved choice of columns for MLflow's list of runs, in MLflow's own format."""
    numbers = [f"metrics.`holdout_{name}`" for name in _METRICS]
    words = [f"tags.`{name}`" for name in (OVERFITTING, BUDGET)]
    state = {
        "selectedColumns": [*words, *numbers],
        "columnOrder": [*words, *numbers],
        "columnWidths": dict.fromkeys(words, _WIDTH) | dict.fromkeys(numbers, 100),
    }
    now = int(time.time() * 1_000)
    return json.dumps(
        {"name": "Reusable holdout", "createdAt": now, "updatedAt": now, "state": json.dumps(state)}
    )
