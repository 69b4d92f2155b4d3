"""The coverage example: it runs, it draws, and it would find a broken promise."""

import os
import runpy
import subprocess
import sys

import pytest
from examples.scripts import EXAMPLES, run

long = pytest.mark.long("examples/coverage.py", "examples/asking", "reusable_holdout")


@long
def test_guards_keep_their_promise_where_the_textbook_does_not(tmp_path):
    text = run(
        "coverage.py",
        "--runs",
        "20",
        "--metrics",
        "accuracy",
        "roc_auc",
        "--attacks",
        "boosting",
        "budget burning",
        "hyperparameter search",
        "--jobs",
        "1",
        "--output",
        "here.png",
        folder=tmp_path,
    )
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


def test_cells_that_cannot_be_are_refused(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    coverage = runpy.run_path(str(EXAMPLES / "coverage.py"))
    with pytest.raises(SystemExit) as ended:
        coverage["main"](["--attacks", "log-loss oracle", "--metrics", "brier"])
    assert ended.value.code == 2
    assert "no such attack" in capsys.readouterr().err
