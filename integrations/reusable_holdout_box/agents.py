"""``reusable-holdout mcp``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from reusable_holdout.cli.command import add

__all__ = ["add_mcp"]


def add_mcp(commands: Any) -> None:
    """Add ``mcp``."""
    parser = add(
        commands,
        "mcp",
        _mcp,
        "Give an agent tools that ask a box, instead of the test set: a server of the Model Context Protocol on "
        "standard "
        "input and output. Run it as the agent's user: it holds nothing private.",
        "mcp --box unix:///srv/box/socket --workspace .",
    )
    parser.add_argument("--box", required=True, help="unix:///path/of/socket, or the address of a board")
    parser.add_argument(
        "--workspace", type=Path, default=Path(), help="folder whose files may be named (default: here)"
    )
    parser.add_argument("--token", default="", help="of a team, for a board")


def _mcp(options: argparse.Namespace) -> int:
    from reusable_holdout_box.mcp import make_server  # loads mcp, an optional library
    from reusable_holdout_box.remote import RemoteHoldout

    with RemoteHoldout(options.box, options.token) as remote:
        make_server(remote, options.workspace).run("stdio")
    return 0
