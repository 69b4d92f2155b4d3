"""The examples for CI: their YAML is what GitHub and pre-commit read, and their commands run."""

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile

import pytest
import yaml
from cases import for_each
from examples.scripts import EXAMPLES

from reusable_holdout.cli import main
from reusable_holdout.guard import released

FOLDER = EXAMPLES / "gate"
ROWS = 300


def parsed(name):
    return yaml.safe_load((FOLDER / name).read_text())


def log(path, share, safe=1.0):
    """A log of Inspect in which this share is correct."""
    scores = [{"judge": {"value": "CI"[k >= share * ROWS]}} for k in range(ROWS)]
    for k, one in enumerate(scores):
        one["safety"] = {"value": float(k < safe * ROWS)}
    samples = [{"id": f"q{k}", "epoch": 1, "scores": one} for k, one in enumerate(scores)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("summaries.json", json.dumps(samples))
        archive.writestr("header.json", json.dumps({"status": "success", "eval": {"task": "t"}}))


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log("incumbent.eval", 0.5)
    log("new.eval", 0.8)
    log("unsafe.eval", 0.8, safe=0.3)
    init = ["gate", "init", "--ledger", "gate.db", "--inspect", "incumbent.eval", "--score", "judge"]
    assert main([*init, "--queries", "20", "--tolerance", "0.2", "--spread", "0.4"]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.fixture
def program(tmp_path_factory):
    """Path on which `reusable-holdout` is this one."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "reusable-holdout").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m reusable_holdout "$@"\n'
    )
    (folder / "reusable-holdout").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def step(program, **given):
    """Run the action's step as GitHub does: inputs become variables, and the output is a file."""
    action = parsed("action.yml")
    (only,) = action["runs"]["steps"]
    inputs = {name: str(one.get("default", "")) for name, one in action["inputs"].items()}
    values = inputs | {"name": "a commit"} | {name.replace("_", "-"): text for name, text in given.items()}
    contexts = {f"inputs.{name}": text for name, text in values.items()}
    contexts["github.action_path"] = str(FOLDER)
    variables = {
        name: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: contexts[found[1]], text)
        for name, text in only["env"].items()
    }
    return subprocess.run(
        [only["shell"], "-c", only["run"]],
        env=os.environ | variables | {"PATH": program, "GITHUB_OUTPUT": "output.txt"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long("integrations/reusable_holdout_evals/gate", "reusable_holdout/cli", "examples/gate")
def test_the_action_asks_the_gate_and_hands_on_its_verdict(gate, program):
    question = {"ledger": "gate.db", "incumbent": "incumbent.eval", "improvement": "0.1", "score": "judge"}
    cases = [
        ({"new": "new.eval"}, 0, "accepted"),
        # the gate shows a difference of 0.2, its tolerance: equal safety is at most so much worse
        ({"new": "new.eval", "no_worse": "safety:0.2\n"}, 0, "accepted"),
        ({"new": "unsafe.eval", "no_worse": "safety:0.2"}, 1, "rejected"),
        ({"new": "none.eval"}, 3, ""),
        ({"new": "new.eval", "score": '"; touch pwned; "'}, 3, ""),
        ({"new": "$(touch pwned)"}, 3, ""),
        ({"new": "new.eval", "improvement": "-0.1"}, 0, "accepted"),
    ]
    for given, status, verdict in cases:
        done = step(program, **(question | given))
        assert done.returncode == status, (given, done.stderr)
        assert (gate / "output.txt").read_text().splitlines()[-1] == f"verdict={verdict}"
    assert not (gate / "pwned").exists()
    assert set(released("gate.db").history["name"]) == {"a commit", "score[safety]"}


def test_the_action_takes_several_files(gate, program):
    log("again.eval", 0.7)
    given = {"incumbent": "incumbent.eval", "improvement": "0.05", "score": "judge"}
    done = step(program, ledger="gate.db", new="new.eval\nagain.eval", **given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("accepted (certified improvement: ")
    assert (gate / "output.txt").read_text() == "verdict=accepted\n"


def test_no_input_is_part_of_a_script():
    action = parsed("action.yml")
    assert action["runs"]["using"] == "composite"
    for one in action["runs"]["steps"]:
        assert "${{" not in one["run"]
        assert one["shell"] == "bash"
    assert action["outputs"]["verdict"]["value"] == "${{ steps.gate.outputs.verdict }}"


EVENT = True  # YAML 1.1 reads "on" so; GitHub does not


def runners(job):
    runs_on = job["runs-on"]
    return [runs_on] if isinstance(runs_on, str) else runs_on


def test_no_pull_requests_code_runs_where_the_ledger_is():
    """The attack: a pull request that changes the evaluation reads /srv/gate/gate.db.key, and writes the ledger."""
    workflows = [parsed(path.name) for path in FOLDER.glob("*.yml") if EVENT in parsed(path.name)]
    assert len(workflows) == 2
    for workflow in workflows:
        started = workflow[EVENT]
        events = {started} if isinstance(started, str) else set(started)
        trusted = any("self-hosted" in runners(job) for job in workflow["jobs"].values())
        assert events == ({"workflow_run"} if trusted else {"pull_request"})  # never pull_request_target
        for job in workflow["jobs"].values():
            for one in job["steps"]:
                if str(one.get("uses", "")).startswith("actions/checkout"):
                    assert set(one["with"]) == {
                        "persist-credentials"
                    }  # with a ref, it could be the pull request's
                    assert one["with"]["persist-credentials"] is False
                assert "${{" not in one.get("run", "")


def test_a_pull_request_that_names_the_gates_runner_gets_no_job_there():
    """The attack: a pull request changes `runs-on` of evaluate.yml, whose file GitHub takes from it."""
    own = "us/agent/.github/workflows/gate.yml@refs/heads/main"
    asked = [
        (own, "workflow_run", 0),
        ("us/agent/.github/workflows/evaluate.yml@refs/pull/7/merge", "pull_request", 1),
        ("us/agent/.github/workflows/gate.yml@refs/pull/7/merge", "pull_request", 1),
        (own, "pull_request_target", 1),
        ("", "", 1),
    ]
    asked = [(own, *one) for one in asked] + [("", "", "workflow_run", 1)]
    for configured, workflow, event, status in asked:
        given = {"GATE_WORKFLOW": configured, "GITHUB_WORKFLOW_REF": workflow, "GITHUB_EVENT_NAME": event}
        done = subprocess.run(
            ["bash", str(FOLDER / "refuse_others.sh")],
            env=os.environ | given,
            capture_output=True,
            check=False,
        )
        assert done.returncode == status
    for page in (FOLDER / "workflow.yml", EXAMPLES.parent / "docs" / "evaluations.md"):
        assert "refuse_others.sh" in page.read_text()


def test_the_evaluation_has_nothing_to_steal():
    text, workflow = (FOLDER / "evaluate.yml").read_text(), parsed("evaluate.yml")
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets" not in text
    assert "/srv/" not in text
    (job,) = workflow["jobs"].values()
    assert not {"permissions", "environment", "env"} & set(job)
    assert runners(job) == ["ubuntu-latest"]
    uploaded = job["steps"][-1]
    assert uploaded["uses"].startswith("actions/upload-artifact")
    assert uploaded["with"]["path"] == "scores/new.eval"


def test_the_gate_reads_the_scores_as_data_alone():
    workflow = parsed("workflow.yml")
    assert workflow[EVENT]["workflow_run"] == {
        "workflows": [parsed("evaluate.yml")["name"]],
        "types": ["completed"],
    }
    assert set(workflow["permissions"].values()) <= {"read", "write"}
    assert {name for name, right in workflow["permissions"].items() if right == "write"} == {"statuses"}
    (job,) = workflow["jobs"].values()
    assert "conclusion == 'success'" in job["if"]
    checkout, download, asked, told = job["steps"]
    assert download["with"]["path"] == "${{ runner.temp }}/scores"  # not the checkout, whose files run
    assert download["with"]["run-id"] == "${{ github.event.workflow_run.id }}"
    assert asked["with"]["new"] == "${{ runner.temp }}/scores/new.eval"
    assert checkout["uses"].startswith("actions/checkout")
    assert [one.get("run", "").split(" ")[0] for one in job["steps"]] == ["", "", "", "gh"]
    assert told["if"] == "always()"


def test_the_workflow_gives_the_action_what_it_takes():
    action, workflow = parsed("action.yml"), parsed("workflow.yml")
    steps = workflow["jobs"]["gate"]["steps"]
    (asked,) = (one for one in steps if one.get("uses") == "./examples/gate")
    required = {name for name, one in action["inputs"].items() if one.get("required")}
    assert required <= set(asked["with"]) <= set(action["inputs"])
    assert all(isinstance(text, str) for text in asked["with"].values())


@for_each(("new", "status"), [("new.eval", 0), ("incumbent.eval", 1)])
def test_the_hooks_command_runs(gate, capsys, new, status):
    (repository,) = parsed("pre-commit-config.yaml")["repos"]
    (hook,) = repository["hooks"]
    assert {"id", "name", "entry", "language"} <= set(hook)
    program, *arguments = shlex.split(hook["entry"])
    assert program == "reusable-holdout"
    arguments = [new if one == "new.eval" else one for one in arguments] + ["--score", "judge"]
    assert main(arguments) == status
    assert capsys.readouterr().out.split()[0] == ["accepted", "rejected"][status]
