"""``reusable-holdout gate init|ask`` and ``redact``.

A gate ends with a status, whatever happens. Python's own status for a crash is 1, which means "rejected" here, so no
exception but an interrupt leaves it.
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
from reusable_holdout_evals.gate import (
    Gate,
    NoWorse,
    ask_gate,
    classes_of,
    make_gate,
    open_gate,
    read_ids,
    what_is_possible,
)
from reusable_holdout_evals.guards import open_guard_of
from reusable_holdout_evals.readers import read_inspect, read_lm_eval, read_scores
from reusable_holdout_evals.redaction import redact_inspect, redact_lm_eval, samples_of

__all__ = ["add_gate", "add_redact"]

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
_OF_SCORES = ("groups", "score", "filter", "missing", "no_worse")
_WISH: dict[str, tuple[Callable[[str], Any], str]] = {
    "charges": (int, "releases that can be accepted (default: what the tolerance affords)"),
    "tolerance": (float, "how far below the named improvement an accepted release can be"),
    "spread": (
        float,
        "guess of how much two models differ on a row: of accuracies, the root of the share of rows",
    ),
    "confidence": (float, "probability that every verdict's interval holds (default 0.95)"),
}


class _Outcome(NamedTuple):
    """The end of a command: its status, its output, and a problem or note for the error output."""

    status: int
    text: str = ""
    problem: str = ""


# ---- the command line of a gate


def add_gate(commands: Any) -> None:
    """Add ``gate`` and its actions."""
    parser = commands.add_parser(
        "gate",
        help="Say if a new model is better than the incumbent by a named improvement",
        description="A release gate: it says if a new model is better than the incumbent by a named improvement, and "
        "nothing else.",
        epilog=f"Start with '{PROGRAM} gate init --help'.",
    )
    _refuse_with_status(parser)
    actions = parser.add_subparsers(required=True, metavar="action")
    _add_init(actions)
    _add_ask(actions)


def _add_init(actions: Any) -> None:
    parser = _add_action(
        actions,
        "init",
        _init,
        "Make a release gate from labelled rows that no model has seen, or from ids of rows whose outputs are scored. "
        "It prints first what so many rows can show. Its noise key and a copy of the labels lie beside the ledger from "
        "then on, and only you can read them. With the same labels and settings again, the gate stays as it is.",
        "gate init --ledger gate.db --labels labels.csv --queries 200 --tolerance 0.05 --spread 0.3",
    )
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument("--labels", type=Path, help="CSV, Parquet or JSON: a column of labels, and one of ids")
    rows.add_argument("--ids", type=Path, help="CSV, Parquet or JSON: ids of rows that are scored")
    _add_evaluations(parser, rows, "whose rows these are")
    parser.add_argument("--groups", help="column, or key of Inspect's metadata, that names a row's group")
    parser.add_argument(
        "--metric", help="a plain mean over rows (default accuracy, of ids score; or pass@3, pass^3)"
    )
    bounds = {"type": float, "nargs": 2, "metavar": ("LOW", "HIGH")}
    parser.add_argument("--bounds", **bounds, help="range of targets or scores, for mae, mse, score")
    add_classes(parser)
    parser.add_argument("--queries", type=int, required=True, help="releases that will be asked about")
    for name, (kind, text) in _WISH.items():
        parser.add_argument(f"--{name}", type=kind, help=text)
    parser.add_argument(
        "--witness",
        help="place that remembers how far the ledger had come, so that a restored copy is refused: a file of another "
        "owner, git:repository@remote, or a URL",
    )
    parser.add_argument(
        "--vacuous",
        action="store_true",
        help="make it though an accepted release can be worse by more than a quarter of the range of differences",
    )


def _add_ask(actions: Any) -> None:
    parser = _add_action(
        actions,
        "ask",
        _ask,
        "Ask if a new model is better than the incumbent by a named improvement. Prints accepted, with the certified "
        "improvement, rejected or halted, and a note if noise can pass the named improvement. Exit status: 0 accepted, "
        "1 rejected, 2 halted (the budget is spent: nothing was told), 3 bad input (nothing was asked, and nothing was "
        "charged). The same question again has the same verdict, free.",
        "gate ask --ledger gate.db --predictions new.csv --incumbent old.csv --improvement 0.05",
    )
    new = parser.add_mutually_exclusive_group(required=True)
    new.add_argument("--predictions", type=Path, help="predictions of the new model: CSV, Parquet or JSON")
    _add_evaluations(parser, new, "of the new model")
    parser.add_argument(
        "--incumbent", type=Path, nargs="+", required=True, metavar="FILE", help="the same of the old model"
    )
    parser.add_argument(
        "--no-worse",
        action="append",
        metavar="SCORE:AMOUNT",
        help="reject also if another score of the files is worse by more than the amount; may be repeated",
    )
    parser.add_argument(
        "--improvement",
        type=float,
        required=True,
        help="in the metric's unit, positive if better, also for losses: what gate init shows, or more",
    )
    parser.add_argument("--labels", type=Path, help="file of the gate's labels (default: its own copy)")
    parser.add_argument("--name", help="what history calls the question (default: the name of the new file)")


def _add_action(
    actions: Any, name: str, run: Callable[[argparse.Namespace], _Outcome], text: str, example: str
) -> Any:
    parser = add(actions, name, lambda options: _ended(lambda: run(options)), text, example)
    _refuse_with_status(parser)
    parser.add_argument("--ledger", required=True, help="SQLite file or URL")
    parser.add_argument("--key", type=Path, help="key file (default: beside the ledger)")
    parser.add_argument("--id", help="column of ids, by which rows are aligned (default: by their order)")
    return parser


def _refuse_with_status(parser: Any) -> None:
    """Let a wrong command line end with status 3: argparse's own status means "halted" here."""

    def refuse(message: str) -> NoReturn:
        parser.print_usage(sys.stderr)
        print(f"{parser.prog}: error: {message}", file=sys.stderr)
        raise SystemExit(_BAD_INPUT)

    parser.error = refuse
    parser.set_defaults(refuse=refuse)


