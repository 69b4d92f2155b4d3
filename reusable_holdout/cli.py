"""The command line: ``reusable-holdout demo|plan|gate-init|gate|history|plot|verify``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from reusable_holdout.errors import HoldoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from reusable_holdout.guard import ReusableHoldout
    from reusable_holdout.release_gate.command import Outcome

__all__ = ["main"]

_PROGRAM = "reusable-holdout"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        0 if all is well, 1 if something is wrong with the input or a ledger, 2 for a wrong command line; a gate has
        statuses of its own, which its help names.
    """
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except HoldoutError as error:
        print(f"{_PROGRAM}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Keep a test set alive: plan a budget, watch a guarded search, inspect and verify ledgers.",
        epilog=f"Start with '{_PROGRAM} demo'. A ledger is a SQLite file or a SQLAlchemy URL.",
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_demo(commands)
    _add_plan(commands)
    _add_gate_init(commands)
    _add_gate(commands)
    _add_history(commands)
    _add_plot(commands)
    _add_verify(commands)
    from reusable_holdout_leaderboard.commands import add_commands

    add_commands(commands)
    return parser


def _add(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, example: str) -> Any:
    parser = commands.add_parser(
        name,
        help=text.split(".", maxsplit=1)[0],
        description=text,
        epilog=f"Example: {_PROGRAM} {example}",
    )
    parser.set_defaults(command=run, refuse=parser.error)
    parser.add_argument("--json", action="store_true", help="write JSON, for programs")
    return parser


# ---- demo


def _add_demo(commands: Any) -> None:
    parser = _add(
        commands,
        "demo",
        _demo,
        "Watch a search overfit a plain holdout, and not a guarded one. Real data (UCI Adult): a hill climb over "
        "thousands of small edits of a classifier keeps whatever raises its holdout score. Both results are then "
        "measured on fresh rows that no search has touched. Charges and halts go to MLflow, if it is installed.",
        "demo --seed 1",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the data split, the search and the noise (default 0)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-output"),
        help="folder for the ledger, the picture and the MLflow database (default ./demo-output)",
    )
    parser.add_argument("--no-mlflow", action="store_true", help="do not track the guard in MLflow")


def _demo(options: argparse.Namespace) -> int:
    from reusable_holdout.demo import run_demo

    watch = None if options.no_mlflow else _mlflow_watch(options.out)
    result = run_demo(seed=options.seed, folder=options.out, progress=sys.stderr.isatty(), watch=watch)
    _print(result.as_dict() if options.json else str(result), as_json=options.json)
    if watch is not None and not options.json:
        print(f"mlflow   mlflow ui --backend-store-uri {_mlflow_uri(options.out)}")
    return 0


def _mlflow_watch(folder: Path) -> Callable[[ReusableHoldout], AbstractContextManager[Any]] | None:
    """Track the demo in a database of its own, if MLflow is installed."""
    if find_spec("mlflow") is None:
        return None
    import logging

    from mlflow import MlflowClient
    from reusable_holdout_mlflow import track

    logging.getLogger("mlflow").setLevel(logging.WARNING)
    place = folder.absolute()
    place.mkdir(parents=True, exist_ok=True)
    uri, name = _mlflow_uri(folder), "reusable-holdout demo"
    client = MlflowClient(uri)
    if client.get_experiment_by_name(name) is None:
        client.create_experiment(name, artifact_location=(place / "mlartifacts").as_uri())
    return lambda guard: track(guard, experiment=name, tracking_uri=uri, live=False)


def _mlflow_uri(folder: Path) -> str:
    return f"sqlite:///{folder.absolute() / 'mlflow.db'}"


# ---- plan


def _add_plan(commands: Any) -> None:
    parser = _add(
        commands,
        "plan",
        _plan,
        "Say what a holdout can promise. Give three of rows, queries, charges and tolerance; the fourth is derived.",
        "plan --rows 10000 --queries 1000 --tolerance 0.05 --estimate 0.9",
    )
    whole = {
        "rows": "holdout rows",
        "queries": "questions that will be asked",
        "charges": "deviations to pay for",
    }
    for name, text in whole.items():
        parser.add_argument(f"--{name}", type=int, help=text)
    real = {
        "tolerance": "how far an answer may be from the population value",
        "threshold": "deviation that is always charged (default: derived)",
        "noise-scale": "Thresholdout's s (default: derived)",
        "prior-error": "how far honest priors are off (default: one public standard error)",
        "confidence": "that every interval holds (default 0.95)",
        "estimate": "score near which the plan must hold (default: the worst case)",
        "delta": "of differential privacy (default: 1 / rows^2)",
    }
    for name, text in real.items():
        parser.add_argument(f"--{name}", type=float, help=text)
    parser.add_argument("--mechanism", help="what the guard runs on (default numeric-sparse; or tightest)")
    parser.add_argument("--policy", help="what a question is compared with (default thresholdout)")


def _plan(options: argparse.Namespace) -> int:
    from reusable_holdout.plan import Plan

    names = (
        "rows",
        "queries",
        "charges",
        "tolerance",
        "threshold",
        "noise_scale",
        "prior_error",
        "confidence",
    )
    stated = {name: getattr(options, name) for name in (*names, "estimate", "delta", "mechanism", "policy")}
    plan = Plan(**{name: value for name, value in stated.items() if value is not None})
    record = plan.record() | {
        "threshold": plan.threshold,
        "epsilon": plan.epsilon,
        "epsilons": plan.epsilons,
        "expected_null_charges": plan.expected_null_charges,
        "vacuous": plan.vacuous,
        "privacy_is_vacuous": plan.privacy_is_vacuous,
    }
    _print(record if options.json else str(plan), as_json=options.json)
    return 0


# ---- release gate


def _add_gate_init(commands: Any) -> None:
    parser = _add_gate_command(
        commands,
        "gate-init",
        _gate_init,
        "Make a release gate from labelled rows that no model has seen. Beside the ledger lie from then on its noise "
        "key and a copy of the labels, both readable by you alone. With the same labels and settings again, it stays "
        "as it is.",
        "gate-init --ledger guard.db --labels labels.csv --queries 200 --tolerance 0.05 --disagreement 0.1",
    )
    parser.add_argument(
        "--labels", type=Path, required=True, help="CSV or Parquet: one column, and one of ids"
    )
    parser.add_argument("--metric", default="accuracy", help="a plain mean over rows (default accuracy)")
    parser.add_argument(
        "--bounds", type=float, nargs=2, metavar=("LOW", "HIGH"), help="of the targets, for mae and mse"
    )
    parser.add_argument("--queries", type=int, required=True, help="releases that will be asked about")
    parser.add_argument(
        "--charges", type=int, help="releases that can be accepted (default: what the tolerance affords)"
    )
    real = {
        "tolerance": "how far below the named improvement an accepted one can be",
        "disagreement": "most rows, as a share, on which two models differ (default 1)",
        "confidence": "that every verdict's interval holds (default 0.95)",
    }
    for name, text in real.items():
        parser.add_argument(f"--{name}", type=float, help=text)


def _gate_init(options: argparse.Namespace) -> int:
    from reusable_holdout.release_gate.command import run_gate_init

    return _end(run_gate_init(options))


def _add_gate(commands: Any) -> None:
    parser = _add_gate_command(
        commands,
        "gate",
        _gate,
        "Say whether a new model is better than the incumbent by what was named, and nothing else. Prints accepted, "
        "rejected or halted. Exit status: 0 accepted, 1 rejected, 2 halted (the budget is spent: nothing was told), 3 "
        "bad input (nothing was asked, and nothing was charged). The same question again has the same verdict, free.",
        "gate --ledger guard.db --predictions new.csv --incumbent old.csv --improvement 0.005",
    )
    for name, model in (("predictions", "the new model"), ("incumbent", "the model it would replace")):
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"of {model}: CSV or Parquet")
    parser.add_argument(
        "--improvement",
        type=float,
        required=True,
        help="of the metric, positive if better, also for losses; negative to accept what is not much worse",
    )
    parser.add_argument("--labels", type=Path, help="of the gate (default: the copy beside the ledger)")
    parser.add_argument("--name", help="what history calls the question (default: the predictions' file)")


