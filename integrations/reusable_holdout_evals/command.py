"""The commands ``reusable-holdout gate init``, ``gate ask`` and ``redact``.

The gate commands catch every exception except an interrupt. An uncaught exception would end Python with exit status 1,
which means "rejected" here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from reusable_holdout.cli.command import PROGRAM, add, add_classes, tell
from reusable_holdout.errors import Halted, HoldoutError, InputError, NoWitnessWarning
from reusable_holdout.metrics import ScoreTable
from reusable_holdout_evals.gate import Gate, NoWorse, ask_gate, make_gate, open_gate, what_is_possible
from reusable_holdout_evals.gate.tables import classes_of, read_ids
from reusable_holdout_evals.readers import read_inspect, read_lm_eval, read_scores
from reusable_holdout_evals.redaction import redact_inspect, redact_lm_eval

__all__ = ["add_gate", "add_redact"]

_Options = dict[str, tuple[str, dict[str, Any]]]
"""The help text of each option, and its further arguments for argparse."""

_STATUS = {"accepted": 0, "rejected": 1, "halted": 2}
_BAD_INPUT = 3
_NO_WITNESS = (
    "note: whoever can restore an older copy of {ledger} gets spent budget back, and nobody can see it; if others can "
    "write there, name with --witness a place that remembers how far the ledger had come"
)
_NUMBER = r"-?\d+\.?\d*|-?\.\d+"
_NO_WORSE = re.compile(
    rf"(?P<score>.+?):(?P<amount>\d+\.?\d*|\.\d+)(:(?P<lower>{_NUMBER}):(?P<upper>{_NUMBER}))?", re.ASCII
)
_KEY_OF_A_DICT = re.compile(r"(.+)\[(.+)\]", re.DOTALL)

_FILE: dict[str, Any] = {"type": Path}
_FILES: dict[str, Any] = {"type": Path, "nargs": "+", "metavar": "FILE"}
_REAL: dict[str, Any] = {"type": float}
_SWITCH: dict[str, Any] = {"action": "store_true"}
_LEDGER: _Options = {
    "ledger": ("SQLite file or URL", {"required": True}),
    "key": ("key file (default: beside the ledger)", _FILE),
    "id": ("column of ids, by which rows are aligned (default: by their order)", {}),
}
_EVALUATIONS: _Options = {
    "inspect": ("logs of Inspect; several are repeats", _FILES),
    "lm-eval": ("samples_*.jsonl of lm-evaluation-harness; several are repeats", _FILES),
    "scores": ("CSV, Parquet or JSON of ids and scores", _FILES | {"nargs": 1}),
}
_READING: _Options = {
    "score": ("scorer, metric or column, where there are several; style[clarity] of a dict", {}),
    "filter": ("filter of lm-evaluation-harness, where there are several", {}),
    "missing": ("what counts where there is no score (default: refuse)", _REAL),
}
_ROWS: _Options = {
    "labels": ("CSV, Parquet or JSON: a column of labels, and one of ids", _FILE),
    "ids": ("CSV, Parquet or JSON: ids of rows that are scored", _FILE),
    **_EVALUATIONS,
}
_WISH: _Options = {
    "queries": ("releases that will be asked about", {"type": int, "required": True}),
    "charges": ("releases that can be accepted (default: what the tolerance affords)", {"type": int}),
    "tolerance": ("difference to be shown nine times in ten, up to the last charge", _REAL),
    "spread": (
        "guess of how much two models differ on a row: of accuracies, the root of the share of rows",
        _REAL,
    ),
    "confidence": ("probability that every verdict's interval holds (default 0.95)", _REAL),
}
_SETTINGS: _Options = {
    "metric": ("a plain mean over rows (default accuracy, of ids score; or pass@3, pass^3)", {}),
    "bounds": (
        "range of targets or scores, for mae, mse, score; targets outside are moved to them, and nothing says so",
        _REAL | {"nargs": 2, "metavar": ("LOW", "HIGH")},
    ),
    "witness": (
        "place that remembers how far the ledger had come: a file of another owner, git:repository@remote, or a URL",
        {},
    ),
    "vacuous": ("make it though it shows only differences of a quarter of their range", _SWITCH),
}
_GROUPS: _Options = {"groups": ("column, or key of Inspect's metadata, that names a row's group", {})}
_QUESTION: _Options = {
    "incumbent": ("the same of the old model", _FILES | {"required": True}),
    "no-worse": (
        "reject also if another score of the files is worse by more than the amount; may be repeated",
        {"action": "append", "metavar": "SCORE:AMOUNT"},
    ),
    "improvement": (
        "in the metric's unit, positive if better, also for losses; below 0: no worse than that",
        _REAL | {"required": True},
    ),
    "labels": ("file of the gate's labels (default: its own copy)", _FILE),
    "name": ("what history calls the question (default: the name of the new file)", {}),
}
_SOURCES: _Options = {
    "inspect": ("full log of Inspect, .eval or .json", _FILE | {"metavar": "LOG"}),
    "lm-eval": ("folder of lm_eval --output_path", _FILE | {"metavar": "FOLDER"}),
}
_REDACT: _Options = {
    "out": ("new log, or new folder", _FILE | {"required": True}),
    "ledger": ("SQLite file or URL of a guard made with the ids, sorted as text", {"required": True}),
    "prior": ("the developer's estimate, or of the difference", _REAL),
    "incumbent": ("the same of another system: asks how much better", _FILE),
    "score": ("scorer or metric, where there are several", {}),
    "task": ("task of lm-evaluation-harness", {}),
    "filter": ("filter of lm-evaluation-harness, where there are several", {}),
    "groups": ("key of Inspect's metadata by which the guard has groups", {}),
    "show": (
        "key of metadata or documents; may be repeated",
        {"action": "append", "default": [], "metavar": "KEY"},
    ),
}


class _Outcome(NamedTuple):
    """The result of a command: exit status, text for the standard output, and a problem or note for standard error."""

    status: int
    text: str = ""
    problem: str = ""


# ---- the command line of a gate


def add_gate(commands: Any) -> None:
    """Add the command ``gate`` with its actions ``init`` and ``ask`` to the command line."""
    about = "Say if a new model is better than the incumbent by a named improvement"
    start = f"Start with '{PROGRAM} gate init --help'."
    parser = commands.add_parser("gate", help=about, description=f"{about}, and nothing else.", epilog=start)
    _refuse_with_status(parser)
    actions = parser.add_subparsers(required=True, metavar="action")
    init = _add_action(
        actions,
        "init",
        _init,
        "Make a release gate from labelled rows that no model has seen, or from ids of rows whose outputs are scored. "
        "It prints first what so many rows can show. Its noise key and a copy of the labels lie beside the ledger from "
        "then on, and only you can read them. With the same labels and settings again, the gate stays as it is.",
        "gate init --ledger gate.db --labels labels.csv --queries 200 --tolerance 0.05 --spread 0.3",
    )
    _add_options(init.add_mutually_exclusive_group(required=True), _ROWS)
    _add_options(init, _READING | _GROUPS | _SETTINGS | _WISH)
    add_classes(init)
    ask = _add_action(
        actions,
        "ask",
        _ask,
        "Ask if a new model is better than the incumbent by a named improvement. Prints accepted, with the certified "
        "improvement, rejected or halted. Exit status: 0 accepted, "
        "1 rejected, 2 halted (the budget is spent: nothing was told), 3 bad input (nothing was asked, and nothing was "
        "charged). The same question again has the same verdict, free.",
        "gate ask --ledger gate.db --predictions new.csv --incumbent old.csv --improvement 0.05",
    )
    new = {"predictions": ("predictions of the new model: CSV, Parquet or JSON", _FILE)}
    _add_options(ask.add_mutually_exclusive_group(required=True), new | _EVALUATIONS)
    _add_options(ask, _READING | _QUESTION)


def _add_action(
    actions: Any, name: str, run: Callable[[argparse.Namespace], _Outcome], text: str, example: str
) -> Any:
    parser = add(actions, name, lambda options: _ended(lambda: run(options)), text, example)
    _refuse_with_status(parser)
    _add_options(parser, _LEDGER)
    return parser


def _add_options(parser: Any, options: _Options) -> None:
    for name, (text, more) in options.items():
        parser.add_argument(f"--{name}", help=text, **more)


def _refuse_with_status(parser: Any) -> None:
    """Make a wrong command line end with exit status 3, because argparse's own status, 2, means "halted" here."""

    def refuse(message: str) -> NoReturn:
        parser.print_usage(sys.stderr)
        print(f"{parser.prog}: error: {message}", file=sys.stderr)
        raise SystemExit(_BAD_INPUT)

    parser.error = refuse
    parser.set_defaults(refuse=refuse)