def _add_evaluations(parser: Any, sources: Any, whose: str) -> None:
    """Add files of scores, and how they are read."""
    files = {
        "inspect": ("+", "logs of Inspect"),
        "lm-eval": ("+", "samples_*.jsonl of lm-evaluation-harness"),
    }
    for name, (count, text) in (files | {"scores": (1, "CSV, Parquet or JSON of ids and scores")}).items():
        repeats = "; several are repeats" if count == "+" else ""
        sources.add_argument(
            f"--{name}", type=Path, nargs=count, metavar="FILE", help=f"{text}, {whose}{repeats}"
        )
    parser.add_argument(
        "--score", help="scorer, metric or column, where there are several; style[clarity] of a dict"
    )
    parser.add_argument("--filter", help="filter of lm-evaluation-harness, where there are several")
    parser.add_argument("--missing", type=float, help="what counts where there is no score (default: refuse)")


# ---- what a gate's commands do


def _init(options: argparse.Namespace) -> _Outcome:
    wish = {name: getattr(options, name) for name in ("queries", *_WISH)}
    wish = {name: value for name, value in wish.items() if value is not None}
    settings = {name: getattr(options, name) for name in ("metric", "bounds", "key", "witness", "vacuous")}
    with warnings.catch_warnings(record=True) as warned, _made(options, **settings, **wish) as gate:
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
        _refuse_options(options, "labels", *_OF_SCORES)
        classes = classes_of(options.classes)
        return make_gate(options.ledger, options.labels, id_column=options.id, classes=classes, **settings)
    if options.ids is not None:
        _refuse_options(options, "ids", "classes", "score", "filter", "missing")
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
    _refuse_options(options, "predictions", *_OF_SCORES)
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
    """Return the files of scores: one of the options is there, for the command line demands it."""
    found: Sequence[Path] = options.inspect or options.lm_eval or options.scores
    return found


