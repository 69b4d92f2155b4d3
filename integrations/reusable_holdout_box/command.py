"""``reusable-holdout box init|serve|mcp``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from reusable_holdout_evals.gate import classes_of

from reusable_holdout.cli.command import add, add_classes, tell
from reusable_holdout_box.folder import make_box
from reusable_holdout_box.mcp import make_server
from reusable_holdout_box.remote import RemoteHoldout
from reusable_holdout_box.server import run_box

__all__ = ["add_box"]

_WHOLE = {
    "queries": "questions that will be asked",
    "charges": "deviations to pay for (default: what the tolerance affords)",
    "reveals": "reveals that are set aside beside the charges",
}
_REAL = {
    "tolerance": "how far an answer may be from the population value",
    "estimate": "score that is expected; naming it buys the most",
    "prior-error": "how far honest priors are off",
    "spread": "guess of the standard deviation of graded losses or scores over the rows",
    "confidence": "probability that every interval holds (default 0.95)",
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
    _add_serve(actions)
    _add_mcp(actions)


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
    rows.add_argument("--labels", type=Path, help="CSV, Parquet or JSON: a column of labels, and one of ids")
    rows.add_argument("--ids", type=Path, help="CSV, Parquet or JSON: ids of rows that a judge scores")
    parser.add_argument("--id", help="column of ids")
    parser.add_argument("--metric", help="a name of the catalogue (default accuracy; score with --ids)")
    bounds = {"type": float, "nargs": 2, "metavar": ("LOW", "HIGH")}
    parser.add_argument("--bounds", **bounds, help="range of mae, mse, rmse and score")
    add_classes(parser)
    parser.add_argument("--policy", help='way to compare (default thresholdout; "gate" says yes or no)')
    for kind, table in ((int, _WHOLE), (float, _REAL)):
        for name, text in table.items():
            parser.add_argument(f"--{name}", type=kind, required=name == "queries", help=text)
    parser.add_argument(
        "--allow",
        nargs="+",
        metavar="WAY",
        help="ways to ask: evaluate, compare, reveal, choose, final (default evaluate compare)",
    )
    parser.add_argument("--witness", help="file of another owner, git note or URL (default: in the folder)")
    switches = {
        "verdict-only": "tell whether an answer was charged, and no number",
        "vacuous": "make it though its plan says nothing",
    }
    for name, text in switches.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)


def _init(options: argparse.Namespace) -> int:
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


def _add_serve(actions: Any) -> None:
    parser = add(
        actions,
        "serve",
        _serve,
        "Answer at the box's socket until told to end by SIGTERM. The process has no core dump and cannot be traced. "
        "It refuses to start where other users could change its code, its folder or its socket.",
        "box serve /srv/box --group agents",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--socket", type=Path, help="in a folder that no other user may write to (default FOLDER/socket)"
    )
    parser.add_argument(
        "--mode", type=lambda text: int(text, 8), help="of the socket (default 660; 666 with --peer-uid)"
    )
    parser.add_argument("--group", help="of the socket; the user that runs the box must be in it")
    users = {"type": int, "action": "append", "default": []}
    parser.add_argument("--peer-uid", **users, help="user who may ask; may be repeated")
    parser.add_argument("--most-bytes", type=int, help="longest message (default: room for eight questions)")
    parser.add_argument(
        "--answer-seconds",
        type=float,
        default=0.0,
        help="send answers at multiples of this, so that their time tells nothing (default 0: at once)",
    )


def _serve(options: argparse.Namespace) -> int:
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


def _add_mcp(actions: Any) -> None:
    parser = add(
        actions,
        "mcp",
        _mcp,
        "Give an agent tools that ask a box, instead of the test set: a server of the Model Context Protocol on "
        "standard input and output. Run it as the agent's user: it holds nothing private.",
        "box mcp unix:///srv/box/socket --workspace .",
    )
    parser.add_argument("address", help="unix:///path/of/socket, or the address of a leaderboard")
    parser.add_argument(
        "--workspace", type=Path, default=Path(), help="folder whose files a call may name (default: here)"
    )
    parser.add_argument("--token", default="", help="token of a team, for a leaderboard")


def _mcp(options: argparse.Namespace) -> int:
    with RemoteHoldout(options.address, options.token) as remote:
        make_server(remote, options.workspace).run("stdio")
    return 0
