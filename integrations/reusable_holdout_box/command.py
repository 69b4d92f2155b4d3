"""The commands ``reusable-holdout box init``, ``box serve`` and ``box mcp``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from reusable_holdout_evals.gate.tables import classes_of

from reusable_holdout.cli.command import add, add_classes, tell
from reusable_holdout_box.folder import make_box
from reusable_holdout_box.mcp import make_server
from reusable_holdout_box.remote import RemoteHoldout
from reusable_holdout_box.server import run_box

__all__ = ["add_box"]

_PAIR = {"type": float, "nargs": 2, "metavar": ("LOW", "HIGH")}
_OF_INIT: dict[str, tuple[str, dict[str, Any]]] = {
    "id": ("column of ids", {}),
    "metric": ("a name of the catalogue (default accuracy; score with --ids)", {}),
    "bounds": ("range of mae, mse, rmse and score", _PAIR),
    "gates": ("make it for gates alone, which say yes or no", {"action": "store_true"}),
    "queries": ("questions that will be asked", {"type": int, "required": True}),
    "charges": ("deviations to pay for (default: what the tolerance affords)", {"type": int}),
    "reveals": ("reveals that are set aside beside the charges", {"type": int}),
    "tolerance": ("how far an answer may be from the population value", {"type": float}),
    "estimate": ("score that is expected; naming it buys the most", {"type": float}),
    "prior-error": ("how far honest priors are off", {"type": float}),
    "spread": ("guess of the standard deviation of graded losses or scores over the rows", {"type": float}),
    "confidence": ("probability that every interval holds (default 0.95)", {"type": float}),
    "allow": (
        "ways to ask: evaluate, compare, gate, reveal, choose, final (default evaluate compare, with --gates gate)",
        {"nargs": "+", "metavar": "WAY"},
    ),
    "witness": ("file of another owner, or git note (default: a file in the folder)", {}),
    "vacuous": ("make it though its plan says nothing", {"action": "store_true"}),
}
_OF_SERVE: dict[str, tuple[str, dict[str, Any]]] = {
    "socket": ("in a folder that no other user may write to (default FOLDER/socket)", {"type": Path}),
    "mode": ("of the socket (default 660; 666 with --peer-uid)", {"type": lambda text: int(text, 8)}),
    "peer-uid": ("user who may ask; may be repeated", {"type": int, "action": "append", "default": []}),
    "answer-seconds": (
        "send answers at multiples of this, so that their time tells nothing (default 0: at once)",
        {"type": float, "default": 0.0},
    ),
}
_OF_MCP: dict[str, tuple[str, dict[str, Any]]] = {
    "workspace": ("folder whose files a call may name (default: here)", {"type": Path, "default": Path()}),
    "token": ("token of a team, for a leaderboard", {"default": ""}),
}


def add_box(commands: Any) -> None:
    """Add the command ``box`` with its actions ``init``, ``serve`` and ``mcp`` to the command line."""
    about = "Keep labels, key, ledger and witness in a folder of another user, and answer at a socket"
    parser = commands.add_parser("box", help=about, description=f"{about}.")
    actions = parser.add_subparsers(required=True, metavar="action")
    init = add(
        actions,
        "init",
        _init,
        "Make a box, as the user that will run it: a folder with a copy of the labels, a noise key, a ledger and its "
        "witness, which nobody else can read.",
        "box init /srv/box --labels labels.csv --queries 500 --tolerance 0.05 --estimate 0.8",
    )
    init.add_argument("folder", type=Path, help="new or empty")
    rows = init.add_mutually_exclusive_group(required=True)
    rows.add_argument("--labels", type=Path, help="CSV, Parquet or JSON: a column of labels, and one of ids")
    rows.add_argument("--ids", type=Path, help="CSV, Parquet or JSON: ids of rows that a judge scores")
    add_classes(init)
    serve = add(
        actions,
        "serve",
        _serve,
        "Answer at the box's socket until told to end by SIGTERM. The process has no core dump and cannot be traced. "
        "It refuses to start where other users could change its code, its folder or its socket.",
        "box serve /srv/box --peer-uid 1000",
    )
    serve.add_argument("folder", type=Path)
    mcp = add(
        actions,
        "mcp",
        _mcp,
        "Give an agent tools that ask a box, instead of the test set: a server of the Model Context Protocol on "
        "standard input and output. Run it as the agent's user: it holds nothing private.",
        "box mcp unix:///srv/box/socket --workspace .",
    )
    mcp.add_argument("address", help="unix:///path/of/socket, or the address of a leaderboard")
    for action, options in ((init, _OF_INIT), (serve, _OF_SERVE), (mcp, _OF_MCP)):
        for name, (text, more) in options.items():
            action.add_argument(f"--{name}", help=text, **more)


def _init(options: argparse.Namespace) -> int:
    given = vars(options) | {"classes": classes_of(options.classes)}
    names = [name.replace("-", "_") for name in (*_OF_INIT, "classes") if name not in {"id", "metric"}]
    plan = make_box(
        options.folder,
        options.labels,
        ids=options.ids,
        id_column=options.id,
        metric=options.metric or ("accuracy" if options.ids is None else "score"),
        **{name: given[name] for name in names if given[name] is not None},
    )
    tell(plan.record() if options.json else str(plan), as_json=options.json)
    return 0


def _serve(options: argparse.Namespace) -> int:
    run_box(
        options.folder,
        socket=options.socket,
        mode=options.mode or (0o666 if options.peer_uid else 0o660),
        peer_uids=options.peer_uid,
        answer_seconds=options.answer_seconds,
    )
    return 0


def _mcp(options: argparse.Namespace) -> int:
    with RemoteHoldout(options.address, options.token) as remote:
        make_server(remote, options.workspace).run("stdio")
    return 0