def _gate(options: argparse.Namespace) -> int:
    from reusable_holdout.release_gate.command import run_gate

    return _end(run_gate(options))


def _add_gate_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, example: str
) -> Any:
    parser = _add(commands, name, run, text, example)

    def refuse(message: str) -> NoReturn:  # argparse's own status is that of a halt
        from reusable_holdout.release_gate.command import BAD_INPUT

        parser.print_usage(sys.stderr)
        print(f"{parser.prog}: error: {message}", file=sys.stderr)
        raise SystemExit(BAD_INPUT)

    parser.error = refuse
    parser.set_defaults(refuse=refuse)
    parser.add_argument("--ledger", required=True, help="SQLite file or URL")
    parser.add_argument("--key", type=Path, help="key file (default: beside the ledger)")
    parser.add_argument("--id", help="column of ids, by which rows are aligned (default: by their order)")
    return parser


def _end(outcome: Outcome) -> int:
    """Print, and end with a gate's status even if nobody reads what is printed."""
    problem = outcome.problem and f"{_PROGRAM}: {outcome.problem}"
    for stream, text in ((sys.stderr, problem), (sys.stdout, outcome.text)):
        try:
            if text:
                print(text, file=stream, flush=True)
        except (OSError, ValueError):  # what is left in its buffer would fail again, and end with status 120
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return outcome.status


