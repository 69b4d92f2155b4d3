"""The MCP server: tools `evaluate`, `compare` and `budget` for a guard that lives elsewhere."""

from __future__ import annotations

from typing import Any

from reusable_holdout.errors import Halted, HoldoutError, InputError, of_extra
from reusable_holdout.metrics.ids import shown
from reusable_holdout.misfits import closest
from reusable_holdout.version import __version__
from reusable_holdout_box.mcp.words import about, about_compare, about_evaluate, halted, said
from reusable_holdout_box.mcp.workspace import Workspace

with of_extra("mcp", "an MCP server"):
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

from collections.abc import Callable, Mapping
from pathlib import Path

from reusable_holdout import Answer
from reusable_holdout_box.remote import RemoteHoldout

__all__ = ["make_server"]


def make_server(remote: RemoteHoldout, workspace: Path) -> MCPServer[Any]:
    """Make a server whose tools ask a guard elsewhere.

    It holds no label and no key: it runs as the agent does, and is a convenience, not the wall.

    Parameters
    ----------
    remote : RemoteHoldout
        A box or a board.
    workspace : Path
        Folder whose files may be named in a call.

    Returns
    -------
    mcp.server.mcpserver.MCPServer
        ``make_server(...).run("stdio")`` serves it.

    Raises
    ------
    MissingExtraError
        If the package `mcp` is not installed.
    """
    server = _StrictServer(
        "reusable-holdout", instructions=about(remote), version=__version__, log_level="WARNING"
    )
    files = Workspace(workspace, remote)

    def evaluate(
        predictions: list[Any] | None = None, file: str = "", prior: float | None = None, name: str = ""
    ) -> dict[str, Any]:
        return _asked(
            remote,
            lambda: remote.evaluate_predictions(
                files.predictions(predictions, file, "predictions"), prior=prior, name=name
            ),
        )

    def compare(
        predictions: list[Any] | None = None,
        file: str = "",
        incumbent: list[Any] | None = None,
        incumbent_file: str = "",
        prior: float | None = None,
        name: str = "",
    ) -> dict[str, Any]:
        def ask() -> Answer:
            new = files.predictions(predictions, file, "predictions")
            old = files.predictions(incumbent, incumbent_file, "the incumbent's predictions")
            return remote.compare_predictions(new, old, prior=prior, name=name)

        return _asked(remote, ask)

    def budget() -> dict[str, Any]:
        return _told(lambda: _budget(remote))

    server.tool(description=about_evaluate(remote))(evaluate)
    if hasattr(remote, "compare_predictions"):
        server.tool(description=about_compare(remote))(compare)
    server.tool(description=f"Says what is left, free of charge. {about(remote)}")(budget)
    return server


class _StrictServer(MCPServer[Any]):  # type: ignore[misc]
    """A server whose tools take no argument that they do not have.

    The library drops unknown arguments, so a mistyped ``prior`` would be asked without one, and charged.
    """

    async def list_tools(self) -> list[Any]:
        """List the tools; their schemas say that there are no other arguments."""
        tools: list[Any] = await super().list_tools()
        for tool in tools:
            tool.input_schema = {**tool.input_schema, "additionalProperties": False}
        return tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any], context: Any = None) -> Any:
        """Call a tool whose arguments are all known."""
        for tool in await self.list_tools():
            if tool.name == name:
                _check_known(name, arguments, list(tool.input_schema.get("properties", ())))
        return await super().call_tool(name, dict(arguments), context)


def _check_known(tool: str, arguments: Mapping[str, Any], known: list[str]) -> None:
    unknown = [one for one in arguments if one not in known]
    if not unknown:
        return
    near = closest(unknown[0], known)
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    raise ToolError(
        f"the tool {tool} has no argument {shown(unknown)}; {f'did you mean {near}? ' if near else ''}{takes}; nothing "
        "was asked and nothing was charged"
    )


def _asked(remote: RemoteHoldout, ask: Callable[[], Answer]) -> dict[str, Any]:
    """Result of a question; a halt is one, and no error: an agent tries errors again."""

    def result() -> dict[str, Any]:
        try:
            return said(ask(), remote)
        except Halted as halt:
            return halted(halt.reason)

    return _told(result)


def _told(tell: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return tell()
    except InputError as error:
        problem = str(error)
        if "nothing was asked" not in problem:
            problem += "; nothing was asked and nothing was charged"
    except HoldoutError as error:
        problem = str(error)
    raise ToolError(problem)


def _budget(remote: RemoteHoldout) -> dict[str, Any]:
    reason, left, charges = remote.halt_reason, remote.queries_left, remote.charges_left
    if reason is not None:
        return halted(reason) | {"queries_left": left, "charges_left": charges}
    return {
        "halted": False,
        "queries": remote.plan.queries,
        "queries_left": left,
        "charges": remote.plan.charges,
        "charges_left": charges,
        "says": f"Left: {left:,} of {remote.plan.queries:,} questions, {charges} of {remote.plan.charges} charges.",
    }
