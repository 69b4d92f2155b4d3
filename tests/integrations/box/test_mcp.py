"""The tools that an agent is given instead of the test set, by the real client, in this process and in another."""

import json
import os
import sys

import numpy as np
import pandas as pd
import pytest
from integrations.box.conftest import LABELS, ROWS
from reusable_holdout_box import RemoteHoldout
from reusable_holdout_box.mcp import make_server

mcp = pytest.importorskip("mcp")
anyio = pytest.importorskip("anyio")

pytestmark = pytest.mark.filterwarnings("ignore::reusable_holdout_box.NoWallWarning")

WORSE = np.where(np.arange(ROWS) < 60, 1 - LABELS, LABELS)
FRAME = pd.DataFrame({"id": [f"r{k}" for k in range(ROWS)], "guess": WORSE})
SHUFFLED = FRAME.sample(frac=1, random_state=0)
SMALL = {"queries": 20, "charges": 2}


def asked(prior, predictions=WORSE, **more):
    return "evaluate", {"predictions": np.asarray(predictions).tolist(), "prior": prior, **more}


@pytest.fixture
def agent(boxed, tmp_path):
    """A function that makes a box, and gives the tools and the results of calls: (text, is an error, structured)."""
    workspace = tmp_path / "work"
    workspace.mkdir(exist_ok=True)

    def use(*calls, **wish):
        async def run(remote):
            async with mcp.Client(make_server(remote, workspace)) as client:
                tools = (await client.list_tools()).tools
                results = [await client.call_tool(name, arguments) for name, arguments in calls]
            told = [
                ("".join(part.text for part in one.content), one.is_error, one.structured_content)
                for one in results
            ]
            return tools, told

        with RemoteHoldout(boxed(**SMALL | wish)) as remote:
            return anyio.run(run, remote)

    return use


def test_the_tools_say_what_is_told_and_what_it_costs_and_close_their_arguments(agent):
    tools, _ = agent()
    told = {one.name: one.description for one in tools}
    assert list(told) == ["evaluate", "compare", "budget"]
    for name, words in (
        ("evaluate", "a charge is taken"),
        ("evaluate", "the accuracy of your predictions on the hidden rows"),
        ("compare", "less the incumbent's"),
        ("budget", "600 rows"),
        ("budget", "20 questions and 2 charges"),
    ):
        assert words in told[name], words
    assert all(one.input_schema["additionalProperties"] is False for one in tools)


def test_the_tools_of_a_gate_say_accepted_or_rejected(agent):
    tools, ((_, _, yes), (_, _, no)) = agent(
        ("gate", {"at_least": 0.6, "predictions": LABELS.tolist()}),
        ("gate", {"at_least": 1.0, "predictions": WORSE.tolist()}),
        gates=True,
    )
    assert [one.name for one in tools] == ["gate", "budget"]  # the owner allows nothing else
    assert "accepted or rejected, and nothing else" in tools[0].description
    assert (yes["outcome"], yes["charges_left"], no["outcome"]) == ("accepted", 1, "rejected")


def test_answers_say_what_they_cost_and_what_is_left(agent):
    first = asked(0.9, name="first")
    _, (agreed, again, wrong, left) = agent(first, first, asked(0.2, LABELS), ("budget", {}))
    assert (agreed[2]["outcome"], agreed[2]["value"], again[2]["replayed"]) == ("agrees", 0.9, True)
    assert agreed[2]["says"].endswith("It cost a question. Left: 19 questions, 2 charges.")
    assert "It cost nothing" in again[2]["says"]
    assert (wrong[2]["outcome"], wrong[2]["charges_left"]) == ("deviates", 1)
    assert "a question and a charge" in wrong[2]["says"]
    assert left[2]["says"] == "Left: 18 of 20 questions, 1 of 2 charges."
    assert json.loads(left[0]) == left[2]