# ---- what a gate's commands do


def _init(options: argparse.Namespace) -> _Outcome:
    given = vars(options)
    settings = {name: given[name] for name in ("key", *_SETTINGS)}
    settings |= {name: given[name] for name in _WISH if given[name] is not None}
    with warnings.catch_warnings(record=True) as warned, _made(options, **settings) as gate:
        plan: Any = gate.plan
    note = ""
    for one in warned:
        if issubclass(one.category, NoWitnessWarning):
            note = _NO_WITNESS.format(ledger=options.ledger)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    possible = what_is_possible(plan)
    record = plan.record() | {"possible": possible.record()}
    return _Outcome(0, json.dumps(record, indent=2) if options.json else f"{possible}\n\n{plan}", note)


def _made(options: argparse.Namespace, **settings: Any) -> Gate:
    if options.labels is not None:
        _refuse_options(options, "labels", *_READING, "groups")
        classes = classes_of(options.classes)
        return make_gate(options.ledger, options.labels, id_column=options.id, classes=classes, **settings)
    if options.ids is not None:
        _refuse_options(options, "ids", "classes", *_READING)
        ids, groups = read_ids(options.ids, id_column=options.id, groups=options.groups)
    else:
        table = _read(options, _files(options), options.score)
        ids, groups = list(table.ids), None if table.groups is None else list(table.groups)
    return make_gate(options.ledger, ids=ids, groups=groups, **settings)


