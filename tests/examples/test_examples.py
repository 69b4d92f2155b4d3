"""Every example runs; the one with a claim is held to it at a smaller size."""

import argparse
import json
import runpy
import sys

import pytest
from examples.scripts import EXAMPLES, run


@pytest.mark.long("examples/quickstart.py", "reusable_holdout")
def test_quickstart(tmp_path):
    text = run("quickstart.py", folder=tmp_path)
    assert "replayed" in text
    assert "charged" in text
    assert "\nsound: 4 answers, 1 charged\n" in text


@pytest.mark.long("examples/ledger_report.py", "reusable_holdout")
def test_ledger_report(tmp_path):
    assert run("ledger_report.py", folder=tmp_path) == "wrote guard.html\n"
    assert "model 41" in (tmp_path / "guard.html").read_text()


@pytest.mark.long(
    "examples/cross_validation_loop.py", "integrations/reusable_holdout_sklearn", "reusable_holdout"
)
def test_cross_validation_loop(tmp_path):
    text = run("cross_validation_loop.py", folder=tmp_path)
    assert "5 of 60 queries asked" in text
    assert "halted" in text


@pytest.mark.long("examples/freedman_paradox.py", "reusable_holdout")
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


@pytest.mark.long("examples/benchmarks/costs.py", "reusable_holdout")
def test_the_costs_are_measured(tmp_path):
    costs = json.loads(run("benchmarks/costs.py", "--quick", "--json", folder=tmp_path))
    late = "one durable answer after 100,000, "
    assert [cost["what"].removeprefix(late) for cost in costs[-2:]] == [
        "nothing charged",
        "20 charges long ago",
    ]
    assert all(cost["ratio"] > 0 for cost in costs)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long("examples/benchmarks/imports.py", "reusable_holdout")
def test_the_start_of_a_process_is_measured(tmp_path):
    lines = json.loads(run("benchmarks/imports.py", "--quick", "--json", folder=tmp_path))
    ratios = {line["what"]: line["ratio"] for line in lines}
    assert ratios["import numpy"] == 1.0
    assert "a guard is opened and answers" in ratios
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long("examples/benchmarks/mechanisms.py", "reusable_holdout/mechanisms")
def test_the_mechanisms_are_timed(tmp_path):
    text = run("benchmarks/mechanisms.py", "--quick", folder=tmp_path)
    assert "NumPy Laplace draw" in text
    assert "one_shot_top_k" in text


class _ParserFoundError(Exception):
    """Ends a script where it would read its command line."""


@pytest.fixture
def parser_of(monkeypatch):
    """The parser of a script, which is run in this process until it would read its command line."""

    def parse_args(parser, *_):
        found.append(parser)
        raise _ParserFoundError

    def of(script):
        with monkeypatch.context() as inside:
            inside.syspath_prepend(str(script.parent))
            inside.setattr(argparse.ArgumentParser, "parse_args", parse_args)
            loaded = set(sys.modules)
            with pytest.raises(_ParserFoundError):
                runpy.run_path(str(script), run_name="__main__")
            for name in set(sys.modules) - loaded:  # its neighbours, whose names another script's may bear
                if str(EXAMPLES) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]
        return found.pop()

    found = []
    return of


OPTIONS = {
    "coverage.py": {"--quick", "--ways"},
    "dask_cluster.py": {"--quick", "--scheduler"},
    "guarded_choice.py": {"--quick", "--output"},
    "honest_search.py": {"--quick", "--sets"},
    "how_long_it_lasts.py": {"--quick", "--output"},
    "leaderboard/replay.py": {"--quick", "--workers"},
    "leaderboard_attack.py": {"--quick", "--output"},
    "optuna_study.py": {"--quick", "--output"},
    "plan_promises.py": {"--quick", "--runs"},
    "priors_matter.py": {"--quick", "--output"},
    "which_bound.py": {"--quick"},
}


def test_every_script_loads_and_explains_its_options(parser_of):
    scripts = [script for script in EXAMPLES.rglob("*.py") if "ArgumentParser(" in script.read_text()]
    assert len(scripts) >= 20
    for script in scripts:
        parser = parser_of(script)
        text = parser.format_help()
        assert parser.description, script
        for option in OPTIONS.get(script.relative_to(EXAMPLES).as_posix(), ()):
            assert option in text, (script, option)