def test_predictions_may_be_a_file_of_the_workspace(agent, tmp_path):
    work, rows = tmp_path / "work", SHUFFLED.to_dict("records")
    SHUFFLED.to_csv(work / "with_ids.csv", index=False)
    FRAME[["guess"]].to_csv(work / "plain.csv", index=False)
    SHUFFLED.to_parquet(work / "guess.parquet")
    (work / "list.json").write_text(json.dumps(WORSE.tolist()))
    (work / "rows.json").write_text(json.dumps(rows))
    (work / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    files = sorted(one.name for one in work.iterdir())
    incumbent = {"incumbent": LABELS.tolist(), "prior": -0.1}
    _, found = agent(
        ("compare", {"predictions": WORSE.tolist(), **incumbent}),
        *(("compare", {"file": file, **incumbent}) for file in files),
    )
    assert len(files) == 6
    assert [(one["outcome"], one["replayed"]) for *_, one in found] == [
        ("agrees", False),
        *[("agrees", True)] * 6,
    ]


def test_wrong_input_is_an_error_that_costs_nothing(agent, tmp_path):
    work, good = tmp_path / "work", WORSE.tolist()
    (tmp_path / "labels.csv").write_text("secret")
    (work / "out").symlink_to(tmp_path / "labels.csv")
    (work / "circle.csv").symlink_to("circle.csv")
    (work / "broken.json").write_text("[[" * 100_000)
    (work / "empty.csv").touch()
    files = ["none.csv", "../labels.csv", "/etc/passwd", "out", ".", "broken.json", "empty.csv", "circle.csv"]
    wrong = [
        {"prior": 0.9},
        {"predictions": good, "file": "x.csv", "prior": 0.9},
        {"predictions": [0, 1], "prior": 0.9},
        {"predictions": good},
        {"predictions": good, "prior": 90},
        *({"file": one, "prior": 0.9} for one in (*files, "nul\0.csv", "x" * 300 + ".csv")),
    ]
    _, (*found, left) = agent(*(("evaluate", one) for one in wrong), ("budget", {}))
    for (text, is_error, _), arguments in zip(found, wrong, strict=True):
        assert is_error, arguments
        assert "nothing was asked" in text, arguments
    assert left[2]["queries_left"] == 20


def test_a_halt_cannot_be_taken_for_a_score(agent):
    spend = [asked(0.25, np.roll(LABELS, k)) for k in range(4)]
    _, (*_, (_, is_error, halted), (_, _, left)) = agent(*spend, ("budget", {}), charges=1)
    assert not is_error  # an agent tries errors again
    assert (halted["halted"], "value" in halted) == (True, False)
    assert halted["says"].startswith("HALTED: all charges are spent. This question was not answered")
    assert (left["halted"], left["charges_left"]) == (True, 0)


def test_an_argument_that_a_tool_does_not_have_is_refused(agent):
    """The fault: a mistyped prior was dropped, so the question was asked without it, and could be charged."""
    words = {
        "piror": "has no argument piror; did you mean prior? it takes predictions, file, prior, name",
        "Prior": "did you mean prior?",
        "zzz": "has no argument zzz; it takes predictions",
        "prior\u202e\x1b[31m": "has no argument",
    }
    calls = [("evaluate", {"predictions": WORSE.tolist(), name: 0.9}) for name in words]
    calls += [("compare", {"incumbents": LABELS.tolist()}), ("budget", {"prior": 0.9})]
    wanted = [*words.values(), "did you mean incumbent?", "has no argument prior; it takes none"]
    _, (*found, left) = agent(*calls, ("budget", {}))
    for (text, is_error, _), expected in zip(found, wanted, strict=True):
        assert is_error
        assert expected in text
        assert "nothing was asked and nothing was charged" in text
        assert text.isprintable()
    assert left[2]["queries_left"] == 20


def test_the_command_serves_it_on_standard_input_and_output(boxed, tmp_path):
    (tmp_path / "guess.json").write_text(json.dumps(WORSE.tolist()))
    command = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "reusable_holdout", "box", "mcp", boxed(), "--workspace", str(tmp_path)],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )

    async def run():
        async with mcp.Client(command) as client:
            return (
                await client.call_tool("evaluate", {"file": "guess.json", "prior": 0.9})
            ).structured_content

    assert anyio.run(run)["outcome"] == "agrees"
