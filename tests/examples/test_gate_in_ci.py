"""The examples for CI: their YAML is what GitHub and pre-commit read, and their commands run."""

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile

import numpy as np
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
    samples = [
        {
            "id": f"q{k}",
            "epoch": 1,
            "scores": {
                "judge": {"value": "CI"[k >= share * ROWS]},
                "safety": {"value": float(k < safe * ROWS)},
            },
        }
        for k in range(ROWS)
    ]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("summaries.json", json.dumps(samples))
        archive.writestr("header.json", json.dumps({"status": "success", "eval": {"task": "t"}}))


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log("incumbent.eval", 0.5)
    log("new.eval", 0.8)
    log("unsafe.eval", 0.8, safe=0.3)
    init = ["gate-init", "--ledger", "gate.db", "--inspect", "incumbent.eval", "--score", "judge"]
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


@pytest.mark.long("reusable_holdout/release_gate", "reusable_holdout/cli", "examples/gate")
def test_the_action_asks_the_gate_and_hands_on_its_verdict(gate, program):
    question = {"ledger": "gate.db", "incumbent": "incumbent.eval", "improvement": "0.1", "score": "judge"}
    cases = [
        ({"new": "new.eval"}, 0, "accepted"),
        ({"new": "new.eval", "no_worse": "safety:0.05\n"}, 0, "accepted"),
        ({"new": "unsafe.eval", "no_worse": "safety:0.05"}, 1, "rejected"),
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
    done = step(
        program,
        ledger="gate.db",
        new="new.eval\nagain.eval",
        incumbent="incumbent.eval",
        improvement="0.05",
        score="judge",
    )
    assert (done.returncode, done.stdout) == (0, "accepted\n"), done.stderr


def test_no_input_is_part_of_a_script():
    action = parsed("action.yml")
    assert action["runs"]["using"] == "composite"
    for one in action["runs"]["steps"]:
        assert "${{" not in one["run"]
        assert one["shell"] == "bash"
    assert action["outputs"]["verdict"]["value"] == "${{ steps.gate.outputs.verdict }}"


def test_the_workflow_gives_the_action_what_it_takes():
    action, workflow = parsed("action.yml"), parsed("workflow.yml")
    assert workflow[True] == "pull_request"  # YAML 1.1 reads "on" so; GitHub does not
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
    assert capsys.readouterr().out in {"accepted\n", "rejected\n"}


def test_shares_are_what_they_say(gate):
    from reusable_holdout import read_inspect

    assert np.mean(read_inspect("unsafe.eval", scorer="safety").scores) == 0.3