def _ask(options: argparse.Namespace) -> _Outcome:
    with open_gate(options.ledger, labels=options.labels, id_column=options.id, key=options.key) as gate:
        about = _predictions(options) if options.predictions else _scores(options)
        found = ask_gate(gate, improvement=options.improvement, **about)
    text = json.dumps(found.record(), indent=2) if options.json else str(found)
    return _Outcome(_STATUS[found.verdict], text, found.note)


def _predictions(options: argparse.Namespace) -> dict[str, Any]:
    _refuse_options(options, "predictions", *_READING, "no_worse")
    if len(options.incumbent) > 1:
        raise InputError(f"--incumbent must name one file of predictions; got {len(options.incumbent)}")
    name = options.predictions.name if options.name is None else options.name
    both = {"new": options.predictions, "incumbent": options.incumbent[0]}
    return both | {"id_column": options.id, "name": name}


def _scores(options: argparse.Namespace) -> dict[str, Any]:
    files = _files(options)
    stated = [_no_worse(one) for one in options.no_worse or ()]
    if len({one.score for one in stated}) < len(stated):
        raise InputError("each score with --no-worse must be named once; one came twice")
    new, old = (
        [_read(options, of, name) for name in (options.score, *(one.score for one in stated))]
        for of in (files, options.incumbent)
    )
    return {
        "new": new[0],
        "incumbent": old[0],
        "no_worse": dict(zip(stated, zip(new[1:], old[1:], strict=True), strict=True)),
        "name": files[0].name if options.name is None else options.name,
    }


def _files(options: argparse.Namespace) -> Sequence[Path]:
    """Return the files of scores; argparse has made sure that one of the three options is given."""
    found: Sequence[Path] = options.inspect or options.lm_eval or options.scores
    return found