# ---- history, plot, verify


def _add_history(commands: Any) -> None:
    parser = _add(
        commands,
        "history",
        _history,
        "Show everything a guard has released, in order. The holdout and its key are not needed.",
        "history guard.db --json",
    )
    parser.add_argument("ledger", help="SQLite file or URL")
    _add_epoch(parser)


def _add_epoch(parser: Any) -> None:
    parser.add_argument("--epoch", type=int, help="of the ledger's holdouts, from 1 (default the last)")


def _history(options: argparse.Namespace) -> int:
    from reusable_holdout.guard import released

    history = released(options.ledger, epoch=options.epoch).history
    if options.json:
        _print(json.loads(history.to_json(orient="records", date_format="iso")), as_json=True)
    else:
        print(
            history.to_string(index=False, float_format="{:.4f}".format)
            if len(history)
            else "nothing was asked yet"
        )
    return 0


def _add_plot(commands: Any) -> None:
    parser = _add(
        commands,
        "plot",
        _plot,
        "Draw what a guard has released: priors, answers, intervals, charges, budget left. Needs the 'plot' extra.",
        "plot guard.db --out guard.png",
    )
    parser.add_argument("ledger", help="SQLite file or URL")
    _add_epoch(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("guard.png"), help="picture to write (default guard.png)"
    )


def _plot(options: argparse.Namespace) -> int:
    from reusable_holdout.guard import released
    from reusable_holdout.plotting import plot_history, save_picture

    found = released(options.ledger, epoch=options.epoch)
    axes = plot_history(found.history, charges=found.charges, metric=found.metric)
    save_picture(axes, options.out)
    _print({"picture": str(options.out)} if options.json else f"wrote {options.out}", as_json=options.json)
    return 0


def _add_verify(commands: Any) -> None:
    parser = _add(
        commands,
        "verify",
        _verify,
        "Recompute a ledger's hash chain, budget, thresholds and intervals. Offline, without the holdout or its key. "
        "The exit status is 1 if anything is wrong.",
        "verify guard.db",
    )
    parser.add_argument("ledger", help="SQLite file or URL")
    parser.add_argument("--expected-head", help="seal noted earlier: finds rows that were cut off since")


def _verify(options: argparse.Namespace) -> int:
    from reusable_holdout.guard import verify

    found = verify(options.ledger, expected_head=options.expected_head)
    if options.json:
        _print(
            {
                "sound": found.sound,
                "queries": found.queries,
                "charges": found.charges,
                "head": found.head,
                "problems": found.problems,
            },
            as_json=True,
        )
    else:
        print("\n".join(found.problems) or f"sound: {found.queries} answers, {found.charges} charged")
        print(f"head {found.head}")
    return 0 if found.sound else 1


def _print(value: Any, *, as_json: bool) -> None:
    print(json.dumps(value, indent=2) if as_json else value)
