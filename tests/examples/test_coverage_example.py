"""The coverage example: it runs, it draws, and it would find a broken promise."""

import os
import subprocess
import sys

import pytest
from examples.scripts import EXAMPLES, run

ATTACKS = ("boosting", "budget burning", "hyperparameter search")
long = pytest.mark.long("examples/coverage.py", "examples/asking", "reusable_holdout")


@long
def test_guards_keep_their_promise_where_the_textbook_does_not(tmp_path):
    few = ["--runs", "20", "--metrics", "accuracy", "roc_auc", "--jobs", "1", "--output", "here.png"]
    text = run("coverage.py", *few, "--attacks", *ATTACKS, folder=tmp_path)
    assert (tmp_path / "here.png").stat().st_size > 10_000
    for way in ("checks", "tolerances", "mixed"):
        assert f"least coverage of a guard asked by {way}" in text
    textbook = [
        line for line in text.splitlines() if line.strip().startswith("boosting") and "textbook" in line
    ]
    assert len(textbook) == 2
    for line in textbook:
        assert float(line.split("textbook)")[1].split()[3]) == 0.0  # metric, asked by, runs, coverage


@long
def test_a_broken_promise_ends_with_status_one(tmp_path):
    """The textbook's interval, passed off as a guard's."""
    code = (
        "import sys, coverage\n"
        "coverage.TEXTBOOK, name = 'no such holdout', coverage.TEXTBOOK\n"
        "guard = coverage.Setup.guard\n"
        "textbook = lambda setup, labels: coverage.TextbookHoldout(labels, setup.metric)\n"
        "coverage.Setup.guard = textbook\n"
        "sys.exit(coverage.main(['--runs', '30', '--jobs', '1', '--metrics', 'accuracy', '--attacks', 'boosting',"
        " '--holdouts', 'guarded', '--ways', 'checks']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(EXAMPLES)},
        check=False,
    )
    assert done.returncode == 1, done.stderr[-2000:]
    assert "PROMISE BROKEN: boosting, guarded, accuracy, checks" in done.stdout
