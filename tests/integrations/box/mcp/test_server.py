"""What an agent is given instead of the test set: the tools, by the real client, in this process and in another."""

import contextlib
import io
import json
import os
import sys

import numpy as np
import pandas as pd
import pytest
from box_servers import answering
from reusable_holdout_box import RemoteHoldout, make_box

mcp = pytest.importorskip("mcp")
anyio = pytest.importorskip("anyio")

pytestmark = pytest.mark.filterwarnings("ignore::reusable_holdout_box.NoWallWarning")

ROWS = 600
LABELS = np.arange(ROWS) % 2
WORSE = np.where(np.arange(ROWS) < 60, 1 - LABELS, LABELS)


@pytest.fixture
def boxed(tmp_path):
    """A function that makes a box, and gives its address."""
    with contextlib.ExitStack() as opened:

        def start(**wish):
            frame = pd.DataFrame({"id": [f"r{k}" for k in range(ROWS)], "label": LABELS})
            frame.to_csv(tmp_path / "labels.csv", index=False)
            wish = {"queries": 20, "charges": 2, "vacuous": True, "seed": 1} | wish
            make_box(tmp_path / "box", tmp_path / "labels.csv", id_column="id", **wish)
            return opened.enter_context(answering(tmp_path / "box"))

        yield start


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def called(url, workspace, *calls):
    """Results of calls of the tools, as (text, is an error, structured)."""
    from reusable_holdout_box.mcp import make_server

    async def run():
        found = []
        with RemoteHoldout(url) as remote:
            async with mcp.Client(make_server(remote, workspace)) as client:
                for name, arguments in calls:
                    result = await client.call_tool(name, arguments)
                    text = "".join(one.text for one in result.content)
                    found.append((text, bool(result.is_error), result.structured_content))
        return found

    return anyio.run(run)


def tools(url, workspace):
    from reusable_holdout_box.mcp import make_server

    async def run():
        with RemoteHoldout(url) as remote:
            async with mcp.Client(make_server(remote, workspace)) as client:
                return {one.name: one.description for one in (await client.list_tools()).tools}

    return anyio.run(run)


def test_the_tools_say_what_is_told_what_it_costs_and_what_there_is(boxed, workspace):
    found = tools(boxed(), workspace)
    assert list(found) == ["evaluate", "compare", "budget"]
    assert "a charge is taken" in found["evaluate"]
    assert "accuracy" in found["evaluate"]
    assert "less the incumbent's" in found["compare"]
    assert "600 rows" in found["budget"]
    assert "20 questions and 2 charges" in found["budget"]


def test_the_tools_of_a_gate_say_accepted_or_rejected(boxed, workspace):
    url = boxed(policy="gate")
    assert "accepted or rejected, and nothing else" in tools(url, workspace)["evaluate"]
    (yes, no) = called(
        url,
        workspace,
        ("evaluate", {"predictions": LABELS.tolist(), "prior": 0.6}),
        ("evaluate", {"predictions": WORSE.tolist(), "prior": 1.0}),
    )
    assert (yes[2]["outcome"], yes[2]["charges_left"]) == ("accepted", 1)
    assert no[2]["outcome"] == "rejected"


def test_answers_say_what_they_cost_and_what_is_left(boxed, workspace):
    same = ("evaluate", {"predictions": WORSE.tolist(), "prior": 0.9, "name": "first"})
    agreed, again, wrong, left = called(
        boxed(),
        workspace,
        *(same, same),
        ("evaluate", {"predictions": LABELS.tolist(), "prior": 0.2}),
        ("budget", {}),
    )
    assert agreed[2]["outcome"] == "agrees"
    assert agreed[2]["value"] == 0.9
    assert agreed[2]["says"].endswith("It cost a question. Left: 19 questions, 2 charges.")
    assert again[2]["replayed"]
    assert "It cost nothing" in again[2]["says"]
    assert (wrong[2]["outcome"], wrong[2]["charges_left"]) == ("deviates", 1)
    assert "a question and a charge" in wrong[2]["says"]
    assert left[2]["says"] == "Left: 18 of 20 questions, 1 of 2 charges."
    assert json.loads(left[0]) == left[2]


@pytest.mark.parametrize("kind", ["csv with ids", "csv", "npy", "json", "parquet"])
def test_predictions_may_be_a_file_of_the_workspace(boxed, workspace, kind):
    frame = pd.DataFrame({"id": [f"r{k}" for k in range(ROWS)], "guess": WORSE})
    file = workspace / f"guess.{kind.split()[0]}"
    if kind == "csv with ids":
        frame.sample(frac=1, random_state=0).to_csv(file, index=False)
    elif kind == "csv":
        frame[["guess"]].to_csv(file, index=False)
    elif kind == "npy":
        np.save(file, WORSE)
    elif kind == "json":
        file.write_text(json.dumps(WORSE.tolist()))
    else:
        frame.sample(frac=1, random_state=0).to_parquet(file)
    by_file, by_list = called(
        boxed(),
        workspace,
        ("compare", {"file": file.name, "incumbent": LABELS.tolist(), "prior": -0.1}),
        ("compare", {"predictions": WORSE.tolist(), "incumbent": LABELS.tolist(), "prior": -0.1}),
    )
    assert by_file[2]["outcome"] == "agrees"
    assert by_list[2]["replayed"]