def _read(options: argparse.Namespace, files: Sequence[Path], score: str | None) -> ScoreTable:
    """Read one score from files in the format that the options name."""
    more = {"groups": getattr(options, "groups", None), "missing": options.missing}
    if options.filter is not None and not options.lm_eval:
        raise InputError("--filter is only for files of lm-evaluation-harness; leave it out")
    if options.inspect:
        if options.id is not None:
            raise InputError("samples of Inspect have ids of their own; leave --id out")
        parts = _KEY_OF_A_DICT.fullmatch(score or "")
        scorer, key = (score, None) if parts is None else parts.groups()
        return read_inspect(files, scorer=scorer, key=key, **more)
    if options.lm_eval:
        row = options.id or "doc_id"
        return read_lm_eval(files, metric=score, filter=options.filter, id=row, **more)
    if len(files) > 1:
        raise InputError(
            f"--scores must name one file, with a row or a column for each repeat; got {len(files)}; join them"
        )
    return read_scores(files[0], id=options.id or "id", score=score, **more)


def _refuse_options(options: argparse.Namespace, source: str, *names: str) -> None:
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name, None) is not None]
    if given:
        raise InputError(f"{', '.join(given)} must come with files of scores; got --{source}; leave it out")


def _no_worse(text: str) -> NoWorse:
    found = _NO_WORSE.fullmatch(text)
    if found is None:
        raise InputError(
            "--no-worse must be the name of a score and how much worse it may be, as in style:0.02, or with its range "
            f"as in stars:0.1:1:5; got {text!r}"
        )
    bounds = () if found["lower"] is None else (float(found["lower"]), float(found["upper"]))
    return NoWorse(found["score"], float(found["amount"]), *bounds)


def _ended(run: Callable[[], _Outcome]) -> int:
    """Run a command, print its texts, and return its exit status, even if the output is closed."""
    try:
        outcome = run()
    except HoldoutError as error:
        outcome = _Outcome(_BAD_INPUT, problem=str(error))
    except Halted as halted:
        outcome = _Outcome(_STATUS["halted"], problem=str(halted))
    except (Exception, SystemExit) as error:  # the message may quote the labels
        outcome = _Outcome(_BAD_INPUT, problem=f"it failed, and there is no verdict ({type(error).__name__})")
    problem = outcome.problem and f"{PROGRAM}: {outcome.problem}"
    for stream, text in ((sys.stderr, problem), (sys.stdout, outcome.text)):
        try:
            if text:
                print(text, file=stream, flush=True)
        except (OSError, ValueError):  # otherwise Python writes again when it exits, with status 120
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return outcome.status


# ---- redact


def add_redact(commands: Any) -> None:
    """Add the command ``redact`` to the command line."""
    parser = add(
        commands,
        "redact",
        _redact,
        "Ask a guard about an evaluation, and write the part that the developer may see: outputs and the guard's "
        "answer, no target and no score. Run it where the holdout is kept. Exit status 2 if the budget is spent: then "
        "nothing was told, and nothing was written.",
        "redact --inspect full.eval --ledger guard.db --prior 0.7 --out public.eval",
    )
    _add_options(parser.add_mutually_exclusive_group(required=True), _SOURCES)
    _add_options(parser, _REDACT)


def _redact(options: argparse.Namespace) -> int:
    if options.lm_eval is not None and options.task is None:
        options.refuse("--lm-eval needs --task")
    common = {name: getattr(options, name) for name in ("ledger", "prior", "incumbent", "show")}
    try:
        if options.inspect is not None:
            more = {"scorer": options.score, "groups": options.groups}
            answer = redact_inspect(options.inspect, options.out, **common, **more)
        else:
            more = {"task": options.task, "metric": options.score, "filter": options.filter}
            answer = redact_lm_eval(options.lm_eval, options.out, **common, **more)
    except Halted as halted:
        print(f"{PROGRAM}: {halted}", file=sys.stderr)
        return _STATUS["halted"]
    tell(answer._asdict() if options.json else str(answer), as_json=options.json)
    return 0
