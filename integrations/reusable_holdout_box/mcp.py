"""The server of the Model Context Protocol: tools for an agent, which gets them instead of the test set."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reusable_holdout_evals.gate import columns_of, in_order_of, read_table

from reusable_holdout.errors import Halted, HoldoutError, InputError, of_extra
from reusable_holdout.metrics.ids import shown
from reusable_holdout.misfits import closest
from reusable_holdout.version import __version__
from reusable_holdout_box.guards import ask
from reusable_holdout_box.remote import RemoteHoldout
from reusable_holdout_box.words import about, about_compare, about_evaluate, budget_of, halted, said

__all__ = ["make_server"]

_MOST_BYTES = 64 << 20
_NOTHING = "; nothing was asked and nothing was charged"


def make_server(remote: RemoteHoldout, workspace: Path) -> Any:
    """Make a server whose tools ask a guard elsewhere.

    It holds no label and no key, and runs as the agent's user. It is a convenience; the wall is the box.

    Parameters
    ----------
    remote : RemoteHoldout
        A box or a leaderboard.
    workspace : Path
        Folder whose files a call may name.

    Returns
    -------
    mcp.server.mcpserver.MCPServer
        ``make_server(...).run("stdio")`` serves it.

    Raises
    ------
    MissingExtraError
        If the package `mcp` is not installed.
    """
    server = _strict_server("reusable-holdout", instructions=about(remote), version=__version__)
    files = _Workspace(workspace, remote)

    def evaluate(
        predictions: list[Any] | None = None, file: str = "", prior: float | None = None, name: str = ""
    ) -> dict[str, Any]:
        given = (predictions, file, "predictions")
        return _asked(server, remote, "evaluate", lambda: [files.predictions(*given)], prior, name)

    def compare(
        predictions: list[Any] | None = None,
        file: str = "",
        incumbent: list[Any] | None = None,
        incumbent_file: str = "",
        prior: float | None = None,
        name: str = "",
    ) -> dict[str, Any]:
        given = [
            (predictions, file, "predictions"),
            (incumbent, incumbent_file, "the incumbent's predictions"),
        ]
        return _asked(
            server, remote, "compare", lambda: [files.predictions(*one) for one in given], prior, name
        )

    def budget() -> dict[str, Any]:
        return server.checked(lambda: budget_of(remote))

    for tool, describe in ((evaluate, about_evaluate), (compare, about_compare)):
        if tool.__name__ in remote.allow:
            server.tool(description=describe(remote))(tool)
    server.tool(description=f"Says what is left, free of charge. {about(remote)}")(budget)
    return server


def _asked(
    server: Any,
    remote: RemoteHoldout,
    way: str,
    read: Callable[[], list[Any]],
    prior: float | None,
    name: str,
) -> dict[str, Any]:
    """Return the result of a question. A halt is a result and no error, for an agent tries errors again."""

    def result() -> dict[str, Any]:
        try:
            return said(ask(remote, way, read(), prior=prior, name=name)[0], remote)
        except Halted as halt:
            return halted(halt.reason)

    return server.checked(result)


def _strict_server(name: str, **settings: Any) -> Any:
    """Make a server whose tools refuse arguments that they do not have.

    The library drops unknown arguments. So a question with a mistyped ``prior`` would be asked without one, and
    could be charged.
    """
    with of_extra("mcp", "an MCP server"):
        from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - an optional library
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415

    class StrictServer(MCPServer):  # type: ignore[misc]
        async def list_tools(self) -> list[Any]:
            tools: list[Any] = await super().list_tools()
            for tool in tools:
                tool.input_schema = {**tool.input_schema, "additionalProperties": False}
            return tools

        async def call_tool(self, name: str, arguments: Mapping[str, Any], context: Any = None) -> Any:
            for tool in await self.list_tools():
                problem = tool.name == name and _unknown(
                    name, arguments, list(tool.input_schema["properties"])
                )
                if problem:
                    raise ToolError(problem)
            return await super().call_tool(name, dict(arguments), context)

        def checked(self, tell: Callable[[], dict[str, Any]]) -> dict[str, Any]:
            """Return what a tool tells; an error says that nothing was charged."""
            try:
                return tell()
            except HoldoutError as error:
                problem = str(error)
                if isinstance(error, InputError) and "nothing was asked" not in problem:
                    problem += "; nothing was asked and nothing was charged"
            raise ToolError(problem)

    return StrictServer(name, log_level="WARNING", **settings)


def _unknown(tool: str, arguments: Mapping[str, Any], known: list[str]) -> str:
    """Say which arguments a tool does not have; empty if it has all of them."""
    unknown = [one for one in arguments if one not in known]
    if not unknown:
        return ""
    near = closest(unknown[0], known)
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    return (
        f"the tool {tool} has no argument {shown(unknown)}; {f'did you mean {near}? ' if near else ''}{takes}; nothing "
        "was asked and nothing was charged"
    )


class _Workspace:
    """A folder whose files a call may name.

    Parameters
    ----------
    folder : Path
    remote : RemoteHoldout
        Predictions are brought into the order of its rows, where both have ids.
    """

    def __init__(self, folder: Path, remote: RemoteHoldout) -> None:
        self._folder, self._remote = folder.resolve(), remote

    def predictions(self, given: Sequence[Any] | None, file: str, what: str) -> Any:
        """Return the predictions of one question.

        Parameters
        ----------
        given : sequence, optional
            Predictions in the call itself, in the order of the rows.
        file : str
            CSV with a header, Parquet, ``.npy``, JSON or JSON lines, relative to the folder; or empty.
        what : str
            Name of the predictions, for messages.

        Raises
        ------
        InputError
            If neither or both came, or the file is not in the folder or cannot be read.
        """
        if (given is None) == (not file):
            raise InputError(f"{what} must come as a list or as a file, one of them{_NOTHING}")
        if given is not None:
            return list(given)
        path = self._path(file)
        if path.suffix.lower() not in {".npy", ".json"}:
            return self._table(path)
        plain = self._plain(path)
        is_table = isinstance(plain, list) and plain and all(isinstance(one, dict) for one in plain)
        return self._table(path) if is_table else plain

    def _path(self, file: str) -> Path:
        try:
            path = (self._folder / file).resolve()
            there = path.is_file() and path.stat().st_size <= _MOST_BYTES
        except (OSError, ValueError, RuntimeError):  # too long, no name of a file, links in a circle
            path, there = self._folder, False
        if not path.is_relative_to(self._folder):
            raise InputError(f"a file must lie in the workspace; {file!r} does not{_NOTHING}")
        if not there:
            raise InputError(
                f"there must be a file {file!r} of at most {_MOST_BYTES >> 20} MB; there is none{_NOTHING}"
            )
        return path

    def _plain(self, path: Path) -> Any:
        try:
            if path.suffix.lower() == ".npy":
                with path.open("rb") as file:  # load() would take archives, too
                    return np.lib.format.read_array(file, allow_pickle=False)
            found = json.loads(path.read_text())
        except (OSError, ValueError, RecursionError, EOFError, MemoryError, OverflowError):
            found = None  # a header may state any shape
        if not isinstance(found, list):
            raise InputError(
                f"{path.name} must be a list of predictions, as its name says; it is not{_NOTHING}"
            )
        return found

    def _table(self, path: Path) -> Any:
        """Return the columns of a table in the order of the rows."""
        remote = self._remote
        has_ids = remote.ids is not None and "id" in read_table(path).frame.columns
        text = remote.private_labels == "text"
        table = read_table(path, id_column="id" if has_ids else None, text=text)
        wanted = np.array([str(one) for one in remote.ids or ()]) if has_ids else None
        frame = in_order_of(wanted, table, path, rows=remote.rows)
        if remote.metric.response == "judged":
            return frame.iloc[:, 0].to_numpy() if frame.shape[1] == 1 else frame.to_numpy()
        return columns_of(frame, remote, path)
