"""Every example runs; the one with a claim is held to it at a smaller size."""

import argparse
import runpy
import sys

import pytest
from cases import refuses
from examples.scripts import EXAMPLES


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
            refuses(_ParserFoundError, "", runpy.run_path, str(script), run_name="__main__")
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