def _read(options: argparse.Namespace, files: Sequence[Path], score: str | None) -> ScoreTable:
    """Read a score of some files, which the tool that the options name has written."""
    more = {"groups": getattr(options, "groups", None), "missing": options.missing}
    if options.filter is not None and not options.lm_eval:
        raise InputError("a filter is one of lm-evaluation-harness; leave --filter out")
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
    """Run a command, print, and return its status, also if nobody reads the output."""
    try:
        outcome = run()
    except HoldoutError as error:
        outcome = _Outcome(_BAD_INPUT, problem=str(error))
    except Halted as halted:
        outcome = _Outcome(_STATUS["halted"], problem=str(halted))
    except (Exception, SystemExit) as error:  # its words may quote the labels
        outcome = _Outcome(_BAD_INPUT, problem=f"it failed, and there is no verdict ({type(error).__name__})")
    problem = outcome.problem and f"{PROGRAM}: {outcome.problem}"
    for stream, text in ((sys.stderr, problem), (sys.stdout, outcome.text)):
        try:
            if text:
                print(text, file=stream, flush=True)
        except (OSError, ValueError):  # the rest of its buffer would fail again, and end with status 120
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return outcome.status


# ---- redact


def add_redact(commands: Any) -> None:
    """Add ``redact``."""
    parser = add(
        commands,
        "redact",
        _redact,
        "Ask a guard about an evaluation, and write the part that the developer may see: outputs and the guard's "
        "answer, no target and no score. Run it where the holdout is kept. Exit status 2 if the budget is spent: then "
        "nothing was told, and nothing was written.",
        "redact --inspect full.eval --ledger guard.db --prior 0.7 --out public.eval",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--inspect", type=Path, metavar="LOG", help="full log of Inspect, .eval or .json")
    source.add_argument("--lm-eval", type=Path, metavar="FOLDER", help="folder of lm_eval --output_path")
    parser.add_argument("--out", type=Path, required=True, help="new log, or new folder")
    ledger = "SQLite file or URL of a guard made with the ids, sorted as text"
    parser.add_argument("--ledger", required=True, help=ledger)
    parser.add_argument("--prior", type=float, help="the developer's estimate, or of the difference")
    parser.add_argument("--incumbent", type=Path, help="the same of another system: asks how much better")
    for name, text in {
        "score": "scorer or metric, where there are several",
        "task": "task of lm-evaluation-harness",
        "filter": "filter of lm-evaluation-harness, where there are several",
        "groups": "key of Inspect's metadata by which the guard has groups",
    }.items():
        parser.add_argument(f"--{name}", help=text)
    shown = {"action": "append", "default": [], "metavar": "KEY"}
    parser.add_argument("--show", **shown, help="key of metadata or documents; may be repeated")


def _redact(options: argparse.Namespace) -> int:
    if options.lm_eval is not None and options.task is None:
        options.refuse("--lm-eval needs --task")
    common = {"prior": options.prior, "incumbent": options.incumbent, "show": options.show}
    try:
        if options.inspect is not None:
            more = {"ledger": options.ledger, "scorer": options.score, "groups": options.groups}
            answer = redact_inspect(options.inspect, options.out, **common, **more)
        else:
            chosen = {"metric": options.score, "filter": options.filter}
            table = read_lm_eval(samples_of(options.lm_eval, options.task), **chosen)
            with open_guard_of(options.ledger, table) as guard:
                more = {"guard": guard, "task": options.task, **chosen}
                answer = redact_lm_eval(options.lm_eval, options.out, **common, **more)
    except Halted as halted:
        print(f"{PROGRAM}: {halted}", file=sys.stderr)
        return _STATUS["halted"]
    tell(answer._asdict() if options.json else str(answer), as_json=options.json)
    return 0
