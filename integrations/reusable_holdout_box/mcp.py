"""A server of the Model Context Protocol that gives an agent tools to ask a guard, instead of the test set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from reusable_holdout_evals.gate.tables import columns_of, in_order_of, read_table

from reusable_holdout import Answer
from reusable_holdout.errors import Halted, HoldoutError, InputError, of_extra
from reusable_holdout.metrics.ids import shown
from reusable_holdout.misfits import closest
from reusable_holdout.version import __version__
from reusable_holdout_box.guards import ask
from reusable_holdout_box.remote import RemoteHoldout

__all__ = ["make_server"]

_MOST_BYTES = 64 << 20
_NOTHING = "; nothing was asked and nothing was charged"
_FILES = (
    "Pass predictions as a list in the order of the rows, or `file`, a path in your workspace: CSV (one column of "
    "predictions, and a column `id` if the rows have ids), Parquet or JSON. Wrong input is refused, and costs nothing. "
    "The same question again gets the same answer, free."
)
_HONEST = (
    "State your own honest estimate as `prior`, from cross-validation or a dev set: a good estimate costs nothing, a "
    "wrong one costs a charge."
)
_SPENT = {
    "charges": "all charges are spent",
    "queries": "all questions are asked",
    "final": "a final was given",
}


def make_server(remote: RemoteHoldout, workspace: Path) -> Any:
    """Make a server whose tools ask a guard in another process.

    The server holds no label and no key, and runs as the agent's user. It only makes asking easy. The agent cannot read
    the labels, because the box runs as another user.

    Parameters
    ----------
    remote : RemoteHoldout
        Client of a box or a leaderboard.
    workspace : Path
        Folder whose files the agent may name in a call.

    Returns
    -------
    mcp.server.mcpserver.MCPServer
        The server; ``make_server(...).run("stdio")`` starts it.

    Raises
    ------
    MissingExtraError
        If the package `mcp` is not installed.
    """
    server = _strict_server()("reusable-holdout", instructions=_about(remote), version=__version__)
    folder = workspace.resolve()

    def asked(
        way: str, name: str, *given: tuple[list[Any] | None, str], **stated: float | None
    ) -> dict[str, Any]:
        def result() -> dict[str, Any]:
            predictions = [_predictions(remote, folder, *one) for one in given]
            try:
                return _said(ask(remote, way, predictions, name=name, **stated)[0], remote)
            except Halted as halt:  # not an error, because agents try again after errors
                return _end(halt.reason)

        return _checked(server, result)

    def budget() -> dict[str, Any]:
        return _checked(server, lambda: _budget_of(remote))

    for tool, what in _questions(remote, asked).items():
        if tool.__name__ in remote.allow:
            server.tool(description=_about_question(remote, tool.__name__, what))(tool)
    server.tool(description=f"Says what is left, free of charge. {_about(remote)}")(budget)
    return server


def _questions(remote: RemoteHoldout, asked: Callable[..., dict[str, Any]]) -> dict[Callable[..., Any], str]:
    """Return the tools that ask questions; each maps to words for the number that its question is about."""

    def evaluate(
        predictions: list[Any] | None = None, file: str = "", prior: float | None = None, name: str = ""
    ) -> dict[str, Any]:
        return asked("evaluate", name, (predictions, file), prior=prior)

    def compare(
        predictions: list[Any] | None = None,
        file: str = "",
        incumbent: list[Any] | None = None,
        incumbent_file: str = "",
        prior: float | None = None,
        name: str = "",
    ) -> dict[str, Any]:
        return asked("compare", name, (predictions, file), (incumbent, incumbent_file), prior=prior)

    def gate(
        at_least: float,
        predictions: list[Any] | None = None,
        file: str = "",
        incumbent: list[Any] | None = None,
        incumbent_file: str = "",
        name: str = "",
    ) -> dict[str, Any]:
        given = [(predictions, file)]
        if incumbent is not None or incumbent_file:
            given.append((incumbent, incumbent_file))
        return asked("gate", name, *given, at_least=at_least)

    mine = f"the {remote.metric.name} of your predictions"
    return {
        evaluate: mine,
        compare: f"{mine} less the incumbent's (far sharper than two evaluations, because rows "
        "on which both agree do not count: ask it to learn whether a change is an improvement)",
        gate: f"{mine}, or with an incumbent its difference from the incumbent's,",
    }


def _strict_server() -> Any:
    """Return a class of servers whose tools refuse unknown arguments.

    The `mcp` library ignores unknown arguments. So a question with a mistyped ``prior`` would be asked without a prior,
    and could be charged.
    """
    with of_extra("mcp", "an MCP server"):
        from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - an optional library
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415

    class StrictServer(MCPServer):  # type: ignore[misc]
        error = ToolError

        async def list_tools(self) -> list[Any]:
            tools: list[Any] = await super().list_tools()
            for tool in tools:
                tool.input_schema = {**tool.input_schema, "additionalProperties": False}
            return tools

        async def call_tool(self, name: str, arguments: Mapping[str, Any], context: Any = None) -> Any:
            for tool in await self.list_tools():
                if tool.name == name:
                    _checked(
                        self, partial(_check_known, name, arguments, list(tool.input_schema["properties"]))
                    )
            return await super().call_tool(name, dict(arguments), context)

    return partial(StrictServer, log_level="WARNING")


def _check_known(tool: str, arguments: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    unknown = [one for one in arguments if one not in known]
    if not unknown:
        return {}
    near = closest(unknown[0], known)
    takes = f"it takes {', '.join(known) or 'none'}"
    raise InputError(
        f"the tool {tool} has no argument {shown(unknown)}; {f'did you mean {near}? ' if near else ''}{takes}"
    )


def _checked(server: Any, tell: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a tool's result. Errors become a ToolError; after wrong input it says that nothing was charged."""
    try:
        return tell()
    except HoldoutError as error:
        problem = str(error)
        if isinstance(error, InputError) and "nothing was asked" not in problem:
            problem += _NOTHING
    raise server.error(problem)