def _of_shape(rows):
    """Head of a file that states so many rows, and has none."""
    file = io.BytesIO()
    head = {"descr": "<f8", "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_1_0(file, head)
    return file.getvalue()


def test_what_does_not_fit_is_an_error_that_costs_nothing(boxed, workspace, tmp_path):
    (workspace / "pickle.npy").write_bytes(b"\x80\x04N.")
    np.save(workspace / "objects.npy", np.array([{}], dtype=object))
    (workspace / "out").symlink_to(tmp_path / "labels.csv")
    (workspace / "circle.csv").symlink_to("circle.csv")
    for name, content in {"empty": b"", "archive": b"PK\x03\x04", "huge": _of_shape(10**13)}.items():
        (workspace / f"{name}.npy").write_bytes(content)
    wrong = [
        {"prior": 0.9},
        {"predictions": [1], "file": "x.csv", "prior": 0.9},
        {"predictions": [0, 1], "prior": 0.9},
        {"predictions": LABELS.tolist()},
        {"predictions": LABELS.tolist(), "prior": 90},
        *({"file": one, "prior": 0.9} for one in ("none.csv", "../labels.csv", "/etc/passwd", "out", ".")),
        *({"file": one, "prior": 0.9} for one in ("pickle.npy", "objects.npy")),
        *({"file": f"{one}.npy", "prior": 0.9} for one in ("empty", "archive", "huge")),
        *({"file": one, "prior": 0.9} for one in ("circle.csv", "nul\0.csv", "x" * 300 + ".csv")),
    ]
    *found, left = called(boxed(), workspace, *(("evaluate", one) for one in wrong), ("budget", {}))
    for text, is_error, _ in found:
        assert is_error
        assert "nothing was asked" in text
    assert left[2]["queries_left"] == 20


def test_a_halt_cannot_be_taken_for_a_score(boxed, workspace):
    spend = [("evaluate", {"predictions": np.roll(LABELS, k).tolist(), "prior": 0.25}) for k in range(4)]
    *_, halted, left = called(boxed(charges=1), workspace, *spend, ("budget", {}))
    assert not halted[1]  # an agent tries errors again
    assert halted[2]["halted"]
    assert "value" not in halted[2]
    assert halted[2]["says"].startswith("HALTED: all charges are spent. This question was not answered")
    assert left[2]["halted"]
    assert left[2]["charges_left"] == 0


def test_a_box_of_verdicts_tells_no_number(boxed, workspace):
    url = boxed(verdict_only=True)
    ((_, _, told),) = called(url, workspace, ("evaluate", {"predictions": WORSE.tolist(), "prior": 0.9}))
    assert told["outcome"] == "agrees"
    assert "value" not in told
    assert "No number is told" in tools(url, workspace)["evaluate"]


def test_the_command_serves_it_on_standard_input_and_output(boxed, workspace):
    (workspace / "guess.json").write_text(json.dumps(WORSE.tolist()))
    command = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "reusable_holdout", "box", "mcp", boxed(), "--workspace", str(workspace)],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )

    async def run():
        async with mcp.Client(command) as client:
            asked = await client.call_tool("evaluate", {"file": "guess.json", "prior": 0.9})
            return asked.structured_content

    assert anyio.run(run)["outcome"] == "agrees"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        (
            "evaluate",
            {"piror": 0.9},
            "has no argument piror; did you mean prior? it takes predictions, file, prior, name",
        ),
        ("evaluate", {"Prior": 0.9}, "did you mean prior?"),
        ("evaluate", {"zzz": 1}, "has no argument zzz; it takes predictions"),
        ("compare", {"incumbents": LABELS.tolist()}, "did you mean incumbent?"),
        ("budget", {"prior": 0.9}, "has no argument prior; it takes none"),
        ("evaluate", {"prior\u202e\x1b[31m": 0.9}, "has no argument"),
    ],
)
def test_an_argument_that_a_tool_does_not_have_is_refused(boxed, workspace, tool, arguments, words):
    """The fault: a mistyped prior was dropped, so the question was asked without it, and could be charged."""
    known = {} if tool == "budget" else {"predictions": WORSE.tolist()}
    url = boxed()
    (text, wrong, _), (_, _, left) = called(url, workspace, (tool, known | arguments), ("budget", {}))
    assert wrong
    assert words in text
    assert "nothing was asked and nothing was charged" in text
    assert text.isprintable()
    assert left["queries_left"] == 20


def test_the_schemas_of_the_tools_close_their_arguments(boxed, workspace):
    from reusable_holdout_box.mcp import make_server

    async def run():
        with RemoteHoldout(boxed()) as remote:
            async with mcp.Client(make_server(remote, workspace)) as client:
                return [one.input_schema for one in (await client.list_tools()).tools]

    schemas = anyio.run(run)
    assert len(schemas) == 3
    assert all(one["additionalProperties"] is False for one in schemas)


def test_a_file_of_json_may_be_rows_with_ids(boxed, workspace):
    rows = [{"id": f"r{k}", "prediction": int(WORSE[k])} for k in range(ROWS)]
    (workspace / "rows.json").write_text(json.dumps(rows[::-1]))
    (workspace / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (workspace / "list.json").write_text(json.dumps(WORSE.tolist()))
    files = ("rows.json", "rows.jsonl", "list.json")
    found = called(boxed(), workspace, *(("evaluate", {"file": file, "prior": 0.9}) for file in files))
    assert [(one["value"], one["replayed"]) for *_, one in found] == [(0.9, False), (0.9, True), (0.9, True)]
