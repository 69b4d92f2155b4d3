"""An automatic optimiser, and a grading server for one, through a box."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from examples.scripts import EXAMPLES, run
from reusable_holdout_box import RemoteHoldout

BOX = [sys.executable, "-m", "reusable_holdout", "box"]
ROWS = 1_000


@pytest.mark.long("examples/hill_climbing_agent.py", "examples/climbing", "integrations/reusable_holdout_box")
def test_what_is_reported_through_a_box_is_what_fresh_rows_say(tmp_path):
    options = ["--worlds", "prompts", "--runs", "6", "--picture", "climb.png"]
    printed = run("hill_climbing_agent.py", *options, folder=tmp_path)
    lines = {
        line.split()[1]: line.split()[2:] for line in printed.splitlines() if line.split()[:1] == ["prompts"]
    }
    assert float(lines["plain"][2]) > 0.05  # reported above fresh
    reported, fresh, gap, width, within, taken = lines["box"][:6]
    assert abs(float(gap)) <= float(width)
    assert abs(float(reported) - float(fresh) - float(gap)) < 0.0021
    assert within == "6/6"
    assert float(taken) >= 0.9  # of six runs: the noise is drawn anew, and one run has few such steps
    assert (tmp_path / "climb.png").stat().st_size > 10_000


@pytest.fixture
def box(tmp_path):
    """A gate in a box of its own process, and its labels."""
    labels = np.random.default_rng(0).integers(0, 2, ROWS)
    pd.DataFrame({"id": [f"r{row}" for row in range(ROWS)], "label": labels}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    settings = ["--id=id", "--gates", "--queries=100", "--charges=3"]
    place = tmp_path / "box"
    subprocess.run([*BOX, "init", place, "--labels", tmp_path / "labels.csv", *settings], check=True)
    process = subprocess.Popen([*BOX, "serve", place], stderr=subprocess.DEVNULL)
    yield f"unix://{place}/socket", labels
    process.terminate()
    process.wait()


@pytest.mark.filterwarnings("ignore::reusable_holdout_box.NoWallWarning")
def test_a_grading_server_tells_medals_and_counts_the_looks_of_a_run(box, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import httpx
    from grading_server import Grader, application

    url, labels = box
    medals = {"bronze": 0.6, "silver": 0.8}

    def submission(right, seed=0):
        wrong = np.random.default_rng(seed).random(ROWS) > right
        table = pd.DataFrame(
            {"id": [f"r{row}" for row in range(ROWS)], "label": np.where(wrong, 1 - labels, labels)}
        )
        return table.sample(frac=1, random_state=seed).to_csv(index=False)

    with RemoteHoldout(url) as asked:
        app = application(Grader(asked, "agent-7", 3, medals))

        def post(path, text):
            import asyncio

            async def send():
                transport = httpx.ASGITransport(app)
                async with httpx.AsyncClient(transport=transport, base_url="http://grader") as client:
                    return await client.post(path, files={"file": ("s.csv", io.BytesIO(text.encode()))})

            return asyncio.run(send()).json()

        assert post("/validate", submission(0.9)) == {"result": "Submission is valid."}
        assert "invalid" in post("/validate", submission(0.9).replace("r17,", "x17,"))["result"]
        assert "invalid" in post("/validate", "id,label\nr0,2\n")["result"]
        assert asked.queries_asked == 0
        assert post("/medal", submission(0.5)) == {"medal": "none", "looks_left": 2}
        assert post("/medal", submission(0.95)) == {"medal": "silver", "looks_left": 1}
        assert post("/medal", submission(0.95)) == {
            "medal": "silver",
            "looks_left": 1,
        }  # the same again is free
        assert post("/medal", submission(0.7, seed=1)) == {"medal": "bronze", "looks_left": 0}
        assert "has had its 3 looks" in post("/medal", submission(0.55, seed=2))["error"]
        again = application(Grader(asked, "agent-7", 3, medals))  # started again, it has no more
        app = again
        assert "has had its 3 looks" in post("/medal", submission(0.55, seed=2))["error"]
        app = application(Grader(asked, "agent-8", 3, medals))
        assert "budget is spent" in post("/medal", submission(0.55, seed=2))["error"]
