"""What the commands ``gate-init`` and ``gate`` do: they end with a status, whatever happens.

Python's own status for a crash is 1, which here means "rejected", so nothing but an interrupt leaves as an exception.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from reusable_holdout.errors import Halted, HoldoutError, InputError, NoWitnessWarning
from reusable_holdout.plan import Plan
from reusable_holdout_evals.gate.asking import NoWorse, Verdict, ask_gate, ask_gate_of_scores
from reusable_holdout_evals.gate.evaluations import Evaluations, Tool
from reusable_holdout_evals.gate.files import classes_of, read_ids
from reusable_holdout_evals.gate.gate import Gate, make_gate, make_gate_of_scores, open_gate
from reusable_holdout_evals.gate.possible import what_is_possible

__all__ = ["BAD_INPUT", "Outcome", "run_gate", "run_gate_init"]

_STATUS = {"accepted": 0, "rejected": 1, "halted": 2}
BAD_INPUT = 3
"""Status of whatever has no verdict."""

_NO_WITNESS = (
    "note: whoever can restore an older copy of {ledger} gets budget back that was spent, and nobody can see it; name "
    "with --witness what remembers how far it had come, if others can write there"
)
_NUMBER = r"-?\d+\.?\d*|-?\.\d+"
_NO_WORSE = re.compile(
    rf"(?P<score>.+?):(?P<amount>\d+\.?\d*|\.\d+)(:(?P<lower>{_NUMBER}):(?P<upper>{_NUMBER}))?", re.ASCII
)
_PLAN = ("queries", "charges", "tolerance", "spread", "confidence", "vacuous")


class Outcome(NamedTuple):
    """How a command ended.

    Attributes
    ----------
    status : int
        Exit status.
    text : str
        For the output.
    problem : str
        For the error output: what went wrong, or a note.
    """

    status: int
    text: str = ""
    problem: str = ""


def run_gate_init(options: argparse.Namespace) -> Outcome:
    """Make a gate as the command line says; status 0 or 3."""

    def make() -> Outcome:
        stated = {name: getattr(options, name) for name in _PLAN}
        common = {
            "bounds": options.bounds,
            "key": options.key,
            "witness": options.witness,
            **{name: value for name, value in stated.items() if value is not None},
        }
        with warnings.catch_warnings(record=True) as warned, _made(options, common) as gate:
            plan = cast("Plan", gate.plan)
        possible = what_is_possible(plan)
        record = plan.record() | {"possible": possible.record()}
        text = json.dumps(record, indent=2) if options.json else f"{possible}\n\n{plan}"
        return Outcome(0, text, _noted(warned, options.ledger))

    return _ended(make)


def _noted(warned: list[warnings.WarningMessage], ledger: str) -> str:
    """What a command line has to say of a ledger without a witness; other warnings go where they went."""
    alone = False
    for one in warned:
        if issubclass(one.category, NoWitnessWarning):
            alone = True
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return _NO_WITNESS.format(ledger=ledger) * alone


def _made(options: argparse.Namespace, common: dict[str, Any]) -> Gate:
    if options.labels is not None:
        _refuse_options(options, "labels", "groups", "score", "filter", "missing")
        return make_gate(
            options.ledger,
            options.labels,
            id_column=options.id,
            metric=options.metric or "accuracy",
            classes=classes_of(options.classes),
            **common,
        )
    if options.ids is not None:
        _refuse_options(options, "ids", "classes", "score", "filter", "missing")
        ids, groups = read_ids(options.ids, id_column=options.id, groups=options.groups)
    else:
        tool, files = _files(options)
        table = _evaluations(options, tool).table(files)
        ids, groups = list(table.ids), None if table.groups is None else list(table.groups)
    return make_gate_of_scores(options.ledger, ids, groups=groups, metric=options.metric or "score", **common)


def run_gate(options: argparse.Namespace) -> Outcome:
    """Ask a gate as the command line says; status 0, 1, 2 or 3."""

    def ask() -> Outcome:
        with open_gate(options.ledger, labels=options.labels, id_column=options.id, key=options.key) as gate:
            found = (_about_predictions if options.predictions else _about_scores)(gate, options)
        text = json.dumps(found.record(), indent=2) if options.json else str(found)
        return Outcome(_STATUS[found.verdict], text, found.note)

    return _ended(ask)


def _about_predictions(gate: Gate, options: argparse.Namespace) -> Verdict:
    _refuse_options(options, "predictions", "groups", "score", "filter", "missing", "no_worse")
    if len(options.incumbent) > 1:
        raise InputError(f"--incumbent must name one file of predictions; got {len(options.incumbent)}")
    return ask_gate(
        gate,
        options.predictions,
        options.incumbent[0],
        improvement=options.improvement,
        id_column=options.id,
        name=options.name,
    )


def _about_scores(gate: Gate, options: argparse.Namespace) -> Verdict:
    tool, files = _files(options)
    evaluations = _evaluations(options, tool)
    return ask_gate_of_scores(
        gate,
        lambda new, score: evaluations.table(files if new else options.incumbent, score),
        improvement=options.improvement,
        no_worse=[_no_worse(one) for one in options.no_worse or ()],
        name=files[0].name if options.name is None else options.name,
    )


def _files(options: argparse.Namespace) -> tuple[Tool, Sequence[Path]]:
    """Tool that wrote the files, and the files: one of the options is there, for the command line demands it."""
    tools: tuple[Tool, ...] = ("inspect", "lm_eval", "scores")
    return next((tool, getattr(options, tool)) for tool in tools if getattr(options, tool))


def _evaluations(options: argparse.Namespace, tool: Tool) -> Evaluations:
    return Evaluations(
        tool=tool,
        score=options.score,
        filter=options.filter,
        id=options.id,
        groups=getattr(options, "groups", None),
        missing=options.missing,
    )


def _refuse_options(options: argparse.Namespace, source: str, *names: str) -> None:
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name, None) is not None]
    if given:
        raise InputError(f"{', '.join(given)} must come with files of scores; got --{source}; leave it out")


def _no_worse(text: str) -> NoWorse:
    found = _NO_WORSE.fullmatch(text)
    if found is None:
        raise InputError(
            "--no-worse must be the name of a score and how much worse it may be, as in style:0.02, or with its bounds "
            f"as in stars:0.1:1:5; got {text!r}"
        )
    lower, upper = found["lower"], found["upper"]
    bounds = () if lower is None else (float(lower), float(upper))
    return NoWorse(found["score"], float(found["amount"]), *bounds)


def _ended(run: Callable[[], Outcome]) -> Outcome:
    try:
        return run()
    except HoldoutError as error:
        return Outcome(BAD_INPUT, problem=str(error))
    except Halted as halted:
        return Outcome(_STATUS["halted"], problem=str(halted))
    except (Exception, SystemExit) as error:  # its words may quote the labels
        return Outcome(BAD_INPUT, problem=f"it failed, and there is no verdict ({type(error).__name__})")
