"""Every example runs; the one with a claim is held to it at a smaller size."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def run(script, *arguments, folder):
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(_EXAMPLES / script), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_quickstart(tmp_path):
    text = run("quickstart.py", folder=tmp_path)
    assert "replayed" in text
    assert "charged" in text
    assert "problems=[]" in text


def test_cross_validation_loop(tmp_path):
    text = run("cross_validation_loop.py", folder=tmp_path)
    assert "5 of 60 queries asked" in text
    assert "halted" in text


def test_freedman_paradox_at_a_smaller_size(tmp_path):
    text = run("freedman_paradox.py", "--size", "2000", "--repetitions", "4", folder=tmp_path)
    assert (tmp_path / "freedman_paradox.png").exists()
    without, signal = text.split("\nsignal:")
    for part in (without, signal):
        assert int(part.split(" at most, of 50")[0].split(", ")[-1].split()[-1]) <= 50
    k500 = without.split("  500 ")[1].split()
    plain, plain_fresh, guard, guard_fresh = (float(number) for number in k500[:4])
    assert plain > 0.6
    assert abs(plain_fresh - 0.5) < 0.05
    assert abs(guard - guard_fresh) < 0.03


@pytest.mark.parametrize("arguments", [("--help",), ("--quick", "--json")])
def test_benchmarks_run(tmp_path, arguments):
    text = run("benchmarks/costs.py", *arguments, folder=tmp_path)
    assert "durable answers" in text or "fewer rounds" in text
    assert list(tmp_path.iterdir()) == []


def test_the_start_of_a_process_is_measured(tmp_path):
    lines = json.loads(run("benchmarks/imports.py", "--quick", "--json", folder=tmp_path))
    ratios = {line["what"]: line["ratio"] for line in lines}
    assert ratios["import numpy"] == 1.0
    assert "a guard is opened and answers" in ratios
    assert list(tmp_path.iterdir()) == []


def test_the_mechanisms_are_timed(tmp_path):
    text = run("benchmarks/mechanisms.py", "--quick", folder=tmp_path)
    assert "NumPy Laplace draw" in text
    assert "one_shot_top_k" in text