# ---- predictions of the agent


def _predictions(remote: RemoteHoldout, folder: Path, given: list[Any] | None, file: str) -> Any:
    """Return the predictions that a call holds, or those in the file that it names, in the order of the rows."""
    if (given is None) == (not file):
        raise InputError("predictions must come either as a list or as a file; got both or neither")
    if given is not None:
        return given
    path = _path(folder, file)
    has_ids = remote.ids is not None and "id" in read_table(path).frame.columns
    table = read_table(path, id_column="id" if has_ids else None, text=remote.private_labels == "text")
    wanted = np.array([str(one) for one in remote.ids or ()]) if has_ids else None
    frame = in_order_of(wanted, table, path, rows=remote.rows)
    if remote.metric.response == "judged" and frame.shape[1] > 1:
        return frame.to_numpy()
    return columns_of(frame, remote, path)


def _path(folder: Path, file: str) -> Path:
    try:
        path = (folder / file).resolve()
        there = path.is_file() and path.stat().st_size <= _MOST_BYTES
    except (OSError, ValueError, RuntimeError):  # too long, not a path, or circular links
        path, there = folder, False
    if not path.is_relative_to(folder):
        raise InputError(f"a file must lie in the workspace; {file!r} does not")
    if not there:
        raise InputError(f"there must be a file {file!r} of at most {_MOST_BYTES >> 20} MB; there is none")
    return path


# ---- texts for the agent


def _about(remote: RemoteHoldout) -> str:
    """Return a text for the agent about the test set and the budget."""
    plan, metric = remote.plan, remote.metric
    better = "greater" if metric.greater_is_better else "smaller"
    return (
        f"A private test set of {plan.rows:,} rows, scored by {metric.name} ({better} is better). You cannot see its "
        f"labels; you can ask about predictions. There are {plan.queries:,} questions and {plan.charges} charges in "
        "all. Everyone who asks shares them, and they are never refilled. When they are spent nothing new is answered: "
        "plan your questions. Choose on your own dev set, and ask about the models that you mean to keep."
    )


def _about_question(remote: RemoteHoldout, way: str, what: str) -> str:
    """Return a text for the agent about one tool: what its answers tell, and what they cost."""
    told = (
        f"what you think it is. {_HONEST} If your estimate is near, you are told that it agrees. If it is far off, you "
        "are told which way and about how far, and a charge is taken. Each new question takes one of the questions."
    )
    if way == "gate":
        told = (
            "at least `at_least`. You are told accepted or rejected, and nothing else. Accepted takes a charge; "
            "rejected takes a question only."
        )
    if remote.private_labels == "text":
        told += " A prediction is right if it is the row's label, whatever the case and the spaces. Labels are secret."
    return f"Asks whether {what} on the hidden rows is {told} {_FILES}"


def _said(answer: Answer, remote: RemoteHoldout) -> dict[str, Any]:
    """Return an answer as a tool's result: numbers for programs, and a sentence for the agent."""
    words = {"better": "accepted", "not shown": "rejected", "corrected": "deviates", "agreed": "agrees"}
    outcome = words.get(answer.outcome, answer.outcome)
    cost = "a question and a charge" if answer.charged else "a question"
    cost = "nothing, for it was asked before" if answer.replayed else cost
    left = remote.queries_left
    told = {
        name: getattr(answer, name)
        for name in ("value", "low", "high", "charged", "replayed", "charges_left")
    }
    numbers = f"{answer.value:.4f}, surely between {answer.low:.4f} and {answer.high:.4f}"
    return {
        "halted": False,
        "outcome": outcome,
        **told,
        "queries_left": left,
        "says": f"{outcome}: {numbers}. It cost {cost}. Left: {left:,} questions, {answer.charges_left} charges.",
    }


def _end(reason: str) -> dict[str, Any]:
    """Return the result of a question after a halt; it holds no number that could be taken for a score."""
    return {
        "halted": True,
        "outcome": "halted",
        "says": f"HALTED: {_SPENT.get(reason, reason)}. This question was not answered, and no new question ever will "
        "be. Do not try again: stop, and report what was answered before. Answered questions may be repeated.",
    }


def _budget_of(remote: RemoteHoldout) -> dict[str, Any]:
    """Return the numbers of questions and charges that are left, with a sentence for the agent."""
    plan, reason, left, charges = remote.plan, remote.halt_reason, remote.queries_left, remote.charges_left
    said = f"Left: {left:,} of {plan.queries:,} questions, {charges} of {plan.charges} charges."
    state = {"halted": False, "says": said} if reason is None else _end(reason)
    numbers = {
        "queries": plan.queries,
        "queries_left": left,
        "charges": plan.charges,
        "charges_left": charges,
    }
    return state | numbers
