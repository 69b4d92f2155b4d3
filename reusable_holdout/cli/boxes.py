"""``reusable-holdout box init|run|status``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reusable_holdout.cli.command import add, add_classes, tell

if TYPE_CHECKING:
    import argparse

__all__ = ["add_box"]

_WHOLE = {
    "queries": "questions that will be asked",
    "charges": "deviations to pay for (default: what the tolerance affords)",
    "reveals": "reveals that are set aside beside the charges",
}
_REAL = {
    "tolerance": "how far an answer may be from the population value",
    "comparison-tolerance": "the same of a comparison (default: as --tolerance)",
    "estimate": "score that is expected; naming it buys the most",
    "prior-error": "how far honest priors are off",
    "spread": "guess of the standard deviation of graded losses or scores over the rows",
    "confidence": "that every interval holds (default 0.95)",
    "noise-scale": "Thresholdout's s (default: derived)",
    "delta": "of differential privacy (default: 1 / rows^2)",
}


def add_box(commands: Any) -> None:
    """Add ``box`` and its actions."""
    parser = commands.add_parser(
        "box",
        help="Keep labels, key and ledger with another user, and answer at a socket",
        description="Keep labels, key, ledger and witness in a folder of another user, and answer at a socket.",
        epilog="Start with 'reusable-holdout box init --help'; the loop asks RemoteHoldout('unix:///srv/box/socket').",
    )
    actions = parser.add_subparsers(required=True, metavar="action")
    _add_init(actions)
    _add_run(actions)
    _add_status(actions)


def _add_init(actions: Any) -> None:
    parser = add(
        actions,
        "init",
        _init,
        "Make a box, as the user that will run it: a folder with a copy of the labels, a noise key, a ledger and its "
        "witness, which nobody else can read.",
        "box init /srv/box --labels labels.csv --queries 500 --tolerance 0.05 --estimate 0.8",
    )
    parser.add_argument("folder", type=Path, help="new or empty")
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument("--labels", type=Path, help="CSV, Parquet or JSON: one column, and one of ids")
    rows.add_argument(
        "--ids", type=Path, help="CSV, Parquet or JSON with ids alone, of rows that are judged elsewhere"
    )
    parser.add_argument("--id", help="column of ids")
    parser.add_argument("--metric", help="a name of the catalogue (default accuracy; score with --ids)")
    parser.add_argument(
        "--bounds",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="for mae, mse, rmse and score; targets outside are moved to them, and nothing says so",
    )
    add_classes(parser)
    parser.add_argument(
        "--policy", help='what a question is compared with (default thresholdout; "gate" says yes or no)'
    )
    for name, text in _WHOLE.items():
        parser.add_argument(f"--{name}", type=int, required=name == "queries", help=text)
    for name, text in _REAL.items():
        parser.add_argument(f"--{name}", type=float, help=text)
    parser.add_argument(
        "--allow",
        nargs="+",
        metavar="WAY",
        help="ways to ask: evaluate, compare, reveal, choose, final (default evaluate compare)",
    )
    parser.add_argument(
        "--verdict-only", action="store_true", help="tell whether an answer was charged, and no number"
    )
    parser.add_argument(
        "--witness", help="file of another owner, git note or URL (default: a file in the folder)"
    )
    parser.add_argument("--vacuous", action="store_true", help="make it though its plan says nothing")


def _init(options: argparse.Namespace) -> int:
    from reusable_holdout.box.folder import make_box
    from reusable_holdout.release_gate.files import classes_of

    names = [name.replace("-", "_") for name in (*_WHOLE, *_REAL, "policy", "allow", "witness", "bounds")]
    stated = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    stated |= {} if options.classes is None else {"classes": classes_of(options.classes)}
    plan = make_box(
        options.folder,
        options.labels,
        ids=options.ids,
        id_column=options.id,
        metric=options.metric or ("accuracy" if options.ids is None else "score"),
        verdict_only=options.verdict_only,
        vacuous=options.vacuous,
        **stated,
    )
    tell(plan.record() if options.json else str(plan), as_json=options.json)
    return 0


def _add_run(actions: Any) -> None:
    parser = add(
        actions,
        "run",
        _run,
        "Answer at the box's socket until told to end by SIGTERM. The process has no core dump and cannot be traced, "
        "and refuses to start where other users could change its code, its folder or its socket.",
        "box run /srv/box --group agents",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--socket", type=Path, help="in a folder that no other user may write to (default FOLDER/socket)"
    )
    parser.add_argument("--mode", type=_octal, help="of the socket (default 660; 666 with --peer-uid)")
    parser.add_argument("--group", help="of the socket, of which the user that runs the box is one")
    parser.add_argument(
        "--peer-uid", type=int, action="append", default=[], help="user who may ask; may be repeated"
    )
    parser.add_argument("--most-bytes", type=int, help="of a message (default: room for eight questions)")
    parser.add_argument(
        "--answer-seconds",
        type=float,
        default=0.0,
        help="let answers leave at multiples of this, so that their time tells nothing (default 0: at once)",
    )


def _octal(text: str) -> int:
    return int(text, 8)


def _run(options: argparse.Namespace) -> int:
    from reusable_holdout.box.running import run_box

    run_box(
        options.folder,
        socket=options.socket,
        mode=options.mode or (0o666 if options.peer_uid else 0o660),
        group=options.group,
        peer_uids=options.peer_uid,
        most_bytes=options.most_bytes,
        answer_seconds=options.answer_seconds,
    )
    return 0


def _add_status(actions: Any) -> None:
    parser = add(
        actions,
        "status",
        _status,
        "Say what everyone who may ask can know: metric, ways to ask, what was asked and what is left.",
        "box status /srv/box",
    )
    parser.add_argument("box", help="the box's folder, or its socket")


def _status(options: argparse.Namespace) -> int:
    from reusable_holdout.box.client import public_status
    from reusable_holdout.box.folder import socket_of

    place = Path(options.box).absolute()
    found = public_status(f"unix://{socket_of(place) if place.is_dir() else place}")
    tell(
        found if options.json else "\n".join(f"{name}: {one}" for name, one in found.items()),
        as_json=options.json,
    )
    return 0
